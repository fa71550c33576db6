# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every field of what is sent, decoded by offsets from the RFCs alone: no Scapy, no stored bytes."""

import ipaddress
import struct

from all_cases import CASES
from cases import NETWORK, Forward, ether, ip4, ip6, tcp, udp
from decode import decode, decode_ip
from kernel import INTERFACES

BACKENDS = {ipaddress.ip_address(b.address): (pool, b) for pool in NETWORK.pools.values() for b in pool.backends}


def check_source(pool, backend, source):
    networks = [n for n in map(ipaddress.ip_network, pool.source) if n.version == backend.family]
    assert source in (networks[0] if networks else ipaddress.ip_network(backend.source))


def check_gue(pool, backend, before, after):
    """UDP and GUE's four bytes; the client's packet behind them."""
    source, destination, length, check, control, protocol, flags = struct.unpack_from(">HHHHBBH", after["rest"])
    assert source >= 0xC000 and destination == pool.port
    assert length == 12 + before["length"]
    assert (control, flags) == (0, 0)
    assert protocol == {4: 4, 6: 41}[before["version"]]
    if backend.family == 4 or pool.udp6_checksum == "zero":
        assert check == 0
    else:
        datagram = after["rest"][:length]
        pseudo = after["source"].packed + after["destination"].packed + struct.pack(">II", length, 17)
        assert check and words(pseudo + datagram) == 0xFFFF
    return after["rest"][12:]


def words(data):
    """The one's complement sum (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def check_outer(before, after):
    """The outer header; what stands behind it."""
    pool, backend = BACKENDS[after["destination"]]
    gue = pool.encapsulation == "gue"
    assert after["dst_mac"] == backend.gateway
    assert after["src_mac"] == INTERFACES[backend.interface]
    assert after["tags"] == before["tags"]
    assert after["ethertype"] == {4: 0x0800, 6: 0x86DD}[after["version"]]
    assert after["version"] == backend.family
    check_source(pool, backend, after["source"])
    assert after["tos"] == before["tos"]
    assert after["ttl"] == 64
    assert after["protocol"] == (17 if gue else {4: 4, 6: 41}[before["version"]])
    inside = before["length"] + (12 if gue else 0)
    if after["version"] == 6:
        assert after["label"] != 0
        assert after["payload"] == inside
    else:
        assert after["header"] == 20
        assert after["length"] == 20 + inside
        assert after["sum"] == 0xFFFF
        assert (after["df"], after["mf"], after["reserved"], after["offset"]) == (before["df"], False, False, 0)
        if after["df"]:
            assert after["id"] == 0
    return check_gue(pool, backend, before, after) if gue else after["rest"]


def check_sent(before, after):
    if after["destination"] in BACKENDS:
        check_inner(before, decode_ip(check_outer(before, after)))
        return
    # By MAC addresses alone.
    backends = NETWORK.pools["l2"].backends
    assert (after["dst_mac"], after["src_mac"]) in [(b.gateway, INTERFACES[b.interface]) for b in backends]
    assert after["tags"] == before["tags"]
    check_inner(before, after, {"dst_mac", "src_mac"})


def check_inner(before, inner, others=frozenset()):
    assert inner["ttl"] == before["ttl"] - 1
    for name in inner.keys() - {"ttl", "rest", "sum"} - others:
        assert inner[name] == before[name], name
    assert inner["rest"] == before["rest"]
    if inner["version"] == 4:
        # A right sum stays right; a wrong one is as wrong as it was.
        assert inner["sum"] % 0xFFFF == before["sum"] % 0xFFFF


def test_every_field_of_what_is_sent(balancer):
    sent = [case for case in CASES if isinstance(case.expect, Forward) and not case.options and
            (balancer.frags or not case.frags)]
    assert len(sent) > 250
    for case, (_, frame) in zip(sent, balancer.run([case.frame for case in sent])):
        check_sent(decode(bytes(case.frame)), decode(frame))


def test_ids_of_packets_that_may_be_fragmented_differ(balancer):
    """Two packets of one flow, and two flows with one id, must not share an id: their fragments would mix."""
    one_flow = [ether() / ip4(flags=0, id=number) / tcp() for number in range(500)]
    ids = {decode(frame)["id"] for _, frame in balancer.run(one_flow)}
    assert len(ids) == 500
    flows = [ether() / ip4(flags=0, id=1) / tcp(sport=1000 + number) for number in range(500)]
    ids = {decode(frame)["id"] for _, frame in balancer.run(flows)}
    assert len(ids) > 480


def test_flow_labels_spread_over_flows_and_stay_within_one(balancer):
    flows = [ether() / ip6() / udp(sport=1000 + number) for number in range(500)]
    labels = {decode(frame)["label"] for _, frame in balancer.run(flows)}
    assert len(labels) > 490
    packets = [ether() / ip6(hlim=2 + number) / udp(payload=bytes(number)) for number in range(50)]
    assert len({decode(frame)["label"] for _, frame in balancer.run(packets)}) == 1


def test_checksums_with_every_carry(balancer):
    """All 65,536 values of a word of the header, the others large: the outer sum is right, the inner as it was."""
    frame = bytearray(bytes(ether() / ip4(flags=0, tos=0xFC) / tcp(payload=bytes(0xFF - 60))))
    for first in range(0, 65536, 8192):
        frames = []
        for number in range(first, first + 8192):
            # The inner checksum is wrong then, which is none of the balancer's business.
            frame[18:20] = struct.pack(">H", number)
            frames.append(bytes(frame))
        for before, (_, sent) in zip(frames, balancer.run(frames)):
            after = decode(sent)
            assert after["sum"] == 0xFFFF
            assert decode_ip(after["rest"])["sum"] % 0xFFFF == decode(before)["sum"] % 0xFFFF
