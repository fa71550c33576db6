# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the twin writes down of slots in transition, of later fragments and of errors from the way behind us.

Each packet is explained, with no map changed, and then sent: what was written down is what it then does.
"""

import random
import struct
import time

import pytest
from behind import known
from cases import NETWORK, WWW, ether, ip4
from kernel import XDP_DROP, difference
from scapy.packet import Raw
from transit import ACK, FIN, LIVE, SYN, Limits, Range, Transit, Word, buckets_of, pack, range_word, shifts

from test_parity import REASONS, TRACE_SIZE, ZERO

OWNER, BASE = 0, 1
TRANSIT, NOTED, BEHIND = 1 << 5, 1 << 6, 1 << 10  # of the word `known`
WHERE = Range(16, 2)


def explained(kernel, frame):
    """(action, frame, the struct's bytes)"""
    kernel.poke("scratch_trace", ZERO, bytes(TRACE_SIZE))
    before = kernel.ask("digest")
    ((action, after),) = kernel.run([frame], role="explain")
    assert kernel.ask("digest") == before
    return action, after, kernel.peek("scratch_trace", ZERO)


def known_of(trace):
    return struct.unpack_from("<I", trace)[0]


def reason_of(trace):
    return REASONS[struct.unpack_from("<i", trace, 4)[0]]


# ---- slots in transition ----


@pytest.fixture(scope="module")
def transit():
    with Transit(backends=2) as made:
        made.kernel.load("explain")
        made.limits = Limits(*shifts(), 100, 3, 8)
        made.publish([(OWNER, BASE, 1, 1)] * made.n_slots, dict.fromkeys(range(made.n_slots), WHERE), made.limits)
        yield made


@pytest.fixture
def flow(transit):
    transit.write_buckets({b: [None] * 8 for b in range(WHERE.start, WHERE.start + 4)})
    return transit.flow(random.Random(3), transit.SERVICES[0])


def word_of(transit, flow):
    """The flow's entry as it stands in the table, packed; 0: there is none."""
    words = [word for b in set(buckets_of(flow.value, WHERE)) for word in transit.bucket(b) if word and word.fp == flow.fp]
    return pack(words[0]) if words else 0


def fill(transit, flow):
    """Both buckets full of live connections of others."""
    seen = time.clock_gettime_ns(6) >> transit.limits.tcp_shift & 255
    words = [Word(2 * n + 2, 0, seen, LIVE, transit.backends[BASE][3], BASE) for n in range(8)]
    assert all(word.fp != flow.fp for word in words)
    transit.write_buckets({b: words for b in set(buckets_of(flow.value, WHERE))})


def compare(transit, flow, flags, kind, refused):
    frame, before = flow.frame(flags, 7), word_of(transit, flow)
    action, after, trace = explained(transit.kernel, frame)
    assert transit.kernel.run([frame]) == [(action, after)]
    assert known_of(trace) & TRANSIT and reason_of(trace) == "forward_tx"
    entry, following = struct.unpack_from("<QQ", trace, 120)
    assert entry == before
    if refused:
        assert following and not word_of(transit, flow)
    else:
        assert following == word_of(transit, flow)
    assert struct.unpack_from("<III", trace, 136) == (kind, refused, range_word(WHERE))


@pytest.mark.parametrize("flags, kind", [(SYN, 0), (ACK, 1)], ids=["a SYN", "a segment"])
@pytest.mark.parametrize("room", [True, False], ids=["with room", "without room"])
def test_what_a_packet_without_an_entry_makes_of_the_table(transit, flow, flags, kind, room):
    if not room:
        fill(transit, flow)
    compare(transit, flow, flags, kind, int(not room))


@pytest.mark.parametrize("flags, kind", [(ACK, 1), (FIN | ACK, 2)], ids=["a segment", "a FIN"])
@pytest.mark.parametrize("seen", [0, 1], ids=["at once", "later"])
def test_what_a_packet_makes_of_its_entry(transit, flow, flags, kind, seen):
    now = time.clock_gettime_ns(6) >> transit.limits.tcp_shift & 255
    entry = Word(flow.fp, 9, now - seen & 255, LIVE, transit.backends[OWNER][3], OWNER)
    transit.write_buckets({buckets_of(flow.value, WHERE)[0]: [None, entry] + [None] * 6})
    compare(transit, flow, flags, kind, 0)


# ---- later fragments ----


def test_a_later_fragment_goes_by_the_note_of_the_first(balancer):
    body = bytes(range(200)) * 8
    frames = [ether() / ip4(WWW, flags="MF" if at == 0 else 0, id=4711, proto=17, frag=at // 8) / Raw(data)
              for at, data in ((0, struct.pack(">HHHH", 40000, 999, 808, 0) + body[:400]), (408, body[:400]))]
    action, _, trace = explained(balancer, frames[1])
    assert (action, reason_of(trace), known_of(trace) & NOTED) == (XDP_DROP, "drop_fragment_unknown", 0)
    balancer.run(frames[:1])
    action, after, trace = explained(balancer, frames[1])
    before = balancer.counters()
    assert balancer.run(frames[1:]) == [(action, after)]
    (backend,) = [name for kind, name in difference(before, balancer.counters()) if kind == "backend"]
    assert reason_of(trace) == "forward_tx" and known_of(trace) & NOTED
    assert struct.unpack_from("<I", trace, 148)[0] == balancer.ask("counters")["backends"][backend]["id"]
    assert trace[42] == 2  # a later one


# ---- errors from the way behind us ----


@pytest.mark.parametrize("pool", ["spread4", "spread6", "gue4", "gue6"])
@pytest.mark.parametrize("told", [1300, 0])
def test_an_error_about_our_packet_is_explained_and_lowers_nothing(balancer, pool, told):
    with known(balancer, pool) as way:
        frame = way.error(told)
        action, after, trace = explained(balancer, frame)
        assert (action, after, reason_of(trace)) == (XDP_DROP, bytes(frame), "drop_path_error")
        assert known_of(trace) & BEHIND and struct.unpack_from("<I", trace, 256)[0] == told
        assert way.state() == (NETWORK.pools[pool].backends[0].mtu, 0, False)
        balancer.run([frame])
        assert way.state() == (told or 9000, 1, bool(told))
