# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figures that are known, or promised in docs/tables.md."""

import random
import statistics

import pytest

import tables
from tables import Member

M = 65537


def backends(n, weight=1, prefix="web"):
    """Names whose order is that of their numbers, so that the newest comes last."""
    return [Member(f"{prefix}{i:05}", weight) for i in range(n)]


def owners_of_keys(table, keys):
    """As packets find their slot: multiply-shift of a 64-bit hash."""
    names = table.names()
    return [names[key * table.slots >> 64] for key in keys]


def moved(before, after):
    return sum(a != b for a, b in zip(before, after)) / len(before)


@pytest.fixture(scope="module")
def keys():
    rng = random.Random(200000)
    return [rng.getrandbits(64) for _ in range(200000)]


def grow(algorithm, n, keys, **options):
    before, after = (tables.build(algorithm, backends(k), M, **options) for k in (n, n + 1))
    return owners_of_keys(before, keys), owners_of_keys(after, keys)


@pytest.mark.parametrize("n, percent, within", [(10, 90.9, 0.5), (120, 99.17, 0.1)])
def test_modulo_moves_nearly_all_keys(keys, n, percent, within):
    assert abs(100 * moved(*grow("modulo", n, keys)) - percent) <= within


def test_ring_moves_one_in_eleven(keys):
    assert abs(100 * moved(*grow("ring", 10, keys, vnodes=200)) - 9.1) <= 1.5


def test_jump_moves_only_to_the_new_bucket(keys):
    for n in 10, 120:
        before, after = grow("jump", n, keys)
        assert {b for a, b in zip(before, after) if a != b} == {f"web{n:05}"}
        assert abs(moved(before, after) - 1 / (n + 1)) < 0.01


@pytest.mark.parametrize("vnodes, most, least", [(1, 2.30, 0.12), (10, 1.46, 0.69), (200, 1.11, 0.92)])
def test_imbalance_of_a_ring_of_ten(vnodes, most, least):
    high, low = [], []
    for seed in range(200):
        count = tables.build("ring", backends(10, prefix=f"seed{seed}-"), M, vnodes=vnodes).counts().values()
        high.append(max(count) * 10 / M)
        low.append(min(count) * 10 / M)
    for sample, figure in (high, most), (low, least):
        percentile = statistics.quantiles(sample, n=20)
        assert percentile[0] <= figure <= percentile[-1]


def test_leaving_a_ring_moves_no_key_of_the_others(keys):
    for gone in range(5):
        members = backends(5)
        before = owners_of_keys(tables.build("ring", members, M), keys)
        left = members.pop(gone)
        after = owners_of_keys(tables.build("ring", members, M), keys)
        assert {a for a, b in zip(before, after) if a != b} == {left.name}


@pytest.mark.parametrize("n, most", [(100, 1.001), (1000, 1.008)])
def test_balance_of_maglev(n, most):
    count = tables.build("maglev", backends(n), M).counts().values()
    assert max(count) * n / M <= most


def test_needless_movement_of_maglev():
    """For every one of 100 that may leave."""
    members = backends(100)
    before = tables.build("maglev", members, M)
    for gone in range(100):
        excess = tables.diff(before, tables.build("maglev", members[:gone] + members[gone + 1:], M))[2]
        assert 0.0045 <= excess / M <= 0.0070


@pytest.mark.parametrize("algorithm", ["maglev", "minimal"])
def test_shares_follow_weights(algorithm):
    count = tables.build(algorithm, [Member("a", 1), Member("b", 2), Member("c", 4)], M).counts()
    for name, weight in ("a", 1), ("b", 2), ("c", 4):
        assert abs(count[name] - M * weight / 7) < 1
    assert tables.build(algorithm, [Member("a", 1), Member("b", 65535)], M).counts() == {"a": 1, "b": M - 1}
    assert tables.build(algorithm, [Member("a", 1), Member("b", 65535)], 5).counts() == {"a": 1, "b": 4}


@pytest.mark.parametrize("algorithm", ["maglev", "minimal"])
def test_limits(algorithm):
    with pytest.raises(tables.TableError, match="300 backends .* 251 slots: .* 307; 30011 keeps"):
        tables.build(algorithm, backends(300), 251)
    with pytest.raises(tables.TableError, match="10001 backends"):
        tables.build(algorithm, backends(10001), M)
    table = tables.build(algorithm, backends(10000), 1048573)
    assert set(table.counts().values()) == {104, 105}
    assert len(table.warnings) == 0


@pytest.mark.parametrize("weights, slots", [([1, 2, 4], 101), ([3] * 90, 251), (list(range(1, 40)), 4099)])
def test_the_size_that_a_warning_names_will_do(weights, slots):
    members = [Member(f"web{i}", weight) for i, weight in enumerate(weights)]
    (warning,) = tables.build("maglev", members, slots).warnings
    size = int(warning.split(" size of ")[1].split()[0])
    table = tables.build("maglev", members, size)
    assert table.warnings == []
    for member in members:
        share = size * member.weight / sum(weights)
        assert abs(table.counts()[member.name] - share) <= share * 0.01


@pytest.mark.parametrize("vnodes", [1, 10, 200])
def test_a_ring_with_balance(vnodes):
    for seed in range(5):
        members = backends(50, prefix=f"seed{seed}-")
        quota = tables.quotas(members, M)
        count = tables.build("ring", members, M, balance=105, vnodes=vnodes).counts()
        assert all(count[name] <= max(1.05 * quota[name], quota[name] + 1) for name in count)
