# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks go the way of clients' packets, whatever is put in front of those."""

import pytest
from conftest import Checked
from frames import Wire
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

KINDS = {4: IP, 6: IPv6}


@pytest.mark.parametrize("encapsulation", ("gue", "l2"))
@pytest.mark.parametrize("outer", (4, 6))
def test_a_backend_is_up_while_it_answers_inside(encapsulation, outer):
    site = Checked(backends=2, outer=outer, encapsulation=encapsulation, arms=2)
    try:
        site.write(**{"packet-size": 1200})
        site.shunt.attach("lb0")
        with Wire(site.lab, "router", "b1") as wire:
            site.shunt.start()
            site.all_up()
            frames = [Ether(f) for f in wire.frames(1, outgoing=True)]
        packets = [f[KINDS[outer]] for f in frames if KINDS[outer] in f]
        inner = [p for p in packets if p.dst in site.lab.info["services"]]
        if encapsulation == "gue":
            outers = [p for p in packets if UDP in p and p[UDP].dport == 6080]
            assert outers and {p[UDP].chksum for p in outers} == {p.__class__(without_checksum(p))[UDP].chksum
                                                                 if outer == 6 else 0 for p in outers}
            assert max(len(p) for p in outers) >= 1200
            inner = [KINDS[4 if bytes(p[UDP].payload)[1] == 4 else 6](bytes(p[UDP].payload)[4:]) for p in outers]
        assert {p.version for p in inner if TCP in p} == ({4, 6} if encapsulation == "gue" else {outer})
        site.lab.sh("b1", "ip address del 192.0.2.10/32 dev lo")
        assert site.wait_out()["health"] == "down"
    finally:
        site.close()


def without_checksum(packet):
    again = packet.copy()
    del again[UDP].chksum
    return bytes(again)
