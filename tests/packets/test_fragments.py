# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Datagrams in fragments: in order, out of order, twice, overlapping, among a flood of others."""

import itertools
import random
import struct
from dataclasses import dataclass

import pytest
from scapy.layers.inet import IP
from scapy.packet import Raw

from cases import CLIENT, CLIENT6, LOCAL, NETWORK, ODD, STICKY, STICKY6, WWW, WWW6, Flow, ether, ip4, ip6, tcp, udp
from cases_ipv6 import DESTINATION, FRAGMENT, HOP_BY_HOP, chain, fragment, options
from kernel import XDP_DROP, XDP_PASS, XDP_TX, difference
from test_states import Words

numbers = itertools.count(20000)
DATA = bytes(i * 7 % 251 for i in range(3000))
BUCKETS, WAYS = 8192, 4  # of the table: types.h


@dataclass
class Datagram:
    """Fragments of one datagram, and what must become of them."""

    service: str
    flow: Flow
    frames: list  # first one first
    entropy: int  # in the outer header of the later ones

    def sent(self, index):
        return NETWORK.forward(bytes(self.frames[index]), self.flow, self.service, self.entropy if index else None)


def datagram4(service, transport, flow, cuts=(1000, 2000), **fields):
    number = fields.pop("id", None) or next(numbers)
    fields = {"flags": 0, "id": number, "src": flow.source, "dst": flow.destination, **fields}
    body = bytes(ip4(**fields) / transport)[20:]
    ends = [0, *cuts, len(body)]
    frames = []
    for start, end in zip(ends, ends[1:]):
        more = "MF" if end < len(body) else 0
        frames.append(ether() / ip4(**{**fields, "flags": more, "frag": start // 8, "proto": flow.protocol}) /
                      Raw(body[start:end]))
    return Datagram(service, flow, frames, NETWORK.datagram(flow.source, flow.destination, number, flow.protocol))


def datagram6(service, transport, flow, cuts=(1000, 2000), before=(), behind=()):
    """before: extension headers of each fragment; behind: those that are fragmented with the rest."""
    number = next(numbers)
    whole = bytes(chain(list(behind), transport, flow.protocol, src=flow.source, dst=flow.destination))[14:]
    kind, body = whole[6], whole[40:]
    ends = [0, *cuts, len(body)]
    frames = []
    for start, end in zip(ends, ends[1:]):
        header = (FRAGMENT, fragment(start // 8, end < len(body), number))
        headers = [*before, header]
        types = [k for k, _ in headers] + [kind]
        extensions = b"".join(bytes([following]) + rest for (_, rest), following in zip(headers, types[1:]))
        frames.append(ether() / ip6(flow.destination, src=flow.source, nh=types[0]) / Raw(extensions + body[start:end]))
    return Datagram(service, flow, frames, NETWORK.datagram(flow.source, flow.destination, number, 0))


def dns(client=CLIENT, sport=40000, **fields):
    return datagram4("dns", udp(53, sport, DATA), Flow(client, sport, WWW, 53, 17), **fields)


def udp6(client=CLIENT6, sport=40000, **fields):
    return datagram6("udp6", udp(4444, sport, DATA), Flow(client, sport, WWW6, 4444, 17), **fields)


KINDS = {
    "UDP": dns,
    "UDP of an address with several services": lambda: datagram4(
        "mixed-udp", udp(7000, 7, DATA), Flow(CLIENT, 7, WWW, 7000, 17)),
    "a TCP segment": lambda: datagram4("www", tcp(80, 40001, DATA), Flow(CLIENT, 40001, WWW, 80, 6)),
    "UDP over IPv6": udp6,
    "a TCP segment over IPv6": lambda: datagram6("www6", tcp(80, 7, DATA), Flow(CLIENT6, 7, WWW6, 80, 6)),
    "UDP over IPv6 behind options": lambda: udp6(before=[(HOP_BY_HOP, options())]),
    "UDP over IPv6 that begins with options": lambda: udp6(behind=[(DESTINATION, options(2))]),
    "a service on an address of the host": lambda: datagram4("local", tcp(80, 9, DATA), Flow(CLIENT, 9, LOCAL, 80, 6)),
}


@pytest.fixture(params=list(KINDS))
def datagram(request):
    return KINDS[request.param]()


def run(balancer, *frames):
    """[(action, frame)], and what the counters changed by."""
    before = balancer.counters()
    return balancer.run(frames), difference(before, balancer.counters())


def send(balancer, datagram, order):
    """Each fragment of `order` must go to the flow's backend, be counted there, and be right in every byte."""
    got, changes = run(balancer, *[datagram.frames[index] for index in order])
    wanted = [datagram.sent(index) for index in order]
    assert [(action, frame.hex()) for action, frame in got] == [(w.action, w.frame.hex()) for w in wanted]
    length = sum(w.length for w in wanted)
    assert changes == {("reason", "forward_tx"): len(order), ("service", datagram.service): (len(order), length),
                       ("backend", wanted[0].backend): (len(order), length)}


def refused(balancer, frame):
    """The reason of a frame that is not sent."""
    ((action, after),), changes = run(balancer, frame)
    assert after == bytes(frame)
    ((_, reason),) = changes
    assert action == (XDP_PASS if reason.startswith("pass") else XDP_DROP)
    return reason


def unknown(datagram):
    return "pass_unknown_port" if datagram.service == "local" else "drop_fragment_unknown"


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (0, 0, 1, 2), (0, 1, 1, 2, 2, 1), (0, 1, 0, 2), (0, 2, 1, 0)],
                         ids=str)
def test_behind_the_first(balancer, datagram, order):
    send(balancer, datagram, order)


def test_before_the_first(balancer, datagram):
    assert refused(balancer, datagram.frames[2]) == unknown(datagram)
    assert refused(balancer, datagram.frames[1]) == unknown(datagram)
    send(balancer, datagram, (0, 1, 2))


STICKY_KINDS = {
    "IPv4": lambda: datagram4("sticky-udp", udp(7, 8, DATA), Flow(CLIENT, 8, STICKY, 7, 17)),
    "IPv6": lambda: datagram6("sticky6-udp", udp(7, 8, DATA), Flow(CLIENT6, 8, STICKY6, 7, 17)),
}


@pytest.mark.parametrize("kind", list(STICKY_KINDS))
@pytest.mark.parametrize("order", itertools.permutations(range(3)), ids=str)
def test_in_any_order_where_all_goes_by_source(balancer, kind, order):
    """To one backend; before the first fragment they are counted for the address's first service."""
    datagram = STICKY_KINDS[kind]()
    known, wanted = False, []
    for index in order:
        known = known or index == 0
        service = datagram.service if known else datagram.service.removesuffix("-udp")
        wanted.append(NETWORK.forward(bytes(datagram.frames[index]), datagram.flow, service,
                                      datagram.entropy if known and index else None))
        got, changes = run(balancer, datagram.frames[index])
        assert [(action, frame.hex()) for action, frame in got] == [(wanted[-1].action, wanted[-1].frame.hex())]
        assert changes["service", service] == (1, wanted[-1].length)
    assert len({sent.backend for sent in wanted}) == 1


def test_overlapping(balancer, datagram):
    """The backend judges what overlaps; all of it comes to the same one."""
    other = KINDS["UDP"]().frames[1].copy()
    send(balancer, datagram, (0, 1))
    overlap = datagram.frames[2].copy()
    if overlap.haslayer(IP):
        overlap[IP].frag -= 10
        sent = NETWORK.forward(bytes(overlap), datagram.flow, datagram.service, datagram.entropy)
        assert run(balancer, overlap)[0] == [(sent.action, sent.frame)]
    assert refused(balancer, other) == "drop_fragment_unknown"


def test_a_later_fragment_that_overlaps_the_ports(balancer):
    """RFC 3128: at offset 8 it would change what the first one said; it goes where that went."""
    tiny = datagram4("www", tcp(80, 40003, DATA), Flow(CLIENT, 40003, WWW, 80, 6))
    send(balancer, tiny, (0,))
    frame = tiny.frames[1].copy()
    frame[IP].frag = 1
    sent = NETWORK.forward(bytes(frame), tiny.flow, "www", tiny.entropy)
    assert run(balancer, frame)[0] == [(XDP_TX, sent.frame)]


def test_datagrams_are_kept_apart(balancer):
    """By client, by identification, by protocol (IPv4): every order of fragments of many datagrams."""
    number = next(numbers)
    many = [dns(id=number), dns("198.51.100.8", id=number), dns(sport=40007),
            datagram4("www", tcp(80, 40001, DATA), Flow(CLIENT, 40001, WWW, 80, 6), id=number),
            datagram4("mixed-udp", udp(7000, 7, DATA), Flow(CLIENT, 7, WWW, 7000, 17)), udp6(), udp6(sport=3)]
    frames = [(d, 0) for d in many] + [(d, index) for index in (1, 2) for d in many]
    got = balancer.run([d.frames[index] for d, index in frames])
    assert [frame.hex() for _, frame in got] == [d.sent(index).frame.hex() for d, index in frames]


def test_a_first_fragment_of_another_flow_takes_the_name_over(balancer):
    number = next(numbers)
    one, two = dns(sport=1, id=number), dns(sport=2, id=number)
    send(balancer, one, (0, 1))
    send(balancer, two, (0, 1, 2))
    assert one.entropy == two.entropy


def test_a_first_fragment_that_is_not_sent_leaves_nothing(balancer):
    lost = datagram4("none", udp(81, 1, DATA), Flow(CLIENT, 1, ODD, 81, 17))
    assert refused(balancer, lost.frames[0]) == "drop_unknown_port"
    assert refused(balancer, lost.frames[1]) == "drop_fragment_unknown"


def test_the_table_holds_its_own_in_a_flood(balancer):
    """Among as many others as the table holds a quarter of, few are forgotten; after any flood new ones are known."""
    rng = random.Random(1)

    def flood(count):
        frames = []
        for _ in range(count):
            flow = Flow(f"198.51.{rng.randrange(256)}.{rng.randrange(1, 255)}", 9, WWW, 53, 17)
            frames.append(datagram4("dns", udp(53, 9, bytes(40)), flow, cuts=(32,), id=rng.randrange(65536)).frames[0])
        assert {action for action, _ in balancer.run(frames)} == {XDP_TX}

    victims = [dns(sport=sport) for sport in range(1000, 1050)]
    for victim in victims:
        send(balancer, victim, (0,))
    flood(BUCKETS * WAYS // 16)
    kept = [action for action, _ in balancer.run([victim.frames[1] for victim in victims])]
    assert kept.count(XDP_TX) >= 48
    send(balancer, dns(), (0, 1, 2))


# ---- what is in the table ----


def note(balancer, datagram):
    """(bucket, value, index of the word) of a datagram's entry."""
    bucket = struct.pack("<I", datagram.entropy & (BUCKETS - 1))
    value = list(struct.unpack("<8Q", balancer.peek("fragments", bucket)))
    (at,) = [i for i in range(0, 8, 2) if value[i] >> 27 == (datagram.entropy >> 27 | 1)]
    return bucket, value, at


@pytest.mark.parametrize("age,known", [(0, True), (29, True), (32, False), (100, False), (200, False)])
def test_a_note_grows_old(balancer, age, known):
    """Units of 2^30 ns; the test may take one of them."""
    old = dns()
    send(balancer, old, (0,))
    bucket, value, at = note(balancer, old)
    seen = (value[at] >> 19) - age & 0xFF
    value[at] = value[at] & ~(0xFF << 19) | seen << 19
    balancer.poke("fragments", bucket, struct.pack("<8Q", *value))
    if known:
        send(balancer, old, (1, 2))
    else:
        assert refused(balancer, old.frames[1]) == "drop_fragment_unknown"


def test_the_oldest_note_of_a_bucket_goes(balancer):
    newcomer = dns()
    bucket = struct.pack("<I", newcomer.entropy & (BUCKETS - 1))
    send(balancer, newcomer, (0,))
    _, value, at = note(balancer, newcomer)
    now = value[at] >> 19 & 0xFF
    others = [(1000 + way) << 27 | (now - age & 0xFF) << 19 for way, age in enumerate((5, 9, 7, 6))]
    balancer.poke("fragments", bucket, struct.pack("<8Q", *[word for other in others for word in (other, 0)]))
    send(balancer, newcomer, (0, 1))
    _, value, at = note(balancer, newcomer)
    assert at == 2
    assert [value[i] for i in (0, 4, 6)] == [others[0], others[2], others[3]]


def test_a_backends_id_that_was_given_to_another_is_not_taken_for_it(balancer):
    flow = Flow(CLIENT, 5, ODD, 86, 6)
    segment = datagram4("odd86", tcp(86, 5, DATA), flow)
    words = Words(balancer)
    try:
        send(balancer, segment, (0, 1))
        words.set_state(words.state ^ 1 << 8)
        assert refused(balancer, segment.frames[2]) == "drop_fragment_unknown"
    finally:
        words.restore()
    send(balancer, segment, (2,))
