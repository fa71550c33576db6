# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks go the way of clients' packets, whatever is put in front of those."""

import pytest
from conftest import Checked
from frames import Wire
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from tshark import complaints, write_pcap

KINDS = {4: IP, 6: IPv6}
FIRST = 1400  # bytes of a check's first packet
NARROW = 1300
ETHER = 14
FRONT = {("gue", 4): 32, ("gue", 6): 52, ("l2", 4): 0, ("l2", 6): 0}


@pytest.mark.parametrize("encapsulation", ("gue", "l2"))
@pytest.mark.parametrize("outer", (4, 6))
def test_a_backend_is_up_while_it_answers_inside(encapsulation, outer):
    site = Checked(backends=2, outer=outer, encapsulation=encapsulation, arms=2)
    try:
        site.write(**{"packet-size": FIRST})
        site.shunt.attach("lb0")
        with Wire(site.lab, "lb", "lb1") as leaving, Wire(site.lab, "router", "b1") as arriving:
            site.shunt.start()
            site.all_up()
            left = list(leaving.frames(1, outgoing=True))
            arrived = list(arriving.frames(0.2, outgoing=True))
        write_pcap(site.lab.dir / "checks.pcap", left + arrived)
        assert complaints(site.lab.dir / "checks.pcap") == {}
        frames, at_b1 = [Ether(f) for f in left], [Ether(f) for f in arrived]
        checks = [(f, p) for f in frames if (p := check_in(f, site.lab, encapsulation, outer))]
        assert {p.version for _, p in checks} == {4, 6}
        # All of it is on the wire, at both ends of the way.
        full = {FIRST + FRONT[encapsulation, outer] + ETHER}
        assert {len(f) for f, p in checks if p[TCP].flags == "S"} == full
        assert {len(f) for f in at_b1 if (p := check_in(f, site.lab, encapsulation, outer)) and p[TCP].flags == "S"} == full
        assert {len(f) for f, p in checks if p[TCP].flags == "A"} < set(range(200))
        if encapsulation == "gue":
            outers = [f[KINDS[outer]] for f, _ in checks]
            assert {p[UDP].chksum for p in outers} == {p.__class__(without_checksum(p))[UDP].chksum
                                                       if outer == 6 else 0 for p in outers}
        # The bridge follows its ports, until it is told.
        site.lab.sh("router", f"ip link set b1 mtu {NARROW}; ip link set switch mtu 1600")
        assert site.wait_out()["health"] == "down"
        site.lab.sh("router", "ip link set b1 mtu 1600")
        site.wait_back()
        site.lab.sh("b1", "ip address del 192.0.2.10/32 dev lo")
        assert site.wait_out()["health"] == "down"
    finally:
        site.close()


def check_in(frame, lab, encapsulation, outer):
    """The packet of a check, as the backend's stack sees it; None where the frame has none."""
    if encapsulation == "gue":
        if KINDS[outer] not in frame or UDP not in frame or frame[UDP].dport != 6080:
            return None
        header = bytes(frame[UDP].payload)
        packet = (IP if header[1] == 4 else IPv6)(header[4:])
    else:
        packet = frame.payload
    return packet if TCP in packet and packet.dst in lab.info["services"] else None


def without_checksum(packet):
    again = packet.copy()
    del again[UDP].chksum
    return bytes(again)
