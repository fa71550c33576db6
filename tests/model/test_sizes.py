# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables of the larger size classes in transition: each slot has its own owner, base and range."""

import random
import time

import pytest
from transit import ACK, ADOPTED, HALF, SIZES, SYN, Limits, Range, Transit, Word, buckets_of, shifts

OWNER, BASE = 0, 1
WHERE = Range(16, 0)


@pytest.fixture(scope="module", params=["m", "l"])
def transit(request):
    with Transit(backends=2, slots=SIZES[request.param]) as made:
        made.limits = Limits(*shifts(), 100, 3, 8)
        rnd = random.Random(request.param)
        made.sent, made.other = (made.flow(rnd, made.SERVICES[0]) for _ in range(2))
        slot = made.slot(made.sent)
        assert slot != made.slot(made.other) and max(slot, made.slot(made.other)) >= 4100
        # The slot of one flow alone has a range, and the other flow's another base.
        slots = [(BASE, BASE, 0, 0)] * made.n_slots
        slots[slot], slots[made.slot(made.other)] = (OWNER, BASE, 1, 0), (BASE, OWNER, 1, 0)
        made.publish(slots, {slot: WHERE}, made.limits)
        yield made


def sent(transit, flow, flags):
    """Where a segment goes, and the words that are in the range then."""
    ((to, words),) = transit.steer([(flow.frame(flags, 7), [WHERE.start])], transit.kernel.ifindex["in"])
    return to, [word for word in words[WHERE.start] if word]


def word(transit, isn, state, backend):
    seen = time.clock_gettime_ns(6) >> transit.limits.tcp_shift & 255
    return Word(transit.sent.fp, isn, seen, state, transit.backends[backend][3], backend)


@pytest.fixture(autouse=True)
def empty(transit):
    transit.write_buckets({bucket: [None] * 8 for bucket in buckets_of(transit.sent.value, WHERE)})


def test_a_connection_stays_on_the_owner_that_its_syn_went_to(transit):
    assert sent(transit, transit.sent, SYN) == (OWNER, [word(transit, 7, HALF, OWNER)])
    assert sent(transit, transit.sent, ACK)[0] == OWNER


def test_an_older_connection_stays_on_base(transit):
    assert sent(transit, transit.sent, ACK) == (BASE, [word(transit, 0, ADOPTED, BASE)])


def test_a_slot_without_a_range_decides_by_its_own_base_and_leaves_nothing(transit):
    before = transit.pool_stats()
    assert sent(transit, transit.other, SYN) == (OWNER, [])
    assert sent(transit, transit.other, ACK) == (OWNER, [])
    change = {name: count - before[name] for name, count in transit.pool_stats().items()}
    assert (change["inserted"], change["refused"]) == (0, 2)
