# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The default table a second time, from the prose of user/lib/table/: who owns which slot."""

import heapq
import struct

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def _round(lane, word):
    return _rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed=0):
    """XXH64, from its specification."""
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed & MASK, (seed - P1) & MASK]
        for at in range(0, length - 31, 32):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
        at += 32
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * P1 + P4) & MASK
    else:
        value = (seed + P5) & MASK
    value = (value + length) & MASK
    while length - at >= 8:
        value = (_rotate(value ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if length - at >= 4:
        value = (_rotate(value ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        value = _rotate(value ^ byte * P5 & MASK, 11) * P1 & MASK
    value = (value ^ value >> 33) * P2 & MASK
    value = (value ^ value >> 29) * P3 & MASK
    return value ^ value >> 32


def quotas(weights, slots):
    """{name: slots} by largest remainder, where each positive weight has at least one slot."""
    rest = {name: weight for name, weight in weights.items() if weight}
    out = {}
    while rest:
        total = sum(rest.values())
        small = [name for name, weight in rest.items() if slots * weight < total]
        if not small:
            break
        # The lightest first: it takes its slot, and the others share what is left.
        lightest = min(small, key=lambda name: (rest[name], name))
        out[lightest] = 1
        slots -= 1
        del rest[lightest]
    if rest:
        total = sum(rest.values())
        out.update({name: slots * weight // total for name, weight in rest.items()})
        left = slots - sum(out[name] for name in rest)
        for name in sorted(rest, key=lambda name: (-(slots * rest[name] % total), name))[:left]:
            out[name] += 1
    return out


def owners(weights, slots):
    """The owner's name of each slot (None: nobody has one); weights: {name: weight}."""
    left = quotas(weights, slots)
    table = [None] * slots
    if not left:
        return table
    heaviest = max(weights.values())
    turns = []
    position, skip, taken = {}, {}, {}
    for line, name in enumerate(sorted(left, key=str.encode)):
        position[name] = xxh64(name.encode(), 0) % slots
        skip[name] = xxh64(name.encode(), 1) % (slots - 1) + 1
        taken[name] = 0
        heapq.heappush(turns, (0, line, name))
    line = len(left)
    while turns:
        _, _, name = heapq.heappop(turns)
        at = position[name]
        while table[at] is not None:
            at = (at + skip[name]) % slots
        table[at] = name
        position[name] = (at + skip[name]) % slots
        taken[name] += 1
        if taken[name] < left[name]:
            # Turn k falls into round k * heaviest / weight; within a round, who came first waits in front.
            heapq.heappush(turns, (taken[name] * heaviest // weights[name], line, name))
            line += 1
    return table
