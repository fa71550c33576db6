# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntd, shuntctl and shunt-loader in a node of a lab, as an operator would run them."""

import ipaddress
import json
import os
import secrets
import subprocess
import sys
import time

from lab import BUILD, TOP, LabError

sys.path.insert(0, str(TOP / "tests/golden"))
import flowhash  # noqa: E402


def wait_for(what, condition, timeout=10.0, interval=0.05):
    """Poll until `condition()` is true and return what it gave; LabError after `timeout` seconds."""
    until = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise LabError(f"not within {timeout:g} s: {what}")
        time.sleep(interval)


class CtlError(Exception):
    """shuntctl said no: its exit code, and the error object of its JSON mode."""

    def __init__(self, code, output):
        super().__init__(f"shuntctl: exit {code}: {output.strip()}")
        self.code = code


class Balancer:
    """One instance on the lab's node lb."""

    def __init__(self, lab, node="lb", instance=None):
        self.lab, self.node = lab, node
        self.options = []  # further ones of shuntd
        self.instance = instance or lab.instance(node)
        self.dir = lab.dir / self.instance
        self.dir.mkdir(exist_ok=True)
        self.config = self.dir / "shunt.yaml"
        self.key_text = secrets.token_hex(16)
        self.key = flowhash.Key(self.key_text)
        key_file = self.dir / "hash.key"
        key_file.touch(mode=0o600)
        key_file.write_text(self.key_text + "\n")
        self.process = None
        self.log = self.dir / "shuntd.log"

    # ---- the document ----

    def write(self, pools, services, **more):
        """pools: {name: {backend: (address, weight)}} or {name: {"backends": ..., other keys}}; services: rows; other keys."""
        document = {"version": 1, "hash-key-file": str(self.dir / "hash.key"), "pools": [], "services": services,
                    **more}
        for name, pool in pools.items():
            extra = {k: v for k, v in pool.items() if k != "backends"} if "backends" in pool else {}
            backends = pool["backends"] if "backends" in pool else pool
            document["pools"].append({
                "name": name, "table": {"algorithm": "maglev", "size": 65537}, "encapsulation": {"type": self.lab.info["encapsulation"]},
                **extra, "backends": [{"name": b, "address": a, "weight": w} for b, (a, w) in backends.items()]})
        # JSON is YAML too.
        self.config.write_text(json.dumps(document, indent=2) + "\n")

    def web(self, weights=None, version=4, services=None, ports=(80,)):
        """The usual document: the service of a family, or of both, on the lab's backends by `version` outside."""
        weights = weights or {b: 1 for b in self.lab.backends}
        pool = {b: (self.lab.address(b, version), w) for b, w in weights.items()}
        rows = [{"name": f"www{ipaddress.ip_address(s).version}", "address": s, "protocol": "tcp",
                 "ports": list(ports), "pool": "web"} for s in services or self.lab.info["services"]]
        self.write({"web": pool}, rows)

    # ---- programs ----

    def loader(self, *args):
        return self.lab.run(self.node, BUILD / "shunt-loader", *args, "--instance", self.instance)

    def attach(self, *interfaces, **options):
        extra = [x for k, v in options.items() for x in (f"--{k}", v)]
        return self.loader("attach", *(interfaces or ("lb0",)), *extra)

    def start(self, wait=True):
        """Start shuntd; with wait, until it answers and every backend of weight above 0 that does not drain has its slots."""
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = self.lab.popen(self.node, BUILD / "shuntd", "-c", self.config, "--instance", self.instance,
                                          "--state-dir", self.dir / "state", *self.options,
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout=15.0):
        def ready():
            if self.process.poll() is not None:
                raise LabError(f"shuntd ended ({self.process.returncode}): {self.log.read_text()[-2000:]}")
            try:
                rows = self.ctl("backend", "list")["backends"]
            except CtlError:
                return False
            return all(row["slots"] > 0 for row in rows
                       if row["weight"] > 0 and row["state"] not in ("draining", "leaving", "maintenance"))
        try:
            wait_for("shuntd answers and all backends have slots", ready, timeout)
        except LabError as error:
            raise LabError(f"{error}; its log:\n{self.log.read_text()[-2000:]}") from None

    def wait_for_rows(self, condition, timeout=15.0):
        """The rows of `backend list`, once they are as wanted."""
        def found():
            rows = self.ctl("backend", "list")["backends"]
            return rows if condition(rows) else None
        return wait_for("the backends are as wanted", found, timeout)

    def kill(self, sign=9):
        os.kill(self.process.pid, sign)
        self.process.wait(10)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    # ---- asking ----

    def ctl_text(self, *args):
        done = subprocess.run(self.lab.argv(self.node, [BUILD / "shuntctl", "--instance", self.instance, *args]),
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise CtlError(done.returncode, done.stderr + done.stdout)
        return done.stdout

    def ctl(self, *args):
        return json.loads(self.ctl_text("-j", *args) or "{}")

    def counters(self):
        return {row["name"]: row["packets"] for row in self.ctl("counters")["counters"]}

    def pool(self, name="web"):
        return next(row for row in self.ctl("pool", "list")["pools"] if row["name"] == name)

    def owners(self, pool="web"):
        """The name of each slot's owner (None: nobody)."""
        table = self.ctl("pool", "table", pool, "--slots")
        names = [row["backend"] for row in table["rows"]] + [None]
        return [names[index] for index, count in table["owners"] for _ in range(count)]

    def slot(self, source, sport, destination, dport, slots, protocol=6):
        """The slot of a flow, by the second implementation of the flow hash."""
        value = flowhash.flow_hash(self.key, flowhash.MODE_5TUPLE, source, sport, destination, dport, protocol)
        return flowhash.slot(value, slots)


class Load:
    """http_load.py in the client's namespace; ends with the block."""

    def __init__(self, lab, address, *args, node="client"):
        self.process = lab.popen(node, "/usr/bin/python3", TOP / "tests/lib/http_load.py", address, *args,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, timeout=60):
        output, errors = self.process.communicate(timeout=timeout)
        if self.process.returncode != 0:
            raise LabError(f"http_load.py: {errors.decode()[-500:]}")
        return json.loads(output)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
