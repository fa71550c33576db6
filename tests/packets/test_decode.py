# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every field of what is sent, decoded by offsets from the RFCs alone: no Scapy, no stored bytes."""

import ipaddress
import struct

from all_cases import CASES
from cases import NETWORK, Forward, ether, ip4, ip6, tcp, udp
from kernel import INTERFACES

BACKENDS = {ipaddress.ip_address(b.address): (pool, b) for pool in NETWORK.pools.values() for b in pool.backends}


def decode(frame):
    """Fields of an Ethernet frame with any tags and an IP header; "rest" is what follows the header."""
    out = {"dst_mac": frame[:6].hex(":"), "src_mac": frame[6:12].hex(":"), "tags": []}
    at = 12
    (kind,) = struct.unpack_from(">H", frame, at)
    while kind in (0x8100, 0x88A8):
        out["tags"].append((kind, struct.unpack_from(">H", frame, at + 2)[0]))
        at += 4
        (kind,) = struct.unpack_from(">H", frame, at)
    return {**out, "ethertype": kind, **decode_ip(frame[at + 2 :])}


def decode_ip(data):
    if data[0] >> 4 == 6:
        word, length, following, limit = struct.unpack_from(">IHBB", data)
        return {
            "version": word >> 28, "tos": word >> 20 & 0xFF, "label": word & 0xFFFFF, "payload": length,
            "protocol": following, "ttl": limit, "source": ipaddress.ip_address(data[8:24]),
            "destination": ipaddress.ip_address(data[24:40]), "df": True, "length": 40 + length, "rest": data[40:],
        }
    first, tos, length, number, fragment, ttl, protocol, _ = struct.unpack_from(">BBHHHBBH", data)
    size = (first & 15) * 4
    total = sum(struct.unpack(f">{size // 2}H", data[:size]))
    return {
        "version": first >> 4, "header": size, "tos": tos, "length": length, "id": number, "df": bool(fragment & 0x4000),
        "mf": bool(fragment & 0x2000), "reserved": bool(fragment & 0x8000), "offset": fragment & 0x1FFF, "ttl": ttl,
        "protocol": protocol, "sum": (total & 0xFFFF) + (total >> 16), "source": ipaddress.ip_address(data[12:16]),
        "destination": ipaddress.ip_address(data[16:20]), "rest": data[size:],
    }


def check_outer(before, after):
    pool, backend = BACKENDS[after["destination"]]
    assert after["dst_mac"] == backend.gateway
    assert after["src_mac"] == INTERFACES[backend.interface]
    assert after["tags"] == before["tags"]
    assert after["ethertype"] == {4: 0x0800, 6: 0x86DD}[after["version"]]
    assert after["version"] == backend.family
    assert str(after["source"]) == pool.outer_source(backend)
    assert after["tos"] == before["tos"]
    assert after["ttl"] == 64
    assert after["protocol"] == {4: 4, 6: 41}[before["version"]]
    if after["version"] == 6:
        assert after["label"] != 0
        assert after["payload"] == before["length"]
        return
    assert after["header"] == 20
    assert after["length"] == 20 + before["length"]
    assert after["sum"] == 0xFFFF
    assert (after["df"], after["mf"], after["reserved"], after["offset"]) == (before["df"], False, False, 0)
    if after["df"]:
        assert after["id"] == 0


def check_inner(before, inner):
    assert inner["ttl"] == before["ttl"] - 1
    for name in inner.keys() - {"ttl", "rest", "sum"}:
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
        before, after = decode(bytes(case.frame)), decode(frame)
        check_outer(before, after)
        check_inner(before, decode_ip(after["rest"]))


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
