# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables by the book: docs/tables.md written down a second time, for clarity and not for speed.

Permutations and token lists are materialised, shares are fractions, logarithms are floating point.  Nothing here is
derived from the C code.  A table is a list of names (None: no owner); members are objects with name, weight and zone.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from fractions import Fraction
from functools import lru_cache

M64 = (1 << 64) - 1
OFFSET, SKIP, SCORE, TOKEN = range(4)
GOLDEN = 0x9E3779B97F4A7C15


def rotl(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & M64


def xxh64(data, seed=0):
    """XXH64 as its specification has it."""
    p1, p2, p3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
    p4, p5 = 9650029242287828579, 2870177450012600261

    def mix(acc, lane):
        return rotl((acc + lane * p2) & M64, 31) * p1 & M64

    def word(at, size):
        return int.from_bytes(data[at:at + size], "little")

    at, length = 0, len(data)
    if length >= 32:
        acc = [(seed + p1 + p2) & M64, (seed + p2) & M64, seed, (seed - p1) & M64]
        while at + 32 <= length:
            acc = [mix(a, word(at + 8 * i, 8)) for i, a in enumerate(acc)]
            at += 32
        h = sum(rotl(a, bits) for a, bits in zip(acc, (1, 7, 12, 18))) & M64
        for a in acc:
            h = ((h ^ mix(0, a)) * p1 + p4) & M64
    else:
        h = (seed + p5) & M64
    h = (h + length) & M64
    while at + 8 <= length:
        h = (rotl(h ^ mix(0, word(at, 8)), 27) * p1 + p4) & M64
        at += 8
    if at + 4 <= length:
        h = (rotl(h ^ (word(at, 4) * p1 & M64), 23) * p2 + p3) & M64
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ (byte * p5 & M64), 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32


@lru_cache(maxsize=None)
def name_hash(name, use):
    return xxh64(name.encode(), use)


def mix64(x):
    x = ((x ^ x >> 33) * 0xFF51AFD7ED558CCD) & M64
    x = ((x ^ x >> 33) * 0xC4CEB9FE1A85EC53) & M64
    return x ^ x >> 33


def by_name(members):
    return sorted((m for m in members if m.weight), key=lambda m: m.name.encode())


# ---- shares ----


def quotas(members, slots):
    """Largest remainder; whoever is due less than one slot gets one, and the rest is shared among the others."""
    quota = {m.name: 0 for m in members}
    rest, left = by_name(members), slots
    assert len(rest) <= slots
    while True:
        total = sum(m.weight for m in rest)
        small = [m for m in rest if m.weight * left < total]
        if not small:
            break
        quota.update((m.name, 1) for m in small)
        left -= len(small)
        rest = [m for m in rest if m not in small]
    due = {m.name: Fraction(left * m.weight, total) for m in rest}
    quota.update((name, math.floor(share)) for name, share in due.items())
    over = left - sum(math.floor(share) for share in due.values())
    # sorted() is stable: equal remainders stay in order of names.
    for name in sorted(due, key=lambda n: -(due[n] % 1))[:over]:
        quota[name] += 1
    return quota


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


# ---- algorithms ----


def permutation(name, slots):
    offset, skip = name_hash(name, OFFSET) % slots, name_hash(name, SKIP) % (slots - 1) + 1
    return ((offset + k * skip) % slots for k in range(slots))


def maglev(members, slots, quota=None):
    table = [None] * slots
    members = by_name(members)
    if not members:
        return table
    quota = quota or quotas(members, slots)
    heaviest = max(m.weight for m in members)
    walk = {m.name: permutation(m.name, slots) for m in members}
    had = Counter()
    line = defaultdict(list)
    line[0] = members
    current = 0
    while None in (table if current % 64 == 0 else [None]) and current <= 70000:
        for m in line.pop(current, []):
            table[next(slot for slot in walk[m.name] if table[slot] is None)] = m.name
            had[m.name] += 1
            if had[m.name] < quota[m.name]:
                line[had[m.name] * heaviest // m.weight].append(m)
        current += 1
    return table


def minimal(members, slots, previous):
    """previous: a list of names, or None."""
    quota = quotas(members, slots) if by_name(members) else {}
    canonical = maglev(members, slots)
    if previous is None or len(previous) != slots or not quota:
        return canonical
    table = [name if quota.get(name) else None for name in previous]
    have = Counter(table)
    lack = {name: quota[name] - have[name] for name in quota}

    def move(slot, to):
        if table[slot] is not None:
            lack[table[slot]] += 1
        if to is not None:
            lack[to] -= 1
        table[slot] = to

    for slot in range(slots):
        if table[slot] is None and lack[canonical[slot]] > 0:
            move(slot, canonical[slot])
    for slot in range(slots):
        if table[slot] is not None and lack[table[slot]] < 0 < lack[canonical[slot]]:
            move(slot, canonical[slot])
    for agreeing in False, True:
        for slot in range(slots):
            if table[slot] is not None and lack[table[slot]] < 0 and (table[slot] == canonical[slot]) == agreeing:
                move(slot, None)
    waiting = [m.name for m in by_name(members) for _ in range(max(lack[m.name], 0))]
    for slot in range(slots):
        if table[slot] is None:
            move(slot, waiting.pop(0))
    return table


def caps(members, slots, balance):
    if not balance:
        return {m.name: slots for m in members}
    spare = 1 if balance > 100 else 0
    return {name: max(quota * balance // 100, quota + spare) if quota else 0
            for name, quota in quotas(members, slots).items()}


def score(name, weight, slot):
    """Least first: an exponential variable of the weight's rate."""
    h = mix64(name_hash(name, SCORE) ^ mix64(slot + GOLDEN))
    # log1p where the hash is near its end: there 1 - u is exact and u is not.
    minus_log = -math.log1p((h + 1 - 2**64) / 2**64) if h >> 63 else 64 * math.log(2) - math.log(h + 1)
    return minus_log / weight


def ranking(members, slot):
    """Names in order of preference, with their scores."""
    return sorted((score(m.name, m.weight, slot), m.name) for m in members if m.weight)


def rendezvous(members, slots, balance=0):
    """The table, and for each slot how near the second came (relative): below 1e-9 floats cannot tell."""
    room = caps(members, slots, balance)
    table, near = [], []
    for slot in range(slots):
        able = [(s, name) for s, name in ranking(members, slot) if room[name]]
        table.append(able[0][1] if able else None)
        near.append((able[1][0] - able[0][0]) / able[1][0] if len(able) > 1 else 1)
        if able:
            room[table[-1]] -= 1
    return table, near


def tokens(members, vnodes):
    """(token, name, index), sorted."""
    return sorted((mix64((name_hash(m.name, TOKEN) + i * GOLDEN) & M64), m.name.encode(), i)
                  for m in members for i in range(m.weight * vnodes))


def ring(members, slots, vnodes=200, balance=0):
    all_tokens = tokens(members, vnodes)
    point = [-(-slot * 2**64 // slots) for slot in range(slots)]
    if not all_tokens:
        return [None] * slots
    if not balance:
        return [all_tokens[bisect_left(all_tokens, (p,)) % len(all_tokens)][1].decode() for p in point]
    # Spilling goes on to the first token of each arc between two slots.
    kept = []
    for p, end in zip(point, point[1:] + [2**64]):
        at = bisect_left(all_tokens, (p,))
        if at < len(all_tokens) and all_tokens[at][0] < end:
            kept.append(all_tokens[at])
    room = caps(members, slots, balance)
    table = []
    for p in point:
        at = bisect_left(kept, (p,))
        way = [name.decode() for _, name, _ in kept[at:] + kept[:at]] + [m.name for m in by_name(members)]
        table.append(next(name for name in way if room[name]))
        room[table[-1]] -= 1
    return table


def jump(members, slots):
    names = [m.name for m in by_name(members)]
    table = []
    for slot in range(slots):
        key, bucket, following = mix64(slot + GOLDEN), -1, 0
        while following < len(names):
            bucket = following
            key = (key * 2862933555777941757 + 1) & M64
            following = (bucket + 1) * 2**31 // ((key >> 33) + 1)
        table.append(names[bucket] if names else None)
    return table


def modulo(members, slots):
    names = [m.name for m in by_name(members)]
    return [names[mix64(slot) % len(names)] if names else None for slot in range(slots)]


# ---- of tables ----


def digest(table):
    names = sorted({name.encode() for name in table if name is not None})
    rank = {name.decode(): i for i, name in enumerate(names)}
    data = len(table).to_bytes(4, "little") + len(names).to_bytes(4, "little")
    data += b"".join(name + b"\0" for name in names)
    data += b"".join((0xFFFF if name is None else rank[name]).to_bytes(2, "little") for name in table)
    return xxh64(data)


def movement(before, after):
    """(moved, minimum) of two tables of names: a slot without an owner is a share like any other."""
    moved = sum(a != b for a, b in zip(before, after))
    return moved, len(before) - sum((Counter(before) & Counter(after)).values())


def preference(members, table, slot, k):
    """(names, zones, under-replicated)."""
    order = [name for _, name in ranking(members, slot)]
    if table[slot] in order:
        order.remove(table[slot])
        order.insert(0, table[slot])
    zone = {m.name: ("zone", m.zone) if m.zone else ("own", m.name) for m in members}
    first = list({zone[name]: name for name in reversed(order)}.values())
    first = sorted(first, key=order.index)[:k]
    rest = [name for name in order if name not in first]
    return first + rest[: k - len(first)], len(first), len(first) < k
