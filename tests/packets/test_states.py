# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""States of the maps: nothing published yet, changed next hops, and those that the engine never leaves behind."""

import json
import socket
import struct

import pytest
from scapy.layers.inet import ICMP
from scapy.packet import Raw

from answers import too_big
from cases import BY_SOURCE, NETWORK, ODD, ODD6, POOLS, WWW, WWW6, ether, flow_of, ip4, ip6, tcp
from conftest import BUILDS
from fleet import KEY, GATEWAYS, Fleet, Service
from kernel import INTERFACES, XDP_DROP, XDP_PASS, XDP_TX, Kernel, Refused, difference

FOUR, SIX = ether() / ip4(ODD) / tcp(86), ether() / ip6(ODD6) / tcp(86)
USABLE, PRESENT, UP, DRAINING = 3, 1, 2, 4


def judged(kernel, frame):
    """(action, reason, frame) of one frame."""
    before = kernel.counters()
    (action, after), = kernel.run([frame])
    (reason,) = [name for kind, name in difference(before, kernel.counters()) if kind == "reason"]
    return action, reason, after


# ---- before the first document ----


@pytest.fixture(scope="module", params=list(BUILDS))
def fresh(request):
    capacities, frags = BUILDS[request.param]
    with Kernel(capacities) as kernel:
        kernel.load("lb", frags)
        yield kernel


@pytest.mark.parametrize("frame", [ether() / ip4() / tcp(), ether() / ip6() / tcp(), ether() / ip4(WWW, flags="MF") / tcp()],
                         ids=["IPv4", "IPv6", "a fragment"])
def test_without_a_document_all_goes_to_the_host(fresh, frame):
    assert judged(fresh, frame) == (XDP_PASS, "pass_no_config", bytes(frame))


def test_without_a_document_what_is_no_ip_is_still_called_that(fresh):
    assert judged(fresh, bytes(ether(type=0x88CC)) + bytes(46))[:2] == (XDP_PASS, "pass_not_ip")


# ---- documents come and go ----


@pytest.mark.parametrize("build", list(BUILDS))
def test_documents_replace_each_other(build):
    capacities, frags = BUILDS[build]
    frame = ether() / ip4() / tcp()
    with Kernel(capacities) as kernel:
        kernel.load("lb", frags)
        kernel.ask("apply", document=json.dumps({"version": 1, "hash-key": KEY, "pools": [], "services": []}), locals=[])
        assert judged(kernel, frame)[:2] == (XDP_PASS, "pass_not_service")
        kernel.apply(NETWORK)
        assert judged(kernel, frame)[:2] == (XDP_TX, "forward_tx")
        with pytest.raises(Refused):
            kernel.ask("apply", document="version: 1\nhash-key: nonsense\n", locals=[])
        assert judged(kernel, frame)[:2] == (XDP_TX, "forward_tx")
        kernel.apply(Fleet(POOLS, [NETWORK.services["www6"]]))
        assert judged(kernel, frame)[:2] == (XDP_PASS, "pass_not_service")
        assert judged(kernel, ether() / ip6(WWW6) / tcp())[:2] == (XDP_TX, "forward_tx")


# Of each family one pool of 65,537 slots, so that packets look at their slot before they know their service.
ALONE = Fleet(POOLS, [NETWORK.services[name] for name in ("www", "source", "mixed6")])


def test_one_pool_for_all_sends_each_flow_where_it_always_goes():
    frames = {"www": [ether() / ip4() / tcp(80, sport=1024 + i) for i in range(60)],
              "source": [ether() / ip4(BY_SOURCE, src=f"198.51.100.{i + 1}") / tcp(99, sport=1024 + i) for i in range(60)],
              "mixed6": [ether() / ip6() / tcp(7000, sport=1024 + i) for i in range(60)]}
    with Kernel({}) as kernel:
        kernel.load("lb", False)
        kernel.apply(ALONE)
        for service, sent in frames.items():
            expected = [ALONE.forward(bytes(frame), flow_of(frame), service) for frame in sent]
            assert kernel.run(sent) == [(out.action, out.frame) for out in expected]
            assert len({out.backend for out in expected}) > 1


def test_one_pool_without_backends_drops():
    with Kernel({}) as kernel:
        kernel.load("lb", False)
        kernel.apply(Fleet(POOLS, [Service("empty", WWW, "tcp", [80], "weightless")]))
        assert judged(kernel, ether() / ip4() / tcp())[:2] == (XDP_DROP, "drop_no_backend")
        assert judged(kernel, ether() / ip4() / tcp(81))[:2] == (XDP_DROP, "drop_unknown_port")
        assert judged(kernel, ether() / ip4(WWW, flags="MF") / tcp())[:2] == (XDP_DROP, "drop_no_backend")


# ---- the words that change alone: of a backend, of a next hop ----


class Words:
    """The backend of pool broken: its state and its next hop's word; put back at the end."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.id = struct.pack("<I", kernel.ask("counters")["backends"]["broken/x"]["id"])
        self.entry = kernel.peek("backends", self.id)
        (self.state,) = struct.unpack_from("<Q", self.entry)
        self.hop_index = struct.pack("<I", self.state >> 16 & 0xFFFF)
        self.hop = kernel.peek("nexthops", self.hop_index)

    def set_state(self, state):
        self.kernel.poke("backends", self.id, struct.pack("<Q", state) + self.entry[8:])

    def set_hop(self, value):
        self.kernel.poke("nexthops", self.hop_index, value)

    def restore(self):
        self.set_hop(self.hop)
        self.set_state(self.state)


@pytest.fixture
def words(balancer):
    words = Words(balancer)
    yield words
    words.restore()


def test_the_state_word_is_as_the_header_says(words):
    assert words.state & 0xFF == USABLE
    assert words.state >> 32 & 0xFFFF == 9000
    assert words.state >> 48 == 0


@pytest.mark.parametrize("bits", [0, PRESENT, UP, DRAINING, PRESENT | DRAINING, UP | DRAINING])
@pytest.mark.parametrize("frame", [FOUR, SIX], ids=["IPv4", "IPv6"])
def test_a_backend_that_is_not_usable(balancer, words, bits, frame):
    words.set_state(words.state & ~0xFF | bits)
    assert judged(balancer, frame) == (XDP_DROP, "drop_backend_down", bytes(frame))


def test_a_draining_backend_keeps_its_slots(balancer, words):
    words.set_state(words.state | DRAINING)
    assert judged(balancer, FOUR)[:2] == (XDP_TX, "forward_tx")


@pytest.mark.parametrize("frame", [FOUR, SIX], ids=["IPv4", "IPv6"])
def test_a_next_hop_without_an_address(balancer, words, frame):
    words.set_hop(bytes(8))
    assert judged(balancer, frame) == (XDP_DROP, "drop_no_nexthop", bytes(frame))


@pytest.fixture
def in_transition(balancer, words):
    """Each slot of pool broken tracked, with its only backend as owner and base, and no buckets."""
    (backend,) = struct.unpack("<I", words.id)

    def publish(tracked):
        slots, base = (struct.pack("<H", backend | bit).hex() * 251 for bit in (tracked, 0))
        balancer.ask("patch", map="tables_s", pool="broken", bytes=[[64, slots], [64 + 2 * 4100, base]])

    publish(0x8000)
    yield
    publish(0)


@pytest.mark.parametrize("head", [ether() / ip4(ODD), ether() / ip6(ODD6)], ids=["IPv4", "IPv6"])
def test_a_slot_in_transition_with_nobody_to_take_a_connection(balancer, words, in_transition, head):
    opening, segment = head / tcp(86, flags="S"), head / tcp(86)
    assert judged(balancer, opening)[:2] == (XDP_TX, "forward_tx")
    words.set_state(words.state | DRAINING)
    assert judged(balancer, opening) == (XDP_DROP, "drop_transit", bytes(opening))
    assert judged(balancer, segment)[:2] == (XDP_TX, "forward_tx")


def test_a_next_hop_of_an_unused_interface(balancer, words):
    words.set_hop(words.hop[:6] + struct.pack("<H", 200))
    assert judged(balancer, FOUR)[:2] == (XDP_DROP, "drop_no_nexthop")


def test_a_next_hop_of_an_interface_beyond_the_array(balancer, words):
    words.set_hop(words.hop[:6] + struct.pack("<H", 60000))
    assert judged(balancer, FOUR)[:2] == (XDP_DROP, "drop_no_nexthop")


def test_a_path_mtu_of_0_lets_nothing_through(balancer, words):
    words.set_state(words.state & ~(0xFFFF << 32))
    assert judged(balancer, FOUR) == (XDP_DROP, "drop_too_big", bytes(FOUR))


@pytest.mark.parametrize("mtu", [1279, 65535, 65536, 1 << 20, (1 << 31) - 1])
def test_a_path_mtu_beyond_the_state_word_counts_as_the_largest(balancer, words, mtu):
    """65,536, as of lo, has 16 zeros."""
    backend = NETWORK.pools["broken"].backends[0]
    way = {"address": backend.address, "ifindex": balancer.ifindex["in"], "mac": backend.gateway,
           "source_mac": INTERFACES["in"], "source": backend.source}
    try:
        balancer.ask("nexthop", mtu=mtu, **way)
        balancer.ask("publish")
        assert struct.unpack("<Q", balancer.peek("backends", words.id)[:8])[0] >> 32 == min(mtu, 65535)
        assert judged(balancer, FOUR)[:2] == (XDP_TX, "forward_tx")
    finally:
        balancer.ask("nexthop", mtu=backend.mtu, **way)
        balancer.ask("publish")


def test_a_gateways_new_address_is_in_the_next_packet(balancer):
    backend = NETWORK.pools["broken"].backends[0]
    way = {"address": backend.address, "ifindex": balancer.ifindex["in"], "source_mac": INTERFACES["in"],
           "mtu": backend.mtu, "source": backend.source}
    try:
        balancer.ask("nexthop", mac="02:00:00:00:09:09", **way)
        balancer.ask("publish")
        assert judged(balancer, FOUR)[2][:6].hex(":") == "02:00:00:00:09:09"
        balancer.ask("nexthop", mac=GATEWAYS["out"], **{**way, "ifindex": balancer.ifindex["out"],
                                                       "source_mac": INTERFACES["out"]})
        balancer.ask("publish")
        action, reason, frame = judged(balancer, FOUR)
        assert reason == "forward_redirect"
        assert frame[:12].hex(":") == f"{GATEWAYS['out']}:{INTERFACES['out']}"
    finally:
        balancer.ask("nexthop", mac=backend.gateway, **way)
        balancer.ask("publish")
    assert judged(balancer, FOUR)[2] == NETWORK.forward(bytes(FOUR), flow_of(FOUR), "odd86").frame


# ---- errors from the way behind us ----

OUTER = NETWORK.pools["broken"].backends[0]


def outer_packet(source=OUTER.source, protocol=4, destination=OUTER.address):
    return ip4(destination, src=source, proto=protocol) / Raw(bytes(ip4(ODD) / tcp(86)))


def path_error(quote=None, mtu=1300, kind=3, code=4, **fields):
    return ether() / ip4(**{"dst": OUTER.source, "src": "10.1.0.1", **fields}) / ICMP(
        type=kind, code=code, nexthopmtu=mtu) / Raw(bytes(quote or outer_packet())[:28])


@pytest.fixture
def behind(balancer, words):
    """(balancer, its backend's MTU now, errors about it): the one outer source and the one endpoint are known."""
    def state():
        (state,) = struct.unpack_from("<Q", balancer.peek("backends", words.id))
        errors, lowered = struct.unpack("<QQ", balancer.peek("backend_path", words.id))
        return state >> 32 & 0xFFFF, errors, lowered

    source = struct.pack("<I", 128) + mapped(OUTER.source)
    endpoint = struct.pack("<HH", 1, struct.unpack("<I", words.id)[0]) + bytes(28)
    balancer.poke("outer_sources", source, b"\1")
    balancer.poke("endpoints", mapped(OUTER.address), endpoint)
    balancer.poke("backend_path", words.id, bytes(16))
    yield balancer, state
    balancer.poke("outer_sources", source, b"")
    balancer.poke("endpoints", mapped(OUTER.address), b"")
    balancer.poke("backend_path", words.id, bytes(16))


def mapped(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


@pytest.mark.parametrize("told,taken", [(1300, 1300), (8999, 8999), (9000, 9000), (9001, 9000), (552, 552), (551, 552),
                                        (1, 552), (0, 9000)])
def test_an_error_about_our_packet_lowers_the_path_mtu(behind, told, taken):
    balancer, state = behind
    frame = path_error(mtu=told)
    assert judged(balancer, frame) == (XDP_DROP, "drop_path_error", bytes(frame))
    mtu, errors, lowered = state()
    assert (mtu, errors, lowered != 0) == (taken, 1, taken < 9000)


def test_a_lowered_path_mtu_is_told_to_clients_and_never_raised(behind):
    balancer, state = behind
    judged(balancer, path_error(mtu=1300))
    assert judged(balancer, path_error(mtu=1400))[1] == "drop_path_error"
    assert state()[:2] == (1300, 2)
    fits, big = (ether() / ip4(ODD) / tcp(86, payload=bytes(size - 40)) for size in (1280, 1281))
    assert judged(balancer, fits)[1] == "forward_tx"
    assert judged(balancer, big) == (XDP_TX, "answer_too_big", too_big(big, 1280))


@pytest.mark.parametrize("kind,code", [(3, 0), (3, 1), (3, 3), (11, 0), (12, 0)])
def test_other_errors_about_our_packets_are_counted(behind, kind, code):
    balancer, state = behind
    assert judged(balancer, path_error(kind=kind, code=code))[1] == "drop_path_error"
    assert state() == (9000, 1, 0)


@pytest.mark.parametrize("frame", [
    path_error(outer_packet(source="10.1.0.9")), path_error(outer_packet(protocol=6)),
    path_error(outer_packet(protocol=17)), path_error(outer_packet(destination="10.1.0.99")),
    path_error(dst="10.1.0.9"), path_error(flags="MF"), path_error(kind=8, code=0), path_error(kind=0, code=0),
    ether() / ip4(OUTER.source) / tcp(), path_error(len=40),
    ether() / ip4(OUTER.source) / ICMP(type=3, code=4, nexthopmtu=1300) / Raw(bytes(outer_packet())[:20]),
], ids=["from another source", "about TCP of the host", "about UDP of the host", "about another host", "to another address",
        "in fragments", "a ping", "an echo reply", "TCP", "shorter than what it quotes", "of a bare header"])
def test_what_is_not_about_our_packets_is_the_hosts(behind, frame):
    balancer, state = behind
    assert judged(balancer, frame) == (XDP_PASS, "pass_not_service", bytes(frame))
    assert state() == (9000, 0, 0)
