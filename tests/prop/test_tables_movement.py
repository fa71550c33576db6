# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What moves: `minimal` exactly the minimum, `rendezvous` and `ring` nothing between those that stay."""

import random
import time
from collections import Counter

import pytest

import oracle
import tables
from tables import Member

M = 65537
MEMBERSHIPS = 10000 * tables.SCALE
# A fixed seed for every change; the nightly form takes another each time, and failures name it.
SEED = 3 if tables.SCALE == 1 else int(time.time())
SIZES = [101, 251, 509, 1009]


def reweigh(members, index, weight):
    members = list(members)
    members[index] = members[index]._replace(weight=weight)
    return members


def without(members, gone):
    return [m for i, m in enumerate(members) if i not in gone]


def events(members, rng):
    """Each event's name, and the memberships that it goes through, one after another."""
    n = len(members)
    one = rng.randrange(n)
    weight = members[one].weight
    newcomer = Member("newcomer", rng.choice(members).weight)
    full = min(10 * newcomer.weight, 65530)  # ten equal steps in whole numbers
    tenfold = [m._replace(weight=min(m.weight * 10, 65535)) for m in members]
    yield "add", [members, members + [newcomer]]
    if n > 1:
        yield "remove", [members, without(members, {one})]
    for k in range(1, min(10, n - 1) + 1):
        yield f"fail {k}", [members, without(members, set(rng.sample(range(n), k)))]
    yield "double", [members, reweigh(members, one, min(2 * weight, 65535))]
    yield "halve", [members, reweigh(members, one, max(weight // 2, 1))]
    if n > 1:
        yield "drain", [members, reweigh(members, one, 0)]
        yield "flap", [members, without(members, {one}), members]
    yield "slow start", [tenfold] + [tenfold + [newcomer._replace(weight=full * step // 10)] for step in range(1, 11)]


def check_minimal(members, slots, rng, quotas_of=oracle.quotas):
    for name, course in events(members, rng):
        first = table = tables.build("minimal", course[0], slots)
        before = table.names()
        for step in course[1:]:
            table = tables.build("minimal", step, slots, table)
            after = table.names()
            quota = {n: q for n, q in quotas_of(step, slots).items() if q}
            assert Counter(after) == quota, name
            # The minimum follows from shares alone.
            minimum = slots - sum((Counter(before) & Counter(quota)).values())
            assert sum(a != b for a, b in zip(before, after)) == minimum, name
            before = after
        if name == "flap":
            assert table.owner == first.owner


@pytest.mark.parametrize("high", [1, 100])
@pytest.mark.parametrize("n", [2, 10, 100, 1000, 4000])
def test_minimal_moves_the_minimum(n, high):
    rng = random.Random(n + high)
    check_minimal([Member(f"web{i}", rng.randint(1, high)) for i in range(n)], M, rng)


def test_minimal_moves_the_minimum_for_random_memberships():
    """One event of each, also from tables that many changes have led away from the canonical one."""
    for case in range(MEMBERSHIPS):
        rng = random.Random(f"{SEED} {case}")
        slots = rng.choice(SIZES)
        high = rng.choice([1, 4, 100, 65535])
        members = [Member(f"{rng.randrange(1000)}-{i}", rng.randint(1, high)) for i in range(rng.randint(1, 40))]
        table = tables.build("minimal", members, slots)
        before = table.names()
        for _ in range(4):
            name, course = rng.choice(list(events([m for m in members if m.weight], rng)))
            for step in course[1:]:
                table = tables.build("minimal", step, slots, table)
                after = table.names()
                quota = {n: q for n, q in oracle.quotas(step, slots).items() if q}
                assert Counter(after) == quota, (SEED, case, name)
                minimum = slots - sum((Counter(before) & Counter(quota)).values())
                assert sum(a != b for a, b in zip(before, after)) == minimum, (SEED, case, name)
                before = after
            members = [m._replace(name=f"{rng.randrange(1000)}-new") if m.name == "newcomer" else m for m in course[-1]]
            members = list({m.name: m for m in members}.values())


@pytest.mark.parametrize("high", [1, 100])
@pytest.mark.parametrize("n", [2, 10, 100, 1000])
def test_leaving_and_rejoining_restores_every_byte(n, high):
    rng = random.Random(n * high)
    for _ in range(5):
        members = [Member(f"{rng.randrange(10**6)}-{i}", rng.randint(1, high)) for i in range(n)]
        first = tables.build("minimal", members, M)
        away = set(rng.sample(range(n), rng.randint(1, min(n - 1, 10))))
        table = tables.build("minimal", without(members, away), M, first)
        assert table.owner != first.owner
        assert tables.build("minimal", members, M, table).owner == first.owner


@pytest.mark.parametrize("kind", ["leave and rejoin", "weights"])
def test_drift_from_the_canonical_table(kind):
    """After each of 500 random changes of 100 backends."""
    rng = random.Random(500)
    members = [Member(f"web{i}", 4) for i in range(100)]
    table = tables.build("minimal", members, M)
    worst = 0
    for _ in range(500):
        one = rng.randrange(100)
        if kind == "weights":
            members = reweigh(members, one, rng.choice([0, 1, 2, 3, 4, 6, 8]))
        else:
            members = reweigh(members, one, 4 - members[one].weight)
        table = tables.build("minimal", members, M, table)
        canonical = tables.build("maglev", members, M)
        worst = max(worst, sum(a != b for a, b in zip(table.owner, canonical.owner)) / M)
    print(f"{kind}: at most {worst:.2%} of the slots differ")
    assert worst < 0.12


def only_for_a_reason(before, after, left, grown, shrunk):
    """Slots that moved lost their owner, or part of its weight, or went to one that is new or has grown."""
    return all(a == b or a in left or b in grown or a in shrunk for a, b in zip(before, after))


@pytest.mark.parametrize("algorithm", ["rendezvous", "ring"])
@pytest.mark.parametrize("high", [1, 100])
def test_no_slot_moves_between_those_that_stay(algorithm, high):
    for case in range(60 * tables.SCALE):
        rng = random.Random(f"{SEED} {case}")
        slots = rng.choice([1009, 4099])
        vnodes = rng.choice([1, 5])
        members = [Member(f"{rng.randrange(1000)}-{i}", rng.randint(1, high)) for i in range(rng.randint(2, 60))]
        before = tables.build(algorithm, members, slots, vnodes=vnodes).names()
        for name, course in events(members, rng):
            if name in ("slow start", "flap"):
                continue
            after = tables.build(algorithm, course[-1], slots, vnodes=vnodes).names()
            old, new = ({m.name: m.weight for m in c if m.weight} for c in (members, course[-1]))
            assert only_for_a_reason(before, after, left=old.keys() - new.keys(),
                                     grown={n for n in new if new[n] > old.get(n, 0)},
                                     shrunk={n for n in new if new[n] < old.get(n, 0)}), (case, name)
            if algorithm == "rendezvous" and name in ("add", "remove") or name.startswith("fail"):
                assert oracle.movement(before, after)[0] == oracle.movement(before, after)[1]


@pytest.mark.parametrize("high", [1, 100])
def test_balance_of_rendezvous(high):
    rng = random.Random(105)
    for n in 2, 10, 100:
        members = [Member(f"web{i}", rng.randint(1, high)) for i in range(n)]
        count = tables.build("rendezvous", members, M, balance=105).counts()
        quota = oracle.quotas(members, M)
        assert all(count[name] <= max(1.05 * quota[name], quota[name] + 1) for name in quota)
        assert sum(count.values()) == M
