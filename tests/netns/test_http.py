# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTTP over TCP: real connections by nginx and asyncio: every encapsulation, shares, another interface."""

import collections

import pytest
from balancer import Load
from frames import Wire
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from tshark import complaints, write_pcap

REQUESTS = 300


def ask(site, version, requests=REQUESTS, port=80):
    """The requests of one load: every one answered, each by the backend that the table names for its connection."""
    owners = site.shunt.owners()
    with Load(site.lab, site.lab.service(version), "--requests", str(requests), "--port", str(port)) as load:
        results = load.finish()["requests"]
    assert [r[2] for r in results if r[2]] == []
    assert len(results) == requests
    client = site.lab.address("client", version)
    for sport, name, *_ in results:
        slot = site.shunt.slot(client, sport, site.lab.service(version), port, len(owners))
        assert owners[slot] == name, f"port {sport} has slot {slot} of {owners[slot]}, but {name} answered"
    return collections.Counter(r[1] for r in results)


@pytest.mark.parametrize("version", (4, 6))
def test_every_request_is_answered_by_the_backend_that_its_slot_names(web, version):
    assert set(ask(web, version)) == set(web.lab.backends)


@pytest.mark.parametrize("outer", (4, 6))
def test_both_families_inside_this_family(sites, outer):
    site = sites(backends=2)
    site.shunt.web(version=outer)
    site.start()
    kinds = {4: IP, 6: IPv6}
    for inner in (4, 6):
        with Wire(site.lab, "router", "b1") as to_b1:
            shares = ask(site, inner, 60)
            # The wrapped packets as the router sends them to b1, which has taken a share of the requests.
            frames = list(to_b1.frames(1, outgoing=True))
        write_pcap(site.lab.dir / "to_b1.pcap", frames)
        assert complaints(site.lab.dir / "to_b1.pcap") == {}
        tunnels = [f for f in map(Ether, frames) if kinds[outer] in f and kinds[inner] in f[kinds[outer]].payload]
        assert shares["b1"] and len(tunnels) >= 4 * shares["b1"]
        for frame in tunnels:
            wrapped = frame[kinds[outer]]
            assert wrapped.dst == site.lab.address("b1", outer)
            assert wrapped.src == site.lab.info["front"]["lb"][0 if outer == 4 else 1]
            assert isinstance(wrapped.payload, kinds[inner]) and wrapped.payload.dst == site.lab.service(inner)


def test_shares_are_within_3_points_of_their_targets(sites):
    site = sites(backends=4)
    weights = {"b1": 1, "b2": 2, "b3": 3, "b4": 10}
    site.shunt.web(weights)
    site.start()
    for version in (4, 6):
        # With 6,000 requests 3 points are more than four standard deviations.
        shares = ask(site, version, 6000)
        for backend, weight in weights.items():
            assert abs(100 * shares[backend] / 6000 - 100 * weight / 16) < 3, (version, backend, shares)


def test_another_interface_out_than_in(sites):
    site = sites(backends=3, arms=2)
    site.shunt.web()
    site.start()
    for version in (4, 6):
        ask(site, version)
    counters = site.shunt.counters()
    assert counters["forward_redirect"] > 2 * REQUESTS and counters["forward_tx"] == 0


@pytest.mark.parametrize("mode", ("generic", "auto"))
def test_other_modes_balance_too(sites, mode):
    site = sites(backends=2)
    site.shunt.web()
    said = site.shunt.attach("lb0", mode=mode)
    assert ("generic" if mode == "generic" else "native") in said
    site.shunt.start()
    for version in (4, 6):
        ask(site, version, 60)
