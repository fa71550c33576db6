# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two balancers announce their services over BGP, by BIRD, to a router that spreads flows over both: one is drained and
comes back, and no client notices."""

import itertools
import json
import os
import re
import subprocess

import pytest
from balancer import Balancer, Load, wait_for
from http_server import start_http
from lab import FRONT, SECOND, SERVICE_NETWORKS, TOP, Lab, LabError

TABLE = 100
numbers = itertools.count(1)

# docs/operations.md shows the balancer's half of this: the test takes it from there.
ROUTER = """
router id 10.0.0.1;
protocol device { }
protocol kernel { merge paths on; ipv4 { import none; export all; }; }
protocol kernel { merge paths on; ipv6 { import none; export all; }; }
template bgp balancer {
	local as 65000;
	connect delay time 1; connect retry time 1; error wait time 1, 1;
	ipv4 { import all; export none; };
	ipv6 { import all; export none; };
}
"""


def balancer_conf(node, ends):
    """The example of the documentation, with this balancer's addresses."""
    example = re.search(r"```\n(ipv4 table shunt4;.*?)```", (TOP / "docs/operations.md").read_text(), re.S)[1]
    own, router = ends["lb"], ends["router"]
    text = example.replace("10.0.0.2", own[0]).replace("10.0.0.1", router[0]).replace("fd00::2", own[1])
    timers = "\tconnect delay time 1; connect retry time 1; error wait time 1, 1;\n"
    return f"router id {own[0]};\n" + text.replace("\tneighbor", timers + "\tneighbor")


class Site:
    def __init__(self):
        self.lab = Lab(f"t{os.getpid()}-bird{next(numbers)}")
        self.birds, self.balancers = [], []
        try:
            self.lab.up(backends=3)
            self.lab.add_balancer()
            self.lab.sh("router", "".join(f"ip route del {network}\n" for network in SERVICE_NETWORKS) +
                        "sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1\n")
            start_http(self.lab)
            for node in ("lb", "lb2"):
                self.balancer(node)
            neighbours = "".join(f"protocol bgp from balancer {{ neighbor {ends['lb'][0]} as 65001; }}\n"
                                 for ends in (FRONT, SECOND))
            self.bird("router", ROUTER + neighbours)
            self.bird("lb", balancer_conf("lb", FRONT))
            self.bird("lb2", balancer_conf("lb2", SECOND))
        except BaseException:
            self.close()
            raise

    def balancer(self, node):
        shunt = Balancer(self.lab, node)
        self.balancers.append(shunt)
        if len(self.balancers) > 1:  # one key for the fleet
            (shunt.dir / "hash.key").write_text(self.balancers[0].key_text + "\n")
        shunt.web()
        document = json.loads(shunt.config.read_text())
        shunt.config.write_text(json.dumps({**document, "announce": {"table": TABLE}}))
        shunt.attach()
        shunt.start()

    def bird(self, node, text):
        home = self.lab.dir / f"bird-{node}"
        home.mkdir()
        (home / "bird.conf").write_text(text)
        with open(home / "log", "w", encoding="utf-8") as log:
            self.birds.append(self.lab.popen(node, "bird", "-f", "-c", home / "bird.conf", "-s", home / "ctl", "-P",
                                             home / "pid", stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def ways(self, version=4):
        """The balancers to which the router sends packets for the service."""
        family = f"-{version}"
        rows = json.loads(self.lab.run("router", "ip", "-j", family, "route", "show", self.lab.service(version)))
        hops = [hop for row in rows for hop in row.get("nexthops", [row])]
        return {{"lb0": "lb", "lb2": "lb2"}[hop["dev"]] for hop in hops}

    def expect(self, *nodes):
        for version in (4, 6):
            try:
                wait_for(f"IPv{version} goes to {nodes}", lambda v=version: self.ways(v) == set(nodes), 30)
            except LabError as error:
                logs = [(self.lab.dir / f"bird-{n}" / "log").read_text()[-1000:] for n in ("router", "lb", "lb2")]
                raise LabError(f"{error}: {self.ways(4)} {self.ways(6)}; BIRD: {logs}") from None

    def forwarded(self):
        return [shunt.counters()["forward_tx"] for shunt in self.balancers]

    def under_load(self, action):
        """The action while connections are held open and new ones made; what went wrong, and how many there were."""
        loads = [Load(self.lab, self.lab.service(v), "--hold", "40", "--concurrency", "2") for v in (4, 6)]
        nodes = self.ways(4) | self.ways(6)
        before = self.forwarded()

        def flows():
            return all(now > then + 100 for shunt, now, then in zip(self.balancers, self.forwarded(), before)
                       if shunt.node in nodes)
        try:
            wait_for(f"packets flow by {nodes}", flows, 30)
            action()
            results = [load.finish() for load in loads]
        finally:
            for load in loads:
                load.close()
        wrong = [r[2] for result in results for r in result["requests"] if r[2]]
        wrong += [h["error"] for result in results for h in result["held"] if h["error"]]
        return wrong, sum(len(result["requests"]) for result in results)

    def close(self):
        for shunt in self.balancers:
            shunt.stop()
        for bird in self.birds:
            bird.terminate()
            bird.wait(10)
        self.lab.down()


@pytest.fixture(scope="module")
def site():
    made = Site()
    yield made
    made.close()


def test_a_drain_moves_all_clients_and_breaks_none(site):
    first, second = site.balancers
    site.expect("lb", "lb2")
    said = {}

    def drain():
        said.update(first.ctl("self", "drain", "--wait-for", "30"))
        said["ways"] = site.ways(4) | site.ways(6)

    wrong, requests = site.under_load(drain)
    assert wrong == [] and requests > 100
    # Packets had ceased before it was detached.
    assert said["ways"] == {"lb2"} and said["late_packets"] == 0 and said["detached"] == ["lb0"]
    before = site.forwarded()
    wrong, requests = site.under_load(lambda: None)
    after = site.forwarded()
    assert wrong == [] and requests > 0
    assert after[0] == before[0] and after[1] > before[1]


def test_the_way_back_breaks_none(site):
    first, second = site.balancers

    def undrain():
        first.ctl("self", "undrain")
        site.expect("lb", "lb2")

    wrong, requests = site.under_load(undrain)
    assert wrong == [] and requests > 0
    before = site.forwarded()
    assert site.under_load(lambda: None)[0] == []
    assert all(now > then for now, then in zip(site.forwarded(), before))


def test_a_killed_daemon_keeps_its_announcements_and_an_empty_pool_does_not(site):
    first, second = site.balancers
    first.kill(9)
    assert site.ways() == {"lb", "lb2"}
    first.start()
    site.expect("lb", "lb2")

    def empty():
        for name in site.lab.backends:
            second.ctl("backend", "set", f"web/{name}", "--weight", "0")
        site.expect("lb")

    empty()
    assert site.under_load(lambda: None)[0] == []
    for name in site.lab.backends:
        second.ctl("backend", "set", f"web/{name}", "--weight", "1")
    site.expect("lb", "lb2")
