# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An instance of shunt in a network namespace of its own, spoken to through harness.c."""

import json
import os
import shlex
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("O", TOP / "build"))
HARNESS = os.environ.get("SHUNT_TEST_HARNESS", str(BUILD / "tests/packets/harness"))
# The words before each command that make it run elsewhere: in the virtual machine of tests/vm.
VIA = shlex.split(os.environ.get("SHUNT_TEST_VIA", ""))

XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT = range(5)

# The interfaces of the namespace and their MAC addresses: packets come in by the first.
INTERFACES = {"in": "02:00:00:00:00:01", "out": "02:00:00:00:00:02"}


class Refused(Exception):
    """The library or the kernel said no."""

    def __init__(self, reply):
        super().__init__(f"{reply['error']}: {reply['report'].strip()}")
        self.error, self.report = reply["error"], reply["report"]


def run(*argv, check=True):
    return subprocess.run([*VIA, *argv], check=check, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


class Kernel:
    """Open with `with`; everything it made is gone afterwards."""

    count = 0

    def __init__(self, capacities=None):
        Kernel.count += 1
        self.name = f"packets-{os.getpid()}-{Kernel.count}"
        self.capacities = capacities or {}
        self.ifindex = {}
        self.process = None

    def __enter__(self):
        try:
            run("ip", "netns", "add", self.name)
            for name, mac in INTERFACES.items():
                run("ip", "-n", self.name, "link", "add", name, "address", mac, "mtu", "9216", "type", "veth", "peer",
                    "name", f"{name}-peer")
            links = json.loads(run("ip", "-n", self.name, "-j", "link"))
            self.ifindex = {link["ifname"]: link["ifindex"] for link in links}
            # nsenter and not `ip netns exec`, which hides bpffs.
            self.process = subprocess.Popen(
                [*VIA, "nsenter", f"--net=/run/netns/{self.name}", "--", "env", f"SHUNT_OBJECT_DIR={BUILD}",
                 HARNESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.ask("open", instance=self.name, capacities=self.capacities)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait(30)
        run("sh", "-c", f"ip netns del {self.name}; rm -rf /sys/fs/bpf/shunt/{self.name} /run/shunt/{self.name}.*",
            check=False)

    def ask(self, operation, **parameters):
        return self.ask_all([{"op": operation, **parameters}])[0]

    def ask_all(self, requests):
        """Answers in turn.  Not more is sent ahead than fits into a pipe, with its answers."""
        answers = []
        for at in range(0, len(requests), 50):
            some = requests[at : at + 50]
            self.process.stdin.write("".join(json.dumps(request) + "\n" for request in some))
            self.process.stdin.flush()
            answers += [self._answer(request) for request in some]
        return answers

    def _answer(self, request):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the harness died ({self.process.wait(10)}) at {request['op']}")
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply)
        return reply

    def load(self, role="lb", frags=False, gue_port=0):
        self.ask("load", role=role, frags=frags, gue_port=gue_port)

    def apply(self, fleet):
        """The document of a fleet in force, and the ways to its backends known."""
        self.ask("apply", document=fleet.document(), locals=fleet.locals)
        for backend in fleet.backends():
            if backend.reachable:
                self.ask("nexthop", address=backend.address, ifindex=self.ifindex[backend.interface], mac=backend.gateway,
                         source_mac=INTERFACES[backend.interface], mtu=backend.mtu, source=backend.source,
                         gateway=backend.routed)
        self.ask("publish")

    def run(self, frames, role="lb", **options):
        """[(action, frame)] for each frame in."""
        results = self.ask("run", role=role, ifindex=self.ifindex["in"], frames=[bytes(f).hex() for f in frames],
                           **options)["results"]
        return [(result["action"], bytes.fromhex(result["frame"])) for result in results]

    def counters(self):
        """Flat: {("reason", name): packets, ("service" | "backend", name): (packets, bytes)}, without zeros."""
        reply = self.ask("counters")
        flat = {("reason", name): packets for name, packets in reply["reasons"].items()}
        flat.update({("service", name): tuple(stats) for name, stats in reply["services"].items()})
        flat.update({("backend", name): tuple(row["stats"]) for name, row in reply["backends"].items()})
        return flat

    def poke(self, map_name, key, value):
        self.ask("poke", map=map_name, key=key.hex(), value=value.hex())

    def peek(self, map_name, key):
        return bytes.fromhex(self.ask("peek", map=map_name, key=key.hex())["value"])


def difference(before, after):
    """What two counters() differ by."""
    out = {}
    for key, value in after.items():
        was = before.get(key, (0, 0) if isinstance(value, tuple) else 0)
        change = tuple(a - b for a, b in zip(value, was)) if isinstance(value, tuple) else value - was
        if change not in (0, (0, 0)):
            out[key] = change
    return out
