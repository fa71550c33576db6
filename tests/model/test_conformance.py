# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The packet path against the model, over random events: the same backend and the same words each time."""

import os
import random
import time

import pytest
from daemon import NONE, settle, takes, untrack, window_ends
from oracle import ROWS, Oracle, is_entry
from transit import ACK, FIN, LOCKED, PUSH, RST, SYN, USED, Limits, Range, Transit, shifts

EVENTS = int(os.environ.get("SHUNT_MODEL_EVENTS", "100000"))
SEED = int(os.environ.get("SHUNT_MODEL_SEED", "1"))
BACKENDS, PACKETS = 6, 40
# Slots, and flows of a slot that is played on.  The second: of a table whose slots are looked at ahead.
SMALL, MIDDLE = (251, 26), (4111, 13)
LOG2 = (0, 0, 1, 2)
# Changes, and steps of the daemon, by how often they come.
CHANGES = {"owner": 14, "drain": 5, "undrain": 7, "down": 4, "up": 9, "remove": 2, "add": 5, "window": 3, "settle": 2,
           "scan": 2, "untrack": 2, "age": 12, "lock": 1, "restart": 0.3}
ISNS = (0, 1, 2, 3, 127, 128, 254, 255)

FLAGS = {"S": (SYN, SYN, SYN | 0xC0, SYN | PUSH, SYN | FIN), "D": (ACK, ACK | PUSH, SYN | ACK, 0),
         "F": (FIN | ACK, FIN), "R": (RST, RST | ACK), "U": (0,)}


class Walk:
    """One random history, told to both sides."""

    def __init__(self, transit, rnd, own, flows):
        self.transit, self.rnd = transit, rnd
        slots = transit.n_slots
        tcp, udp = shifts()
        self.limits = Limits(tcp, udp, settle=9, closing=3, window=5)
        self.played = random_slots(transit, rnd, flows)
        buckets = 0
        self.places = {}
        for slot in self.played:
            log2 = rnd.choice(LOG2)
            self.places[slot] = Range(buckets, log2)
            buckets += 1 << log2
        self.model = Oracle(transit.backends, slots, buckets + (slots + 7) // 8, self.limits)
        self.model.own = 8 * buckets if own else 0
        self.model.slots = [(rnd.randrange(BACKENDS),) * 2 + (0, 0) for _ in range(slots)]
        self.model.slots = [(o, o, 0, 0) for o, _, _, _ in self.model.slots]
        # Both clocks stand still; time passes for an entry by making it older.
        self.model.now = {udp_: time.clock_gettime_ns(6) >> shift & 255
                          for udp_, shift in ((False, tcp), (True, udp))}
        self.events = self.restarts = 0
        self.publish()

    # ---- events ----

    def publish(self):
        model = self.model
        for slot in self.played:
            if model.slots[slot][2] and slot not in model.ranges:
                # Rule 9: now and then no range is left.
                model.ranges[slot] = self.places[slot] if self.rnd.random() < 0.9 else None
                self.set_own(slot, lambda _: None if model.ranges[slot] else USED)
            elif not model.slots[slot][2]:
                model.ranges.pop(slot, None)
        self.transit.publish(model.slots, model.ranges, self.limits, model.own)

    def set_states(self, before):
        for backend, (old, new) in enumerate(zip(before, self.model.be)):
            if old != new:
                self.transit.set_backend(backend, new)

    def set_own(self, slot, change):
        """change(word) of the slot's own word, on both sides."""
        if self.model.own:
            bucket, place = divmod(self.model.own + slot, 8)
            self.model.table[bucket] = [change(w) if i == place else w for i, w in enumerate(self.model.table[bucket])]
            self.transit.write_buckets({bucket: self.model.table[bucket]})

    def rewrite(self, buckets, change):
        """change(word, where) of each entry in these buckets, on both sides."""
        written = {}
        for bucket in buckets:
            words = [change(word, (bucket, i)) if is_entry(word) else word
                     for i, word in enumerate(self.model.table[bucket])]
            if words != self.model.table[bucket]:
                self.model.table[bucket] = written[bucket] = words
        self.transit.write_buckets(written)

    def heir(self, but=NONE):
        fit = [x for x in range(BACKENDS) if takes(self.model.be, x) and x != but]
        return self.rnd.choice(fit) if fit and self.rnd.random() < 0.97 else NONE

    def change(self):
        """One change or step of the daemon."""
        rnd, model = self.rnd, self.model
        before = list(model.be)
        what = rnd.choices(list(CHANGES), list(CHANGES.values()))[0]
        some = rnd.sample(self.played, 4)
        backend = rnd.randrange(BACKENDS)
        present, up, draining, generation = model.be[backend]
        if what == "owner":
            for slot in some:
                model.change_owner(slot, self.heir())
        elif what in ("drain", "undrain") and present:
            model.be[backend] = (present, up, int(what == "drain"), generation)
        elif what in ("down", "up") and present:
            model.be[backend] = (present, int(what == "up"), draining, generation)
        elif what == "remove" and present:
            model.remove(backend, lambda _: self.heir(but=backend))
        elif what == "add" and not present:
            if rnd.random() < 0.5:
                self.scan()
            model.add(backend)
        elif what in ("window", "settle"):
            for slot in some:
                if what == "window" or model.slots[slot][0] != NONE:
                    model.step(slot, window_ends if what == "window" else settle)
        elif what == "scan":
            self.scan()
        elif what == "untrack":
            self.untrack()
        elif what == "age":
            self.age(rnd.random() < 0.5, rnd.choice((1, 1, 1, 2, 3)))
        elif what == "lock":
            for slot in some:
                self.set_own(slot, lambda word: word if is_entry(word) else USED if word == LOCKED else LOCKED)
        elif what == "restart":
            self.restarts += 1
            self.transit.restart()
            self.compare_all()
        if what in ("owner", "remove", "window", "settle", "untrack"):
            self.publish()
        self.set_states(before)
        self.events += 1

    def scan(self):
        self.rewrite(range(len(self.model.table)),
                     lambda word, where: self.model.without(*where) if self.model.overdue(word) else word)

    def untrack(self):
        for slot in self.played:
            if self.model.slots[slot][2] and self.model.agrees(slot) and self.model.slots[slot][0] != NONE:
                self.model.step(slot, untrack)
                where = self.places[slot]
                self.rewrite(range(where.start, where.start + (1 << where.log2)), lambda *_: None)

    def age(self, udp, units):
        self.rewrite(range(len(self.model.table)),
                     lambda word, _: word._replace(seen=word.seen - units & 255) if word.fp & 1 == udp else word)

    # ---- packets ----

    def packets(self):
        """One packet each of some slots: none of them can touch another's words."""
        rnd, batch = self.rnd, []
        for slot in rnd.sample(self.played, PACKETS):
            flow = rnd.choice(self.flows[slot])
            # Some slots see little but SYNs, as in a flood: only there are buckets full of HALF entries.
            kind = "U" if flow.udp else rnd.choices("SDFR", (40, 45, 8, 4) if slot % 3 else (90, 8, 1, 1))[0]
            if rnd.random() < 0.1:
                kind = "Q"
            seq8 = flow.isn
            if kind == "S" and rnd.random() < 0.6:
                flow.isn = seq8 = rnd.choice(ISNS)
            elif kind != "S":
                seq8 = flow.isn + rnd.choice((0, 0, 0, 1, 2, 255, 128)) & 255
            frame = flow.error if kind == "Q" else flow.frame(rnd.choice(FLAGS[kind]), seq8, rnd.randrange(1 << 24))
            batch.append((slot, flow, kind, seq8, frame, self.model.buckets(flow, slot)))
        got = self.transit.steer([(frame, buckets) for *_, frame, buckets in batch], self.transit.kernel.ifindex["in"])
        for (slot, flow, kind, seq8, _, buckets), (to, words) in zip(batch, got):
            self.judge(slot, flow, kind, seq8, buckets, to, words)
        self.events += len(batch)

    def judge(self, slot, flow, kind, seq8, buckets, to, words):
        model = self.model
        story = (f"event {self.events}, seed {SEED}: {kind} seq8 {seq8} of slot {slot} {model.slots[slot]} now {model.now}, "
                 f"backends {model.be}, range {model.ranges.get(slot)}, fp {flow.fp}, "
                 f"words {[(b, model.table[b]) for b in buckets]}")
        want, word, places = model.packet(flow, slot, kind, seq8)
        assert to == want, f"to {to}, the model says {want}; {story}"
        changed = [(b, i) for b in buckets for i in range(8) if words[b][i] != model.table[b][i]]
        if word is None or (len(places) == 1 and model.table[places[0][0]][places[0][1]] == word):
            assert not changed, f"changed {[words[b][i] for b, i in changed]}, the model says nothing; {story}"
            return
        assert len(changed) == 1 and changed[0] in places, f"changed {changed}, the model says one of {places}; {story}"
        (bucket, place), = changed
        assert words[bucket][place] == word, f"left {words[bucket][place]}, the model says {word}; {story}"
        model.table[bucket] = words[bucket]

    def compare_all(self):
        for bucket, words in enumerate(self.model.table):
            assert self.transit.bucket(bucket) == words, bucket

    def run(self, events):
        self.flows = self.transit.by_slot
        while self.events < events:
            for _ in range(self.rnd.choice((0, 1, 1, 2, 3))):
                self.change()
            self.packets()
        self.compare_all()
        stats = self.transit.kernel.ask("pool_stats", pool=0)
        assert stats == self.model.counts


def random_slots(transit, rnd, n):
    """The slots that are played on, with n flows each: transit.by_slot."""
    by_slot = {}
    while sum(len(flows) >= n for flows in by_slot.values()) < 60:
        flow = transit.flow(rnd)
        by_slot.setdefault(transit.slot(flow), []).append(flow)
    transit.by_slot = {slot: flows[:n] for slot, flows in by_slot.items() if len(flows) >= n}
    return sorted(transit.by_slot)[:60]


@pytest.mark.parametrize("size, frags, own, events", [
    (SMALL, False, True, EVENTS), (SMALL, True, True, EVENTS // 10), (SMALL, False, False, EVENTS // 5),
    (MIDDLE, False, True, EVENTS // 5)], ids=["default", "frags", "no-own-words", "ahead"])
def test_the_packet_path_does_what_the_model_says(size, frags, own, events, capsys):
    rnd = random.Random(SEED + frags)
    with Transit(BACKENDS, size[0], frags=frags) as transit:
        walk = Walk(transit, rnd, own, size[1])
        walk.run(events)
        reached = walk.model.reached
        with capsys.disabled():
            print(f"\n{walk.events} events, seed {SEED + frags}, {walk.restarts} restarts:")
            for row, count in sorted(reached.items()):
                print(f"  {count:7} {row}")
            print(f"{sum(row in reached for row in ROWS)} of {len(ROWS)} rows of the rules")
        if events == EVENTS:
            assert [row for row in ROWS if row not in reached] == []
