# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The network around the balancer changes under traffic: gateways, link-layer addresses, links."""

import subprocess
import time

import pytest
from balancer import Load, wait_for


@pytest.fixture
def site(sites):
    made = sites(backends=3)
    made.shunt.web({b: 1 for b in made.lab.backends})
    # The kernel probes a managed neighbour when its entry has been reachable for this long; by default 15 to 45 s.
    made.lab.sh("lb", "".join(f"sysctl -qw net.ipv{v}.neigh.{i}.base_reachable_time_ms=2000 "
                              f"net.ipv{v}.neigh.{i}.delay_first_probe_time=1\n"
                              for v in (4, 6) for i in ("lb0", "lb1")))
    return made.start()


def under_load(site, action, settled):
    """Load of both families around `action`; afterwards `settled()` has to come true.

    Returns failures before it did, failures after it, and the number of requests after it.
    """
    loads = [Load(site.lab, site.lab.service(v), "--hold", "20", "--concurrency", "2") for v in (4, 6)]
    try:
        time.sleep(1)
        action()
        wait_for("the balancer follows", settled, timeout=60)
        time.sleep(0.3)
        good = time.monotonic()
        time.sleep(2)
        results = [load.finish() for load in loads]
    finally:
        for load in loads:
            load.close()
    requests = [r for result in results for r in result["requests"]]
    held = [h for result in results for h in result["held"]]
    early = [r for r in requests if r[2] and r[3] < good]
    late = [r for r in requests if r[2] and r[3] >= good]
    return len(early) + len([h for h in held if h["error"]]), late, sum(r[3] >= good for r in requests)


def ways(site):
    """(next hop, interface) of each backend, as the daemon tells."""
    return {row["name"]: (row["nexthop"], row["interface"]) for row in site.shunt.ctl("backend", "list")["backends"]}


def answers(site):
    """Whether a new connection of each family gets its answer."""
    return all(subprocess.run(site.lab.argv("client", ["curl", "-s", "--max-time", "1", f"http://{host}/"]), check=False,
                              capture_output=True).returncode == 0
               for host in (site.lab.service(4), f"[{site.lab.service(6)}]"))


def mac(site, node, interface):
    return site.lab.run(node, "ip", "-br", "link", "show", interface).split()[2]


def test_another_gateway_on_another_interface_loses_nothing(site):
    """From the router to the backends' own link: the old way holds until the new one is known."""
    digest = site.shunt.pool()["digest"]
    early, late, count = under_load(site, lambda: site.lab.set_arms(2),
                                    lambda: all(way[1] == "lb1" for way in ways(site).values()))
    assert (early, late) == (0, []) and count > 100
    assert site.shunt.counters()["forward_redirect"] > 100
    early, late, count = under_load(site, lambda: site.lab.set_arms(1),
                                    lambda: all(way[1] == "lb0" for way in ways(site).values()))
    assert (early, late) == (0, []) and count > 100
    assert site.shunt.pool()["digest"] == digest


@pytest.mark.parametrize("silent", (False, True), ids=("announced", "silent"))
def test_a_new_address_of_the_next_hop_is_followed(site, silent):
    """Announced: the router asks for the balancer's address from its new one.  Silent: it has no need to ask, so only
    the kernel's own probes of a managed neighbour find out."""
    new = "02:00:00:00:99:01"
    known = "".join(f"ip neigh replace {address} lladdr {mac(site, 'lb', 'lb0')} nud permanent dev lb0\n"
                    for address in site.lab.info["front"]["lb"])
    change = f"ip link set lb0 address {new}\n" + (known if silent else "")
    _, late, count = under_load(site, lambda: site.lab.sh("router", change),
                                lambda: {way[0] for way in ways(site).values()} == {new} and answers(site))
    assert late == [] and count > 100


def test_a_link_that_flaps_comes_back_by_itself(site):
    def flap():
        site.lab.run("lb", "ip", "link", "set", "lb0", "down")
        time.sleep(1)
        site.lab.restore("lb")

    digest = site.shunt.pool()["digest"]
    _, late, count = under_load(site, flap, lambda: answers(site))
    assert late == [] and count > 100
    assert site.shunt.pool()["digest"] == digest


def test_a_peer_that_flaps_comes_back_by_itself(site):
    def flap():
        site.lab.run("router", "ip", "link", "set", "lb0", "down")
        time.sleep(1)
        site.lab.restore("router")

    digest = site.shunt.pool()["digest"]
    _, late, count = under_load(site, flap, lambda: answers(site))
    assert late == [] and count > 100
    assert site.shunt.pool()["digest"] == digest
