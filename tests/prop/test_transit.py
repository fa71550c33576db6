# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slots in transition, over random histories, against the rules of docs/connections.md (tests/model/daemon.py).

Changes of tables with servers that go or get another id, time, drains that are cut off, scans, and entries as packets
leave them: after each step owner, base, tracked, learning, t0 and the time until something is due are those of the rules,
and a scan deletes what they say and nothing else.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path

import tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
import daemon  # noqa: E402  pylint: disable=wrong-import-position
from daemon import NONE  # noqa: E402  pylint: disable=wrong-import-position

lib = tables.lib
SLOTS, IDS, BUCKETS, WAYS = 5, 6, 16, 8
C_NONE, TRANSIT_IDS, FLAG, FOREVER, USED = 0x7FFF, 0x8000, 0x8000, 0xFFFFFFFF, 0xFFFF
HALF, ADOPTED, LIVE, CLOSING = range(4)
SINCE_SCAN = 100  # the daemon scans before so many units have passed


class CTransit(ctypes.Structure):
    _fields_ = [("slots", c_uint32), ("owner", POINTER(c_uint16)), ("base", POINTER(c_uint16)),
                ("range", POINTER(c_uint32)), ("t0", POINTER(c_uint32)), ("own", c_uint32)]


class CTimes(ctypes.Structure):
    _fields_ = [("now", c_uint32), ("learn", c_uint32), ("settle", c_uint32), ("blocked", c_bool)]


class CDone(ctypes.Structure):
    _fields_ = [("learned", c_uint32), ("settled", c_uint32), ("forced", c_uint32)]


class CScan(ctypes.Structure):
    _fields_ = [("buckets", c_void_p), ("backends", c_void_p), ("n_backends", c_uint32), ("limits", c_uint64),
                ("clock", c_uint64), ("called", c_void_p), ("cut", c_void_p), ("of_backend", c_void_p),
                ("of_status", c_void_p)]


lib.transit_pass.restype = CDone
lib.transit_limits.restype = c_uint64
lib.transit_due.restype = lib.transit_removed.restype = lib.transit_untrack.restype = c_uint32
for at, struct in enumerate([CTransit, CTimes, CDone, CScan]):
    assert ctypes.sizeof(struct) == (c_size_t * 4).in_dll(lib, "shim_transit_sizes")[at], struct
BACKEND_WORDS = c_size_t.in_dll(lib, "shim_backend_size").value // 8


class Limits:
    """Units and limits of ages, from what docs/shunt.yaml.5.rst and docs/connections.md promise."""

    def __init__(self, settle_ms, learn_ms):
        self.settle, self.learn = settle_ms // 100, learn_ms // 100  # deciseconds
        self.shift = {False: self.shift_for(settle_ms, 120), True: self.shift_for(learn_ms, 10)}
        self.idle = self.units(settle_ms, False)
        self.closing = min(self.units(min(settle_ms, 240000), False), self.idle)
        self.window = self.units(learn_ms, True)
        self.half = min(max(60 * 10**9 // 2**self.shift[False] + 1, 2), self.idle)
        self.word = lib.transit_limits(c_uint64(settle_ms), c_uint64(learn_ms), c_uint64(0))

    @staticmethod
    def shift_for(ms, most):
        return next(s for s in range(30, 64) if -(-ms * 10**6 // 2**s) <= most)

    def units(self, ms, udp):
        return -(-ms * 10**6 // 2**self.shift[udp])

    def of(self, entry):
        return self.window if entry["udp"] else {HALF: self.half, CLOSING: self.closing}.get(entry["status"], self.idle)


class History:
    """One history, told to the library and to the rules."""

    def __init__(self, limits, now):
        self.limits, self.now, self.clock, self.since_scan = limits, now, 10**15, 0
        self.transit = CTransit()
        assert lib.transit_init(byref(self.transit), c_uint32(SLOTS)) == 0
        self.slots, self.t0 = [(NONE, NONE, 0, 0)] * SLOTS, [0] * SLOTS
        self.generation = [1] * IDS
        self.present = [i < IDS - 2 for i in range(IDS)]
        self.entries = {}  # (bucket, way): entry
        self.used = set()  # own words whose entry was deleted
        self.buckets = (c_uint64 * (BUCKETS * WAYS))()
        self.called = (c_uint16 * TRANSIT_IDS)(*[C_NONE] * TRANSIT_IDS)

    def close(self):
        lib.transit_free(byref(self.transit))

    # ---- what both know ----

    def backends(self):
        """As the rules want them."""
        return [(present, 1, 0, g) for present, g in zip(self.present, self.generation)]

    def c_backends(self):
        words = (c_uint64 * (IDS * BACKEND_WORDS))()
        for i in range(IDS):
            words[i * BACKEND_WORDS] = int(self.present[i]) | 2 | self.generation[i] << 8
        return words

    def set_called(self, names):
        for i in range(IDS):
            self.called[i] = C_NONE if names[i] == NONE else names[i]

    def range(self, slot):
        word = self.transit.range[slot]
        return range(word >> 4, (word >> 4) + (1 << (word & 15) - 1)) if word else range(0)

    def places(self, slot):
        """(bucket, way) of all words of the slot."""
        return self.own_place(slot) + [(bucket, way) for bucket in self.range(slot) for way in range(WAYS)]

    def own_place(self, slot):
        return [divmod(self.transit.own + slot, WAYS)] if self.transit.own and self.transit.range[slot] else []

    def own_buckets(self):
        return [self.transit.own // WAYS] if self.transit.own and any(s[2] for s in self.slots) else []

    # ---- events ----

    def table(self, owners, gone=(), rename=None):
        """A new table; servers `gone` are deleted with it, `rename` (old id, new id) goes on by another id."""
        names = [i if self.present[i] else NONE for i in range(IDS)]
        for i in gone:
            names[i], self.present[i] = NONE, False
        if rename and not (self.present[rename[0]] and not self.present[rename[1]] and rename[1] not in gone):
            rename = None
        if rename:
            old, new = rename
            names[old] = names[new] = new
            self.present[new], self.generation[new] = True, (self.generation[new] + 1) % 16
        usable = [i for i in range(IDS) if names[i] == i]
        owners = [o if o in usable else usable[o % len(usable)] if usable and o != NONE else NONE for o in owners]
        self.set_called(names)
        c_owners = (c_uint16 * SLOTS)(*[C_NONE if o == NONE else o for o in owners])
        lib.transit_change(byref(self.transit), c_owners, self.called, c_uint32(self.now))
        # By the rules: names first, then owners, then those who are gone.
        be, now_called = self.backends(), {i: names[i] for i in range(IDS) if names[i] != NONE}
        for slot, (o, b, t, l) in enumerate(self.slots):
            o, b = now_called.get(o, o), now_called.get(b, b)
            after, starts = daemon.change(be, (o, b, t, l), owners[slot])
            for i in gone:
                after = daemon.removed(after, i)
            self.slots[slot] = after
            self.t0[slot] = self.now if starts else self.t0[slot]
        self.check()
        if rename:
            self.scan(renamed=rename)
            self.present[rename[0]] = False
        for i in gone:  # the id is free: who gets it next has another generation
            self.generation[i] = (self.generation[i] + 1) % 16

    def join(self, i):
        self.present[i] = True

    def pass_time(self, deciseconds, blocked):
        self.now = (self.now + deciseconds) & FOREVER
        times = CTimes(self.now, self.limits.learn, self.limits.settle, blocked)
        done = lib.transit_pass(byref(self.transit), byref(times))
        learned = settled = 0
        span = self.limits.settle * (4 if blocked else 1)
        for slot, (o, b, t, l) in enumerate(self.slots):
            age = (self.now - self.t0[slot]) & FOREVER
            if l and age >= self.limits.learn:
                self.slots[slot] = daemon.window_ends(self.slots[slot])
                learned += 1
            if t and b not in (o, NONE) and o != NONE and age >= span:
                self.slots[slot] = daemon.settle(self.slots[slot])
                settled += 1
        assert (done.learned, done.settled, done.forced) == (learned, settled, settled if blocked else 0)
        self.check()
        due = [span - (self.now - t0 & FOREVER) for (o, b, t, _), t0 in zip(self.slots, self.t0)
               if t and b != o and o != NONE]
        due += [self.limits.learn - (self.now - t0 & FOREVER) for (*_, l), t0 in zip(self.slots, self.t0) if l]
        assert lib.transit_due(byref(self.transit), byref(times)) == min(due, default=FOREVER)

    def clock_on(self, units, udp):
        """Entries get older."""
        shift = self.limits.shift[udp]
        units = min(units, SINCE_SCAN - self.since_scan >> max(0, shift - min(self.limits.shift.values())))
        self.since_scan += units << max(0, shift - min(self.limits.shift.values()))
        self.clock += units << shift

    def cut(self, i):
        """A drain that took too long."""
        n = sum(1 for o, b, t, _ in self.slots if t and b == i != o)
        assert lib.transit_removed(byref(self.transit), c_uint32(i)) == n
        self.slots = [daemon.removed(s, i) if s[2] and s[1] == i != s[0] else s for s in self.slots]
        self.check()
        self.scan(cut=i)

    def allot(self, others):
        wanted = [i for i, s in enumerate(self.slots) if s[2] and not self.transit.range[i]]
        before = {i: self.transit.range[i] for i in range(SLOTS) if self.transit.range[i]}
        if not self.own_buckets():
            self.transit.own = 0  # as the engine publishes it at rest
        own = self.transit.own
        used = (c_uint32 * (SLOTS + 97))(*before.values())
        free = BUCKETS - sum(len(self.range(i)) for i in before) - len(self.own_buckets())
        lib.shim_transit_allot(byref(self.transit), c_uint32(BUCKETS), used, c_size_t(len(before)), c_uint64(others))
        assert all(self.transit.range[i] == word for i, word in before.items()), "what a slot has it keeps"
        assert self.transit.own == own or not own and self.transit.own % WAYS == 0
        taken = [bucket for i in range(SLOTS) for bucket in self.range(i)] + self.own_buckets()
        assert len(taken) == len(set(taken)) and all(0 <= bucket < BUCKETS for bucket in taken)
        assert sum(1 for i in wanted if self.transit.range[i]) == min(len(wanted), free)
        self.check()

    def packet(self, slot, place, backend, status, udp, age, stale):
        """Leaves an entry."""
        mine = self.places(slot)
        if not mine or not self.present[backend]:
            return
        bucket, way = mine[place % len(mine)]
        generation = (self.generation[backend] - stale) % 16
        unit = self.clock >> self.limits.shift[udp]
        entry = {"backend": backend, "status": status, "udp": udp, "seen": unit - age, "generation": generation}
        self.entries[bucket, way] = entry
        self.used.discard((bucket, way))
        self.buckets[bucket * WAYS + way] = self.word(entry)

    @staticmethod
    def word(entry):
        return ((2 | entry["udp"]) << 38 | (entry["seen"] & 255) << 22 | entry["status"] << 20 |
                entry["generation"] << 16 | entry["backend"])

    def scan(self, cut=None, renamed=None):
        dirty, of_backend, of_status = (c_bool * SLOTS)(), (c_uint32 * TRANSIT_IDS)(), (c_uint64 * 4)()
        cuts = (c_bool * TRANSIT_IDS)()
        if cut is not None:
            cuts[cut] = True
        backends = self.c_backends()
        scan = CScan(ctypes.addressof(self.buckets), ctypes.addressof(backends), IDS, self.limits.word, self.clock,
                     ctypes.addressof(self.called) if renamed else None, ctypes.addressof(cuts),
                     ctypes.addressof(of_backend), ctypes.addressof(of_status))
        lib.transit_scan(byref(self.transit), byref(scan), dirty)
        own = {place for slot in range(SLOTS) for place in self.own_place(slot)}
        for place, entry in list(self.entries.items()):
            valid = entry["generation"] == self.generation[entry["backend"]] and self.present[entry["backend"]]
            if renamed and valid and entry["backend"] == renamed[0]:
                entry.update(backend=renamed[1], generation=self.generation[renamed[1]])
            idle = (self.clock >> self.limits.shift[entry["udp"]]) - entry["seen"] > self.limits.of(entry)
            if not valid or idle or entry["backend"] == cut:
                del self.entries[place]
                self.used |= {place} & own
        words = {place: self.word(entry) for place, entry in self.entries.items()} | dict.fromkeys(self.used, USED)
        found = {divmod(i, WAYS): word for i, word in enumerate(self.buckets) if word}
        assert found == words
        expected = [any(place in self.places(slot) and entry["backend"] != owner
                        for place, entry in self.entries.items())
                    for slot, (owner, *_) in enumerate(self.slots)]
        assert list(dirty) == expected
        for i in range(IDS):
            assert of_backend[i] == sum(1 for e in self.entries.values() if e["backend"] == i)
        assert list(of_status) == [sum(1 for e in self.entries.values() if e["status"] == s) for s in range(4)]
        self.since_scan = 0
        return dirty

    def scan_and_rest(self):
        dirty = self.scan()
        mine = [self.places(i) for i in range(SLOTS)]
        rests = [i for i, (o, b, t, _) in enumerate(self.slots) if t and o == b and not dirty[i]]
        assert lib.transit_untrack(byref(self.transit), dirty) == len(rests)
        for slot in rests:
            self.slots[slot] = daemon.untrack(self.slots[slot])
            # Nobody reads them any more, and they are empty before another slot gets them.
            self.entries = {place: e for place, e in self.entries.items() if place not in mine[slot]}
            self.used -= set(mine[slot])
            for bucket, way in mine[slot]:
                self.buckets[bucket * WAYS + way] = 0
        self.check()

    def check(self):
        for i, (o, b, t, l) in enumerate(self.slots):
            owner, base = self.transit.owner[i], self.transit.base[i]
            found = (owner & 0x7FFF, base & 0x7FFF, bool(owner & FLAG), bool(base & FLAG))
            assert found == (C_NONE if o == NONE else o, C_NONE if b == NONE else b, bool(t), bool(l)), (i, found)
            assert self.transit.t0[i] == (self.t0[i] if b != o else 0)
            assert t or not self.transit.range[i], "buckets of a slot at rest"
            assert t or o == b


ids = st.integers(0, IDS - 1)
slots = st.integers(0, SLOTS - 1)
owners = st.lists(st.one_of(ids, ids, ids, st.just(NONE)), min_size=SLOTS, max_size=SLOTS)
events = st.one_of(
    st.tuples(st.just("table"), owners),
    st.tuples(st.just("table"), owners, st.lists(ids, max_size=2, unique=True)),
    st.tuples(st.just("table"), owners, st.just(()), st.tuples(ids, ids)),
    st.tuples(st.just("join"), ids),
    st.tuples(st.just("pass_time"), st.sampled_from([0, 1, 9, 10, 29, 30, 31, 119, 300, 36000, 78000, 320000]), st.booleans()),
    st.tuples(st.just("clock_on"), st.integers(0, 100), st.booleans()),
    st.tuples(st.just("cut"), ids),
    *[st.tuples(st.just("allot"), st.integers(0, 30))] * 2,
    *[st.tuples(st.just("packet"), slots, st.integers(0, 255), ids, st.integers(0, 3), st.booleans(),
                st.one_of(st.integers(0, 2), st.integers(0, 127)),
                st.sampled_from([0, 0, 0, 1]))] * 4,
    *[st.tuples(st.just("scan_and_rest"))] * 2,
)


@settings(max_examples=500 * tables.SCALE, deadline=None, derandomize=tables.SCALE == 1,
          suppress_health_check=list(HealthCheck))
@given(st.sampled_from([(3000, 1000), (7800000, 30000), (3600000, 60000), (12000, 12000)]),
       st.sampled_from([0, 1000, 2**32 - 40]), owners, st.lists(events, min_size=10, max_size=50))
def test_transitions_follow_the_rules(times, now, first, course):
    history = History(Limits(*times), now)
    try:
        history.table(first)
        for event, *arguments in course:
            getattr(history, event)(*arguments)
    finally:
        history.close()
