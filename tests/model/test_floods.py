# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Floods: nothing in steady state, and in transition a bounded table that keeps every connection."""

import os
import random
import struct
import time

import pytest
from transit import ACK, FIN, NONE, PUSH, SYN, Flow, Limits, Range, Transit, reasons, shifts

FLOOD = int(os.environ.get("SHUNT_MODEL_FLOOD", "300000"))
OWNER, BASE = 0, 1
SLOTS, BUCKETS_LOG2 = 251, 1
LIVES, ARRIVALS = 2000, 2000
CHUNK = 5000
# Units of 1.07 s, as short as the library ever makes them.
UNIT = 30


@pytest.fixture
def transit():
    with Transit(backends=2, slots=SLOTS, flows=20000) as made:
        yield made


def frames_of(transit, kind):
    frame = Flow(transit.fleet.key, "10.0.0.1", 1024, "192.0.2.10", 80)
    return [frame.frame(flags).hex() for flags in {"SYN": (SYN,), "ACK": (ACK,), "twice": (SYN, ACK)}[kind]]


def entries(transit, buckets):
    requests = [{"op": "peek", "map": "flows", "key": struct.pack("<I", b).hex()} for b in buckets]
    return sum(word != 0 for reply in transit.kernel.ask_all(requests)
               for word in struct.unpack("<8Q", bytes.fromhex(reply["value"])))


@pytest.mark.parametrize("tracked", [0, 1], ids=["untracked", "settled but still tracked"])
def test_in_steady_state_a_flood_of_syns_leaves_nothing(transit, tracked):
    """Rule 4 leaves slots tracked until the scan: owner is base there, and a SYN makes no entry either."""
    where = {slot: Range(slot << BUCKETS_LOG2, BUCKETS_LOG2) for slot in range(SLOTS)} if tracked else {}
    transit.publish([(slot % 2, slot % 2, tracked, 0) for slot in range(SLOTS)], where,
                    Limits(*shifts(), 100, 4, 8))
    count = 2 * FLOOD
    before, stats = transit.kernel.counters(), transit.pool_stats()
    transit.kernel.ask("flood", count=count, seed=1, frames=frames_of(transit, "SYN"))
    after = transit.kernel.counters()
    assert reasons(before, after) == {"forward_redirect": count}
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {("reason", "forward_redirect"), ("service", "www"), ("backend", "web/b0"), ("backend", "web/b1")}
    assert transit.pool_stats() == stats
    assert entries(transit, range(10000)) == 0


class Clients:
    """Connections that were recorded before the flood, and such that arrive during it."""

    def __init__(self, transit, rnd):
        self.transit, self.rnd = transit, rnd
        self.on = {}  # flow: backend
        self.broken, self.waited, self.opened = [], 0, 0
        self.pending = []  # whose SYN has yet to be answered
        self.late = 0

    def send(self, flows, flags):
        got = self.transit.steer([(f.frame(flags, f.isn), ()) for f in flows], self.transit.kernel.ifindex["in"])
        return zip(flows, (to for to, _ in got))

    def open(self, count):
        """New connections, and those again that got no answer; what was opened sends its first data at once."""
        new = [self.transit.flow(self.rnd, self.transit.SERVICES[0]) for _ in range(count)]
        for flow in new:
            flow.isn = self.rnd.randrange(256)
        opened, self.asked = [], time.monotonic()
        waiting, self.pending = self.pending + new, []
        for flow, to in self.send(waiting, SYN):
            if to == NONE:
                self.waited += 1
                self.pending.append(flow)
            else:
                self.on[flow] = to
                opened.append(flow)
        self.opened += len(opened)
        return opened

    def confirm(self, opened):
        """Their first data.  Where this machine stood still for a unit, a SYN of the flood may rightly have pushed them out."""
        if time.monotonic() - self.asked < (1 << UNIT) / 1e9:
            return self.talk(opened)
        self.late += len(opened)
        for flow in opened:
            del self.on[flow]
        return None

    def talk(self, flows, flags=ACK | PUSH):
        for flow, to in self.send(flows, flags):
            if to != self.on[flow]:
                self.broken.append((flow.fp, self.on[flow], to))


@pytest.mark.parametrize("base_drains", [False, True], ids=["base takes", "base drains"])
@pytest.mark.parametrize("kind", ["SYN", "ACK", "twice"])
def test_in_transition_a_flood_breaks_nothing(transit, kind, base_drains, capsys):
    rnd = random.Random(7)
    limits = Limits(UNIT, UNIT, 120, 120, 120)
    where = {slot: Range(slot << BUCKETS_LOG2, BUCKETS_LOG2) for slot in range(SLOTS)}
    transit.publish([(OWNER, BASE, 1, 0)] * SLOTS, where, limits)
    present, up, _, generation = transit.backends[BASE]
    transit.set_backend(BASE, (present, up, int(base_drains), generation))

    clients = Clients(transit, rnd)
    while len(clients.on) < LIVES:
        clients.confirm(clients.open(40))
    live = list(clients.on)
    clients.pending, clients.waited, clients.opened = [], 0, 0
    before = transit.pool_stats()
    assert before["refused"] < LIVES // 20

    chunks, at = max(FLOOD // CHUNK, 20), 0
    for chunk in range(chunks):
        opened = clients.open((chunk + 1) * ARRIVALS // chunks - chunk * ARRIVALS // chunks)
        transit.kernel.ask("flood", count=FLOOD // chunks, seed=1000 * chunk, frames=frames_of(transit, kind))
        clients.confirm(opened)
        # Everyone in turn, so that nobody is silent for longer than the settle time.
        everyone = list(clients.on)
        at = 0 if at >= len(everyone) else at
        clients.talk(everyone[at : at + 100])
        at += 100
    everyone = list(clients.on)
    clients.talk(everyone)
    clients.talk(live, FIN | ACK)

    stats = {name: count - before[name] for name, count in transit.pool_stats().items()}
    filled = entries(transit, range(SLOTS << BUCKETS_LOG2))
    with capsys.disabled():
        print(f"\n{kind}, base {'draining' if base_drains else 'taking'}: {FLOOD} packets, {len(live)} live and "
              f"{clients.opened} arriving, broken={len(clients.broken)} dropped and tried again={clients.waited} "
              f"late={clients.late} still waiting={len(clients.pending)} {stats}, {filled} of {SLOTS << BUCKETS_LOG2 + 3} words")
    assert clients.broken == [] and clients.late < ARRIVALS // 10
    assert filled <= SLOTS << BUCKETS_LOG2 + 3
    assert entries(transit, range(SLOTS << BUCKETS_LOG2, 10000)) == 0
    assert stats["refused"] > 0
    # Each packet of the flood wanted an entry; of a pair, the second too unless the first got one.
    wanted = stats["inserted"] + stats["refused"]
    assert wanted >= FLOOD * 0.999
    if not base_drains:
        assert not clients.pending and clients.waited == 0
