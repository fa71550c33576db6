# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ages at their exact limits, both clocks, and what two CPUs do to one flow."""

import os
import random
import time

import pytest
from transit import (ACK, ADOPTED, CLOSING, FIN, HALF, LIVE, NONE, RST, SYN, USED, Limits, Range, Transit, Word, buckets_of,
                     reasons, shifts)

SETTLE, CLOSED, WINDOW = 100, 3, 8
OWNER, BASE, THIRD = 0, 1, 2
RACES = int(os.environ.get("SHUNT_MODEL_RACES", "20000"))


@pytest.fixture(scope="module")
def transit():
    with Transit(backends=3) as made:
        made.limits = Limits(*shifts(), SETTLE, CLOSED, WINDOW)
        yield made


def in_transition(transit, log2=0, slot=(OWNER, BASE, 1, 1), limits=None, own=0):
    """Every slot so, all of them in one range of 2^log2 empty buckets; own: the first own word."""
    for backend, state in enumerate(transit.backends):
        transit.set_backend(backend, state)
    where = Range(16, log2)
    transit.publish([slot] * transit.n_slots, dict.fromkeys(range(transit.n_slots), where),
                    limits or transit.limits, own)
    transit.write_buckets({b: [None] * 8 for b in range(where.start, where.start + (1 << log2))})
    return where


def now(transit, udp):
    return time.clock_gettime_ns(6) >> (transit.limits.udp_shift if udp else transit.limits.tcp_shift) & 255


def flow(transit, udp=False, rnd=random.Random(5)):
    return transit.flow(rnd, transit.SERVICES[2 if udp else 0])


def send(transit, sent, flags, where, seq8=7):
    (to, words), = transit.steer([(sent.frame(flags, seq8), sorted(set(buckets_of(sent.value, where))))],
                                 transit.kernel.ifindex["in"])
    return to, [word for bucket in words.values() for word in bucket]


# ---- what an insertion replaces ----

REPLACED = [
    # state, UDP, age, by a SYN: replaced?  by another packet?
    (CLOSING, False, CLOSED, False, False), (CLOSING, False, CLOSED + 1, True, True),
    (LIVE, False, SETTLE, False, False), (LIVE, False, SETTLE + 1, True, True),
    (LIVE, True, WINDOW, False, False), (LIVE, True, WINDOW + 1, True, True),
    (ADOPTED, False, 0, True, True), (ADOPTED, True, 0, True, True), (ADOPTED, False, 200, True, True),
    (HALF, False, 0, False, False), (HALF, False, 1, False, False), (HALF, False, 2, True, False),
    (HALF, False, 200, True, False),
    # Used in a unit after that in which the packet read the clock: by another CPU, a moment ago.
    (LIVE, False, -1, False, False), (LIVE, True, -1, False, False), (CLOSING, False, -1, False, False),
    (HALF, False, -1, False, False),
]


@pytest.mark.parametrize("kind", ["SYN", "segment", "datagram"])
@pytest.mark.parametrize("state, udp, age, by_syn, by_other", REPLACED)
def test_a_full_bucket_gives_up_what_the_rules_allow(transit, kind, state, udp, age, by_syn, by_other):
    where = in_transition(transit)
    generation = transit.backends[THIRD][3]
    full = [Word(4 + 2 * i + udp, 0, now(transit, udp) - age & 255, state, generation, THIRD) for i in range(8)]
    transit.write_buckets({where.start: full})
    sent = flow(transit, kind == "datagram")
    before = transit.pool_stats()
    to, words = send(transit, sent, SYN if kind == "SYN" else ACK, where)
    replaced = by_syn if kind == "SYN" else by_other
    assert sum(word not in full for word in words) == replaced
    # A SYN that is refused goes to base, as all of its segments will.
    assert to == (OWNER if kind == "SYN" and replaced else BASE)
    change = {name: count - before[name] for name, count in transit.pool_stats().items()}
    assert (change["inserted"], change["refused"]) == (int(replaced), int(not replaced))
    assert change["replaced"] == (replaced and state == ADOPTED)


@pytest.mark.parametrize("state, young, old", [(ADOPTED, 4, 5), (ADOPTED, 0, 200), (HALF, 2, 3)])
def test_the_oldest_goes_first(transit, state, young, old):
    where = in_transition(transit)
    generation = transit.backends[THIRD][3]
    full = [Word(4 + 2 * i, 0, now(transit, False) - (old if i == 5 else young) & 255, state, generation, THIRD)
            for i in range(8)]
    transit.write_buckets({where.start: full})
    _, words = send(transit, flow(transit), SYN, where)
    assert [i for i in range(8) if words[i] != full[i]] == [5]


def test_better_victims_in_the_second_bucket_are_found(transit):
    where = in_transition(transit, log2=4)
    sent = flow(transit)
    while len(set(buckets_of(sent.value, where))) < 2:
        sent = flow(transit)
    first, second = buckets_of(sent.value, where)
    generation = transit.backends[THIRD][3]
    full = [Word(4 + 2 * i, 0, now(transit, False), ADOPTED, generation, THIRD) for i in range(8)]
    stale = [*full[:3], full[3]._replace(gen=generation + 1), *full[4:]]
    transit.write_buckets({first: full, second: stale})
    send(transit, sent, SYN, where)
    assert transit.bucket(first) == full
    assert [i for i in range(8) if transit.bucket(second)[i] != stale[i]] == [3]


# ---- ages ----


@pytest.mark.parametrize("age, kept", [(-1, True), (0, True), (WINDOW, True), (WINDOW + 1, False), (200, False)])
def test_a_datagram_follows_its_entry_for_the_window(transit, age, kept):
    where = in_transition(transit, slot=(OWNER, BASE, 1, 0))
    sent = flow(transit, udp=True)
    entry = Word(sent.fp, 0, now(transit, True) - age & 255, ADOPTED, transit.backends[THIRD][3], THIRD)
    transit.write_buckets({where.start: [entry] + [None] * 7})
    to, words = send(transit, sent, 0, where)
    assert to == (THIRD if kept else OWNER)
    assert words[0] == (entry._replace(state=LIVE, seen=now(transit, True)) if kept else
                        Word(sent.fp, 0, now(transit, True), ADOPTED, transit.backends[OWNER][3], OWNER))


def test_a_segment_follows_its_entry_however_old(transit):
    """Until the scan deletes it: nobody else has a claim to the connection."""
    where = in_transition(transit)
    sent = flow(transit)
    entry = Word(sent.fp, 9, now(transit, False) - 255 & 255, LIVE, transit.backends[THIRD][3], THIRD)
    transit.write_buckets({where.start: [entry] + [None] * 7})
    to, words = send(transit, sent, ACK, where)
    assert to == THIRD and words[0] == entry._replace(seen=now(transit, False))


@pytest.mark.parametrize("udp", [False, True], ids=["TCP", "UDP"])
def test_each_protocol_counts_in_units_of_its_own(transit, udp):
    fast = Limits(20, 63, SETTLE, CLOSED, WINDOW) if not udp else Limits(63, 20, SETTLE, CLOSED, WINDOW)
    where = in_transition(transit, limits=fast)
    sent = flow(transit, udp)
    for _ in range(5):
        before = time.clock_gettime_ns(6) >> 20
        _, words = send(transit, sent, ACK, where)
        after = time.clock_gettime_ns(6) >> 20
        (word,) = [w for w in words if w]
        assert word.seen in {t & 255 for t in range(before, after + 1)}
        time.sleep(0.01)


# ---- ISN bits ----


@pytest.mark.parametrize("seq8, inside", [(200, True), (201, True), (202, False), (199, False), (72, False)])
def test_the_window_after_the_syn(transit, seq8, inside):
    where = in_transition(transit, slot=(OWNER, BASE, 1, 0))
    sent = flow(transit)
    assert send(transit, sent, SYN, where, 200)[0] == OWNER
    to, words = send(transit, sent, ACK, where, seq8)
    assert to == (OWNER if inside else BASE)
    (word,) = [w for w in words if w]
    assert (word.state, word.isn) == (LIVE if inside else HALF, 200)


def test_the_window_wraps(transit):
    where = in_transition(transit)
    sent = flow(transit)
    send(transit, sent, SYN, where, 255)
    assert send(transit, sent, ACK, where, 0)[0] == OWNER


def test_an_adopted_entry_has_isn_0_and_lets_a_syn_that_matches_through(transit):
    where = in_transition(transit)
    sent = flow(transit)
    assert send(transit, sent, ACK, where, 77)[0] == BASE
    present, up, _, generation = transit.backends[BASE]
    transit.set_backend(BASE, (present, up, 1, generation))
    assert send(transit, sent, SYN, where, 0)[0] == BASE
    to, words = send(transit, sent, SYN, where, 77)
    assert to == OWNER
    (word,) = [w for w in words if w]
    assert (word.state, word.isn, word.backend) == (HALF, 77, OWNER)


@pytest.mark.parametrize("flags, state", [(ACK, LIVE), (FIN | ACK, CLOSING), (RST, CLOSING), (SYN | ACK, LIVE)])
def test_what_a_segment_makes_of_its_entry(transit, flags, state):
    where = in_transition(transit)
    sent = flow(transit)
    send(transit, sent, SYN, where, 3)
    _, words = send(transit, sent, flags, where, 3)
    assert [w.state for w in words if w] == [state]


# ---- dropped ----


def test_drops_have_their_reason(transit):
    where = in_transition(transit)
    present, _, _, generation = transit.backends[OWNER]
    transit.set_backend(OWNER, (present, 0, 0, generation))
    before = transit.kernel.counters()
    assert send(transit, flow(transit), SYN, where)[0] == NONE
    assert reasons(before, transit.kernel.counters()) == {"drop_transit": 1}


# ---- a slot's own word, where it is looked at ahead ----

OWN = 8 * 2000


@pytest.fixture(scope="module")
def middle():
    with Transit(backends=3, slots=4111) as made:
        made.limits = Limits(*shifts(), SETTLE, CLOSED, WINDOW)
        yield made


@pytest.mark.parametrize("udp", [False, True], ids=["TCP", "UDP"])
@pytest.mark.parametrize("slot, of_another, to", [
    ((OWNER, BASE, 1, 1), False, THIRD),
    # A packet under way when the slot came to rest may have left an entry: the owner decides.
    ((OWNER, OWNER, 0, 0), False, OWNER),
    ((OWNER, BASE, 1, 1), True, BASE),
])
def test_an_own_word_decides_in_transition_alone_and_for_its_flow(middle, udp, slot, of_another, to):
    where = in_transition(middle, slot=slot, own=OWN)
    sent = flow(middle, udp)
    bucket, place = divmod(OWN + middle.slot(sent), 8)
    fp = sent.fp ^ (2 if of_another else 0)
    entry = Word(fp, 9, now(middle, udp), LIVE, middle.backends[THIRD][3], THIRD)
    middle.write_buckets({bucket: [entry if i == place else None for i in range(8)]})
    assert send(middle, sent, ACK, where)[0] == to
    assert middle.bucket(bucket)[place] == entry


# ---- several CPUs ----


@pytest.mark.parametrize("log2, own, word", [(0, 0, None), (3, 0, None), (11, 0, None), (3, 32000, None), (3, 32000, USED)])
def test_cpus_that_insert_one_flow_at_once_leave_one_entry(transit, log2, own, word):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU")
    where = in_transition(transit, log2, own=own)
    empty = {b: [None] * 8 for b in range(where.start, where.start + (1 << log2))}
    empty |= {b: [word] * 8 for b in range(own // 8, (own + transit.n_slots + 7) // 8) if own}
    transit.write_buckets(empty)
    rnd = random.Random(log2)
    flows = {}
    while len(flows) < RACES // 3:
        made = flow(transit, rnd=rnd)
        flows.setdefault(made.fp, made)
    before = transit.pool_stats()
    made = list(flows.values())
    for at in range(0, len(made), 200):
        # Both kinds of insertion: SYNs at once, then segments at once.
        frames = [f.frame(SYN if i % 2 else ACK).hex() for i, f in enumerate(made[at : at + 200])]
        transit.kernel.ask("race", cpus=cpus[:2] * 2, frames=frames)
        # The largest range takes several thousand.
        if log2 < 11 or at % 6000 == 5800:
            assert not doubled(transit, empty)
            transit.write_buckets(empty)
    after = transit.pool_stats()
    assert not doubled(transit, empty)
    if log2 == 11:
        assert after["refused"] == before["refused"]
        assert after["inserted"] - before["inserted"] == len(made)


def doubled(transit, buckets):
    """Fingerprints that stand twice in them."""
    words = [w.fp for b in buckets for w in transit.bucket(b) if w and w != USED]
    return [fp for fp in set(words) if words.count(fp) > 1] if len(set(words)) < len(words) else []
