# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The model's rules over whole buckets: what a packet must do, and which word an insertion may take.

Where a packet goes and what becomes of its entry is asked of word_rules.py; ages, idle limits and what an insertion
replaces, which the model leaves out, are written here from RULES.md.
"""

import daemon
import word_rules as rules
from daemon import NONE, takes, usable
from transit import ADOPTED, CLOSING, HALF, LIVE, LOCKED, USED, WAYS, Word, buckets_of

rules.OPT.update(rules.FINAL)
# Tokens of the model for ISN bits: apart from its own constants, which stand for "another".
OWN = 256
OUTSIDE = -1


def token(isn):
    return isn + OWN


def isn_of(tok):
    """The model's notes are no ISN: an entry not made by a SYN has 0."""
    return tok - OWN if tok >= OWN else 0


def in_window(isn, seq8):
    return (seq8 - isn & 255) <= 1


def is_entry(word):
    """Not USED or LOCKED, by which a slot's own word says that it has none."""
    return word is not None and word.fp != 0


class Oracle:
    def __init__(self, backends, n_slots, n_buckets, limits):
        self.be = list(backends)
        self.slots = [(0, 0, 0, 0)] * n_slots
        self.ranges = {}
        self.own = 0  # number of the first own word; 0: there are none
        self.table = [[None] * WAYS for _ in range(n_buckets)]
        self.limits = limits
        self.now = {False: 0, True: 0}  # by "is UDP"
        self.counts = {"inserted": 0, "refused": 0, "replaced": 0, "base": 0}
        self.reached = {}

    # ---- the daemon ----

    def change_owner(self, slot, new):
        self.slots[slot], _ = daemon.change(self.be, self.slots[slot], new)

    def step(self, slot, transition):
        self.slots[slot] = transition(self.slots[slot])

    def remove(self, backend, heirs):
        """Owners first, then base, then the state word."""
        for slot, (owner, _, _, _) in enumerate(self.slots):
            if owner == backend:
                self.change_owner(slot, heirs(slot))
            self.step(slot, lambda state: daemon.removed(state, backend))
        self.be[backend] = (0, 0, 0, self.be[backend][3])

    def add(self, backend):
        self.be[backend] = (1, 1, 0, self.be[backend][3] + 1 & 15)

    def model_entry(self, word):
        return (word.state, word.gen, token(word.isn), word.backend) if is_entry(word) else None

    def agrees(self, slot):
        """No valid entry of the slot's range has another backend: it may be untracked."""
        owner, base, _, _ = self.slots[slot]
        where = self.ranges.get(slot)
        words = [w for b in range(where.start, where.start + (1 << where.log2)) for w in self.table[b]] if where else []
        words += [self.table[b][i] for b, i in self.own_place(slot)]
        return owner == base and not any(rules.disagrees(self.be, self.model_entry(w), owner) for w in words)

    def without(self, bucket, place):
        """What stands there once its entry was deleted."""
        return USED if self.own and bucket * WAYS + place >= self.own else None

    def overdue(self, word):
        """What a scan deletes."""
        if not is_entry(word):
            return False
        age = self.age(word)
        if not rules.valid(self.be, self.model_entry(word)):
            return True
        if word.fp & 1:
            return age > self.limits.window
        limit = {HALF: 2, CLOSING: self.limits.closing}.get(word.state, self.limits.settle)
        return age > limit

    # ---- packets ----

    def age(self, word):
        """A word that was used a little later than now is not old."""
        age = self.now[bool(word.fp & 1)] - word.seen & 255
        return age if age < 240 else 0

    def find(self, flow, slot):
        """[(bucket, place)] of the flow's entries."""
        places = self.places(flow, slot) if self.slots[slot][2] else []
        return [(b, i) for b, i in places if self.table[b][i] and self.table[b][i].fp == flow.fp]

    def own_place(self, slot):
        """That of the slot's own word, which only a slot with a range has."""
        return [divmod(self.own + slot, WAYS)] if self.own and self.ranges.get(slot) else []

    def places(self, flow, slot):
        """All that the flow's entry may be in."""
        where = self.ranges.get(slot)
        buckets = set(buckets_of(flow.value, where)) if where else ()
        return self.own_place(slot) + [(b, i) for b in buckets for i in range(WAYS)]

    def buckets(self, flow, slot):
        return sorted({b for b, _ in self.places(flow, slot)})

    def victims(self, flow, slot, kind):
        """
        The places that an insertion may take: those of the first class of RULES.md that has any.  While the slot's own
        word was never used there is no entry of the slot anywhere, and nothing else is to be taken.
        """
        for b, i in self.own_place(slot):
            if self.table[b][i] is None:
                return [(b, i)]
        classes = {}
        for b, i in self.places(flow, slot):
            rank = self.rank(self.table[b][i], kind)
            if rank is not None:
                classes.setdefault(rank, []).append((b, i))
        return classes[min(classes)] if classes else []

    def rank(self, word, kind):
        """Smaller goes first; None: never."""
        if word in (None, USED):
            return 0, 0
        if word == LOCKED or not rules.valid(self.be, self.model_entry(word)):
            return 1, 0
        age, udp = self.age(word), bool(word.fp & 1)
        if word.state == CLOSING and age > self.limits.closing:
            return 2, 0
        if word.state == LIVE and age > (self.limits.window if udp else self.limits.settle):
            return 2, 0
        if word.state == ADOPTED:
            return 3, -age
        if word.state == HALF and kind == "S" and age >= 2:
            return 4, -age
        return None

    def packet(self, flow, slot, kind, seq8):
        """(backend or NONE, word that must stand afterwards or None: nothing changes, places where it may stand)."""
        state = self.slots[slot]
        owner, base, tracked, _ = state
        found = self.find(flow, slot)
        assert len(found) < 2, f"two entries of one flow: {found}"
        word = self.table[found[0][0]][found[0][1]] if found else None
        entry = self.model_entry(word)
        idle = word is not None and flow.udp and self.age(word) > self.limits.window
        seen_as = token(seq8)
        if kind in "DFR" and word:
            seen_as = entry[2] if in_window(word.isn, seq8) else OUTSIDE
        if kind == "Q":
            return self.quoted(flow, state, word, entry, idle), None, []
        to, after = rules.route(self.be, state, entry, kind, seen_as, idle)
        places = found
        if word is None and after is not None:
            places = self.victims(flow, slot, kind)
            if not places:
                to = rules.refused(self.be, state, kind, to)
        self.note(state, word, kind, seen_as, idle, word is None and after is not None and not places, to, after)
        if tracked and word is None and to == base != owner:
            self.counts["base"] += 1
        if after is entry or after is None:  # the rules return the entry itself where they leave it alone
            return to, None, []
        if not places:
            self.counts["refused"] += 1
            return to, None, []
        if word is None:
            self.counts["inserted"] += 1
            taken = self.table[places[0][0]][places[0][1]]
            self.counts["replaced"] += taken is not None and self.rank(taken, kind)[0] == 3
            self.note_victim(taken, kind)
        return to, Word(flow.fp, isn_of(after[2]), self.now[flow.udp], after[0], after[1], after[3]), places

    def quoted(self, flow, state, word, entry, idle):
        """An ICMP error: as the flow's non-SYN whose window is right; nothing is touched."""
        owner, base, tracked, _ = state
        to, _ = rules.route(self.be, state, entry, "U" if flow.udp else "D", entry and entry[2], idle)
        if tracked and word is None and to == base != owner:
            self.counts["base"] += 1
        name = "none" if not word else "valid" if rules.valid(self.be, entry) else "stale"
        where = "drop" if to == NONE else "entry" if word and to == word.backend else "base" if to == base else "owner"
        if tracked:
            self.reach(f"ICMP error, {'UDP' if flow.udp else 'TCP'}, {name}: {where}")
        return to

    # ---- which row that was ----

    def reach(self, row):
        self.reached[row] = self.reached.get(row, 0) + 1

    def note_victim(self, word, kind):
        rank = self.rank(word, kind)[0]
        name = ("empty", "stale", "idle", "oldest ADOPTED", "oldest HALF")[rank]
        if rank == 2:
            name = f"idle {'UDP' if word.fp & 1 else 'CLOSING' if word.state == CLOSING else 'LIVE'}"
        self.reach(f"inserted over: {name}")

    def note(self, slot, word, kind, seen_as, idle, refused, to, after):
        owner, base, tracked, learn = slot
        if not tracked:
            return self.reach("untracked: owner" if to != NONE else "untracked: drop")
        entry = self.model_entry(word)
        valid = rules.valid(self.be, entry)
        row = {"S": self.syn_row, "U": self.udp_row}.get(kind, self.segment_row)
        return self.reach(row(owner, base, learn, word, entry, valid, kind, seen_as, idle, refused, to, after))

    def syn_row(self, owner, base, _learn, word, entry, valid, _kind, seen_as, _idle, refused, to, after):
        if valid and usable(self.be, word.backend) and entry[2] == seen_as:
            return f"SYN, valid, usable, same isn: {'HALF' if word.state == HALF else 'other state'}"
        if valid and takes(self.be, word.backend):
            return "SYN, valid, takes, other isn: " + ("CLOSING to LIVE" if word.state == CLOSING else "state kept")
        if word:
            return "SYN, any other: " + ("overwritten" if to != NONE else "drop")
        if refused:
            return "SYN, none, no room: " + ("drop" if to == NONE else "owner" if to == owner else "base")
        if to == NONE:
            return "SYN, none: drop"
        return "SYN, none: " + ("HALF" if after else "owner is base")

    def segment_row(self, owner, base, _learn, word, entry, valid, kind, seen_as, _idle, refused, to, after):
        if valid and word.state == HALF and seen_as == OUTSIDE and word.backend != base:
            return "non-SYN, HALF outside window: " + ("drop" if to == NONE else "base" if to == base else "owner")
        if valid and usable(self.be, word.backend):
            if kind in "FR":
                return "non-SYN, valid, usable: FIN or RST"
            return "non-SYN, valid, usable: " + ("CLOSING already" if word.state == CLOSING else "LIVE")
        if valid:
            return "non-SYN, valid, down: " + ("drop" if to == NONE else "owner")
        name = "stale" if word else "none"
        if usable(self.be, base):
            return f"non-SYN, {name}, base usable: " + ("refused" if refused else "ADOPTED" if after else "owner is base")
        if to != NONE:
            return f"non-SYN, {name}, base down, owner usable"
        present = "present" if base != NONE and self.be[base][0] else "gone"
        return f"non-SYN, {name}, neither usable, base {present}: " + (
            "refused" if refused else "ADOPTED" if after != entry else "unchanged")

    def udp_row(self, owner, base, learn, word, _entry, valid, _kind, _seen, idle, refused, to, after):
        if valid and not idle:
            if usable(self.be, word.backend):
                return "UDP, valid, usable"
            return "UDP, valid, down: " + ("drop" if to == NONE else "owner")
        name = "none" if not word else "idle" if valid else "stale"
        if to == NONE:
            return f"UDP, {name}: drop"
        where = "base, learning" if learn and usable(self.be, base) else "owner"
        what = "refused" if refused else "ADOPTED" if after else "no entry"
        return f"UDP, {name}: {where}, {what}"


# All that must have been reached; "no entry" and "owner is base" stand for a slot that has settled.
ROWS = [
    "untracked: owner", "untracked: drop",
    "SYN, valid, usable, same isn: HALF", "SYN, valid, usable, same isn: other state",
    "SYN, valid, takes, other isn: CLOSING to LIVE", "SYN, valid, takes, other isn: state kept",
    "SYN, any other: overwritten", "SYN, any other: drop",
    "SYN, none: HALF", "SYN, none: owner is base", "SYN, none: drop",
    "SYN, none, no room: base", "SYN, none, no room: drop", "SYN, none, no room: owner",
    "non-SYN, HALF outside window: base", "non-SYN, HALF outside window: owner", "non-SYN, HALF outside window: drop",
    "non-SYN, valid, usable: LIVE", "non-SYN, valid, usable: FIN or RST", "non-SYN, valid, usable: CLOSING already",
    "non-SYN, valid, down: owner", "non-SYN, valid, down: drop",
    *(f"non-SYN, {name}, {rest}" for name in ("none", "stale")
      for rest in ("base usable: ADOPTED", "base down, owner usable", "neither usable, base present: ADOPTED",
                   "neither usable, base gone: unchanged")),
    "non-SYN, none, base usable: refused", "non-SYN, none, base usable: owner is base",
    "non-SYN, none, neither usable, base present: refused",
    "non-SYN, none, neither usable, base present: unchanged",
    "UDP, valid, usable", "UDP, valid, down: owner", "UDP, valid, down: drop",
    *(f"UDP, {name}: {rest}" for name in ("none", "stale", "idle")
      for rest in ("base, learning, ADOPTED", "owner, ADOPTED", "drop")),
    "UDP, none: owner, no entry", "UDP, none: base, learning, refused", "UDP, none: owner, refused",
    *(f"ICMP error, {protocol}, {rest}" for protocol in ("TCP", "UDP")
      for rest in ("none: base", "none: owner", "none: drop", "valid: entry", "valid: owner", "valid: drop",
                   "stale: base")),
    *(f"inserted over: {name}" for name in ("empty", "stale", "idle CLOSING", "idle LIVE", "idle UDP",
                                            "oldest ADOPTED", "oldest HALF")),
]
