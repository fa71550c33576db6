# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What holds for many packets: the outer checksum, the spread over ports and sources, ways that l2 cannot use."""

import collections
import ipaddress
import random
import struct

import pytest

from cases import TUNNEL, TUNNEL6, TUNNEL_PORTS, Pool, Service, ether, ip4, ip6, tcp, udp
from cases_decap import INNER, SOURCES, inner4, inner6, outer4, outer6
from cases_decap_gue import gue
from decode import decode
from fleet import Backend, Fleet
from kernel import XDP_DROP, XDP_PASS, XDP_REDIRECT, Kernel, difference
from test_decode import words

GUE6 = TUNNEL_PORTS["gue6"]


def judge_checksum(frame):
    after = decode(frame)
    length, check = struct.unpack_from(">HH", after["rest"], 4)
    pseudo = after["source"].packed + after["destination"].packed + struct.pack(">II", length, 17)
    assert check
    assert words(pseudo + after["rest"][:length]) == 0xFFFF


def test_the_outer_checksum_of_random_packets(balancer):
    rng = random.Random(balancer.frags)
    frames = []
    for _ in range(3000):
        network = rng.choice((lambda **f: ip4(TUNNEL, **f), lambda **f: ip6(TUNNEL6, **f)))
        transport = rng.choice((tcp, udp))
        payload = rng.choice((rng.randbytes, bytes, lambda n: b"\xff" * n))(rng.randrange(200))
        frames.append(bytes(ether() / network() / transport(GUE6, rng.randrange(1, 65536), payload)))
    for action, frame in balancer.run(frames):
        judge_checksum(frame)


def test_a_computed_checksum_of_zero_is_sent_as_ones(balancer):
    """All values of a word that the outer checksum depends on: one of them gives 0."""
    frame = bytearray(bytes(ether() / ip6(TUNNEL6) / tcp(GUE6)))
    seen = collections.Counter()
    for first in range(0, 65536, 8192):
        frames = []
        for number in range(first, first + 8192):
            frame[16:18] = struct.pack(">H", number)  # the flow label
            frames.append(bytes(frame))
        for _, sent in balancer.run(frames):
            after = decode(sent)
            seen[struct.unpack_from(">H", after["rest"], 6)[0]] += 1
            if seen.total() % 64 == 0 or after["rest"][6:8] == b"\xff\xff":
                judge_checksum(sent)
    assert 0 not in seen
    assert seen[0xFFFF] and len(seen) == 65535


@pytest.mark.parametrize("pool", ["gue4", "gue6"])
def test_source_ports_spread_over_flows_and_stay_within_one(balancer, pool):
    port = TUNNEL_PORTS[pool]
    flows = [ether() / ip4(TUNNEL) / tcp(port, 1000 + number) for number in range(2000)]
    ports = collections.Counter(decode(frame)["rest"][:2] for _, frame in balancer.run(flows))
    # 2,000 balls in 16,384 bins hit 1,884 of them; the standard deviation is 10.
    assert 1820 < len(ports) < 1950
    packets = [ether() / ip4(TUNNEL, id=number, ttl=2 + number) / tcp(port, payload=bytes(number)) for number in range(50)]
    assert len({decode(frame)["rest"][:2] for _, frame in balancer.run(packets)}) == 1


def sources(balancer, pool, count, family=4):
    network = ip4(TUNNEL) if family == 4 else ip6(TUNNEL6)
    flows = [ether() / network / tcp(TUNNEL_PORTS[pool], 1000 + number) for number in range(count)]
    frames = [decode(frame) for _, frame in balancer.run(flows)]
    assert all(frame.get("sum", 0xFFFF) == 0xFFFF for frame in frames)
    return [frame["source"] for frame in frames]


@pytest.mark.parametrize("family", [4, 6])
def test_sources_spread_evenly_over_a_24(balancer, family):
    found = collections.Counter(sources(balancer, "spread4", 5120, family))
    assert set(found) <= set(ipaddress.ip_network("10.77.3.0/24"))
    # 20 flows for each of 256 addresses: chi-square with 255 degrees of freedom, 1 in 10^6 above 371 or below 160.
    assert len(found) == 256
    assert 160 < sum((count - 20) ** 2 / 20 for count in found.values()) < 371


def test_sources_spread_over_the_low_32_bits_of_a_64(balancer):
    found = [int(source) for source in sources(balancer, "spread6", 4096, 6)]
    base = int(ipaddress.ip_address("fd00:77:0:5::"))
    assert {source >> 32 for source in found} == {base >> 32}
    assert len(set(found)) > 4090
    for bit in range(32):
        ones = sum(source >> bit & 1 for source in found)
        assert abs(ones - 2048) < 5 * 32, bit  # five standard deviations


def test_one_flow_keeps_its_source(balancer):
    for pool in ("spread4", "spread6", "gue-spread"):
        packets = [ether() / ip4(TUNNEL, ttl=2 + number) / tcp(TUNNEL_PORTS[pool], payload=bytes(number)) for number in
                   range(50)]
        assert len({decode(frame)["source"] for _, frame in balancer.run(packets)}) == 1


# ---- l2 ----


def fleet(routed, family):
    address = "10.1.0.80" if family == 4 else "fd00:2::80"
    backend = Backend("b", address, interface="out", routed=routed)
    return Fleet([Pool("direct", [backend], encapsulation="l2")], [Service("s", TUNNEL, "tcp", [80], "direct")])


@pytest.mark.parametrize("family", [4, 6])
def test_a_backend_behind_a_gateway_gets_nothing_by_l2(family):
    frame = ether() / ip4(TUNNEL) / tcp()
    with Kernel({}) as kernel:
        kernel.load()
        for routed, action in ((True, XDP_DROP), (False, XDP_REDIRECT), (True, XDP_DROP)):
            kernel.apply(fleet(routed, family))
            ((got, sent),) = kernel.run([frame])
            assert got == action, routed
        assert sent == bytes(frame)


# ---- decap without GUE ----


def test_without_a_port_no_udp_is_unwrapped():
    with Kernel({}) as kernel:
        kernel.load("decap")
        kernel.ask("allow", sources=SOURCES, inner=INNER)
        frames = [ether() / outer4(17) / gue(inner4()), ether() / outer6(17) / gue(inner6()),
                  ether() / outer4(17) / gue(inner4(), port=0)]
        before = kernel.counters()
        assert kernel.run(frames, role="decap") == [(XDP_PASS, bytes(frame)) for frame in frames]
        assert difference(before, kernel.counters()) == {("reason", "decap_pass_not_tunnel"): 3}


def test_another_port():
    with Kernel({}) as kernel:
        kernel.load("decap", gue_port=5555)
        kernel.ask("allow", sources=SOURCES, inner=INNER)
        kernel.run([ether() / outer4(17) / gue(inner4()), ether() / outer4(17) / gue(inner4(), port=5555)], role="decap")
        assert kernel.counters() == {("reason", "decap_pass_not_tunnel"): 1, ("reason", "decap_unwrapped"): 1}
