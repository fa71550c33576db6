# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random changes, and what each should make of the document: a model of its own, which knows nothing of the daemon's."""

import copy
import json
import random

from rawcontrol import Connection
from shuntlab import backend

SLOTS = 251


def first():
    return {"pools": {"web": {"web1": (backend(1), 1), "web2": (backend(2), 1)}}, "services": {"www": (80, "web")}}


def document(model, key_file):
    """As a document of shunt."""
    pools = [{"name": name, "table": {"algorithm": "maglev", "size": SLOTS}, "encapsulation": {"type": "ipip"},
              "settle": "1s", "learn": "1s", "backends": [{"name": b, "address": address, "weight": weight}
                           for b, (address, weight) in sorted(backends.items())]}
             for name, backends in sorted(model["pools"].items())]
    services = [{"name": name, "address": "192.0.2.10", "protocol": "tcp", "ports": [port], "pool": pool}
                for name, (port, pool) in sorted(model["services"].items())]
    return {"version": 1, "hash-key-file": str(key_file), "pools": pools, "services": services}


def model_of(exported):
    """From a document that the daemon exported."""
    pools = {p["name"]: {b["name"]: (b["address"], b["weight"]) for b in p["backends"]} for p in exported["pools"]}
    return {"pools": pools, "services": {s["name"]: (s["ports"][0], s["pool"]) for s in exported["services"]}}


class Stream:
    """One change after the other.  `web` always has a backend with weight, so its table is never empty."""

    def __init__(self, seed, key_file):
        self.random = random.Random(seed)
        self.key_file = key_file
        self.acknowledged = first()
        self.in_flight = None
        self.done = self.refused = self.busy = 0

    def next(self):
        """(method, parameters, the model afterwards)."""
        model = copy.deepcopy(self.acknowledged)
        kind = self.random.choice([self._weight, self._weight, self._weight, self._add, self._add, self._delete,
                                   self._pool, self._service, self._document])
        method, parameters = kind(model)
        return method, parameters, model

    def _weight(self, model):
        pool = self.random.choice([p for p in model["pools"] if model["pools"][p]])
        name = self.random.choice(sorted(model["pools"][pool]))
        weight = self.random.randint(1, 9)
        model["pools"][pool][name] = (model["pools"][pool][name][0], weight)
        return "BackendSet", {"pool": pool, "name": name, "weight": weight}

    def _add(self, model):
        pool = self.random.choice(sorted(model["pools"]))
        used = {address for address, _ in model["pools"][pool].values()}
        free = [i for i in range(1, 17) if backend(i) not in used]
        if not free:
            return self._weight(model)
        index, weight = self.random.choice(free), self.random.randint(1, 9)
        model["pools"][pool][f"web{index}"] = (backend(index), weight)
        return "BackendAdd", {"pool": pool, "name": f"web{index}", "address": backend(index), "weight": weight}

    def _delete(self, model):
        pool = self.random.choice([p for p in model["pools"] if model["pools"][p]])
        if len(model["pools"][pool]) < 2:
            return self._add(model)
        name = self.random.choice(sorted(model["pools"][pool]))
        del model["pools"][pool][name]
        return "BackendDel", {"pool": pool, "name": name, "now": True}

    def _pool(self, model):
        used = {pool for _, pool in model["services"].values()}
        loose = sorted(set(model["pools"]) - used - {"web"})
        if loose and self.random.random() < 0.5:
            name = self.random.choice(loose)
            del model["pools"][name]
            return "PoolDel", {"name": name}
        name = next(f"p{i}" for i in range(99) if f"p{i}" not in model["pools"])
        if len(model["pools"]) > 6:
            return self._weight(model)
        model["pools"][name] = {}
        return "PoolAdd", {"name": name, "slots": SLOTS}

    def _service(self, model):
        others = sorted(set(model["services"]) - {"www"})
        if others and self.random.random() < 0.5:
            name = self.random.choice(others)
            del model["services"][name]
            return "ServiceDel", {"name": name}
        ports = {port for port, _ in model["services"].values()}
        port = self.random.choice([p for p in range(81, 120) if p not in ports])
        pool = self.random.choice(sorted(model["pools"]))
        model["services"][f"s{port}"] = (port, pool)
        return "ServiceAdd", {"name": f"s{port}", "address": "192.0.2.10", "protocol": "tcp", "ports": str(port),
                              "pool": pool}

    def _document(self, model):
        for _ in range(self.random.randint(1, 4)):
            self.random.choice([self._weight, self._add, self._delete, self._service])(model)
        return "Apply", {"document": json.dumps(document(model, self.key_file))}

    def run(self, shunt, most=10**9):
        """Until the daemon goes away, or `most` changes were made."""
        try:
            for _ in range(most):
                method, parameters, self.in_flight = self.next()
                with Connection(shunt) as connection:
                    reply = connection.ask(method, **parameters)
                if reply is None:
                    return
                if "error" in reply:
                    said = reply["parameters"]["message"]
                    # No disk; or too many slots in transition, which settle after hours.
                    assert "No space left" in said or "in transition" in said, (method, parameters, reply)
                    self.refused += "No space left" in said
                    self.busy += "in transition" in said
                else:
                    self.acknowledged = self.in_flight
                    self.done += 1
                self.in_flight = None
        except (BrokenPipeError, ConnectionError, FileNotFoundError):
            return

    def settle(self, shunt, found):
        """The daemon is back: what it has must be the acknowledged state, or the one that was in flight."""
        model = model_of(found)
        assert model in [self.acknowledged, self.in_flight or self.acknowledged], \
            f"neither acknowledged nor in flight:\n{model}\n{self.acknowledged}\n{self.in_flight}\n{shunt.log_tail()}"
        taken = model != self.acknowledged
        self.acknowledged, self.in_flight = model, None
        return taken
