# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""GUE, MAC addresses alone, and outer sources of a prefix, from end to end; what is on the wire in between."""

import ipaddress
import json
import struct

import pytest
from frames import Wire
from lab import LabError, SERVICE_NETWORKS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from test_http import ask
from tshark import judged, write_pcap

KINDS = {4: IP, 6: IPv6}
REQUESTS = 60


def asked(site, family, backend="b1", gue_port=6080):
    """Frames to the backend while requests are answered; tshark finds nothing wrong with them."""
    with Wire(site.lab, "router", backend) as wire:
        shares = ask(site, family, REQUESTS)
        frames = list(wire.frames(1, outgoing=True))
    assert shares[backend]
    write_pcap(site.lab.dir / "asked.pcap", frames)
    wrong, stacks = judged(site.lab.dir / "asked.pcap", gue_port)
    assert wrong == {}
    if site.lab.info["encapsulation"] == "gue":
        inside = f":udp:gue:{'ip' if family == 4 else 'ipv6'}:tcp:"
        assert sum(count for stack, count in stacks.items() if inside in f"{stack}:") >= 4 * shares[backend]
    return shares, [Ether(frame) for frame in frames]


def checked(packet):
    """The packet with its outer UDP checksum computed anew by Scapy."""
    again = packet.copy()
    del again[UDP].chksum
    return packet.__class__(bytes(again))


@pytest.mark.parametrize("port", (6080, 5555))
@pytest.mark.parametrize("outer", (4, 6))
def test_gue_carries_both_families(sites, outer, port):
    site = sites(backends=2, decap=False, encapsulation="gue")
    lab = site.lab
    for backend in lab.backends:
        lab.attach_decap(backend, gue_port=port)
    rows = [{"name": f"www{v}", "address": lab.service(v), "protocol": "tcp", "ports": [80], "pool": "web"} for v in (4, 6)]
    site.shunt.write({"web": {"encapsulation": {"type": "gue", "port": port},
                              "backends": {b: (lab.address(b, outer), 1) for b in lab.backends}}}, rows)
    site.start()
    for inner in (4, 6):
        shares, frames = asked(site, inner, gue_port=port)
        packets = [f[KINDS[outer]] for f in frames if KINDS[outer] in f and f[KINDS[outer]].dst == lab.address("b1", outer) and
                   UDP in f and f[UDP].dport == port]
        assert len(packets) >= 4 * shares["b1"]
        for packet in packets:
            control, protocol, flags = struct.unpack_from(">BBH", bytes(packet[UDP].payload))
            assert (control, protocol, flags) == (0, {4: 4, 6: 41}[inner], 0)
            assert KINDS[inner](bytes(packet[UDP].payload)[4:]).dst == lab.service(inner)
            assert packet[UDP].sport >= 0xC000
            assert packet[UDP].chksum == (0 if outer == 4 else checked(packet)[UDP].chksum)
        # Each connection has a source port of its own, but for a chance of one in 16,384.
        assert len({packet[UDP].sport for packet in packets}) >= shares["b1"] - 2
    assert not [name for name, count in site.shunt.counters().items() if count and name.startswith(("drop_", "bug_"))]


def test_mac_addresses_alone(sites):
    site = sites(backends=3, arms=2, encapsulation="l2")
    for outer in (4, 6):
        site.shunt.web(version=outer)
        if outer == 4:
            site.start()
        else:
            site.shunt.ctl("reload", "--wait")
            site.shunt.wait_ready()
        mac = json.loads(site.lab.run("b1", "ip", "-j", "link", "show", "eth0"))[0]["address"]
        for inner in (4, 6):
            shares, frames = asked(site, inner)
            packets = [f for f in frames if KINDS[inner] in f and f[KINDS[inner]].dst == site.lab.service(inner)]
            assert len(packets) >= 4 * shares["b1"]
            assert {frame.dst for frame in packets} == {mac}
            # The router took one off, shunt another.
            assert {frame.ttl if inner == 4 else frame.hlim for frame in packets} == {62}


def test_mac_addresses_alone_reach_nobody_behind_a_router(sites):
    site = sites(backends=2, arms=2, encapsulation="l2")
    site.shunt.web()
    site.start()
    # Both backends by the router from now on.
    site.lab.set_arms(1)
    rows = site.shunt.wait_for_rows(lambda rows: not any(row["slots"] for row in rows))
    assert {row["why"] for row in rows} == {"it is behind a gateway, and l2 needs it on the link"}
    assert {row["state"] for row in rows} == {"unreachable"}
    site.lab.set_arms(2)
    site.shunt.wait_ready()
    ask(site, 4, REQUESTS)


def test_a_lab_of_one_arm_has_no_l2(sites):
    with pytest.raises(LabError, match="two arms"):
        sites(backends=1, encapsulation="l2")


@pytest.mark.parametrize("kind", ("ipip", "gue"))
@pytest.mark.parametrize("outer, prefix", ((4, "10.77.3.0/24"), (6, "fd00:77:0:5::/64")))
def test_sources_of_a_prefix(sites, outer, prefix, kind):
    site = sites(backends=2, decap=False, encapsulation=kind)
    lab = site.lab
    for backend in lab.backends:
        lab.attach_decap(backend, sources=[prefix], destinations=SERVICE_NETWORKS)
    rows = [{"name": f"www{v}", "address": lab.service(v), "protocol": "tcp", "ports": [80], "pool": "web"} for v in (4, 6)]
    site.shunt.write({"web": {"encapsulation": {"type": kind, "source": [prefix]},
                              "backends": {b: (lab.address(b, outer), 1) for b in lab.backends}}}, rows)
    site.start()
    for inner in (4, 6):
        shares, frames = asked(site, inner)
        sources = {ipaddress.ip_address(f[KINDS[outer]].src) for f in frames if KINDS[outer] in f and
                   f[KINDS[outer]].dst == lab.address("b1", outer)}
        sources = {source for source in sources if source in ipaddress.ip_network(prefix)}
        # Of 256 addresses some 30 connections share a few.
        assert len(sources) > shares["b1"] * 0.7
