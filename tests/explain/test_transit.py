# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slots in transition: the entry is shown, and what the packet would make of it, and nothing is made."""

import random
import time

import pytest
from conftest import explain
from transit import ACK, LIVE, SYN, Limits, Range, Transit, Word, buckets_of, pack, shifts

OWNER, BASE = 0, 1


@pytest.fixture(scope="module")
def transit():
    with Transit(backends=3) as made:
        made.where = Range(16, 2)
        made.limits = Limits(*shifts(), 100, 3, 8)
        made.publish([(OWNER, BASE, 1, 1)] * made.n_slots, dict.fromkeys(range(made.n_slots), made.where), made.limits)
        yield made


@pytest.fixture
def flow(transit):
    transit.write_buckets({b: [None] * 8 for b in range(transit.where.start, transit.where.start + 4)})
    return transit.flow(random.Random(3), transit.SERVICES[0])


def words(transit, flow, *options):
    """The decision for this flow, with no map changed."""
    before = transit.kernel.ask("digest")
    source = ".".join(map(str, flow.head[26:30]))
    port = int.from_bytes(flow.transport[:2], "big")
    decision = explain(transit.kernel, "tcp", f"{source}:{port}", "192.0.2.10:80", *options)
    assert transit.kernel.ask("digest") == before
    assert decision["steering"]["tracked"] is True
    assert decision["steering"]["slot"] == transit.slot(flow)
    assert decision["steering"]["owner"]["id"] == transit.ids[OWNER]
    assert decision["steering"]["transition"]["base"]["id"] == transit.ids[BASE]
    return decision


def test_a_new_connection_goes_to_the_owner_and_would_leave_an_entry(transit, flow):
    decision = words(transit, flow)
    shown = decision["steering"]["transition"]
    assert (shown["kind"], shown["entry"], shown["entry_after"]["state"]) == ("SYN", None, "half-open")
    assert decision["backend"]["id"] == transit.ids[OWNER] == shown["entry_after"]["backend"]["id"]
    assert any("no entry for the flow" in sentence for sentence in decision["sentences"])


def test_a_connection_without_an_entry_belongs_to_base(transit, flow):
    decision = words(transit, flow, "--ack")
    shown = decision["steering"]["transition"]
    assert (shown["kind"], shown["entry"], shown["entry_after"]["state"]) == ("segment", None, "adopted")
    assert decision["backend"]["id"] == transit.ids[BASE]


def test_the_entry_that_a_real_packet_left_is_shown(transit, flow):
    (to, _), = transit.steer([(flow.frame(SYN, 0), [])], transit.kernel.ifindex["in"])
    assert to == OWNER
    shown = words(transit, flow, "--ack")["steering"]["transition"]
    assert (shown["entry"]["state"], shown["entry"]["backend"]["id"]) == ("half-open", transit.ids[OWNER])
    (to, _), = transit.steer([(flow.frame(ACK, 0), [])], transit.kernel.ifindex["in"])
    decision = words(transit, flow, "--ack")
    assert to == OWNER and decision["steering"]["transition"]["entry"]["state"] == "live"
    assert decision["backend"]["id"] == transit.ids[OWNER]


def test_no_room_for_an_entry_is_said_and_decides_as_it_would(transit, flow):
    full = [Word(2 * n + 2, 0, 0, LIVE, transit.backends[BASE][3], transit.ids[BASE]) for n in range(8)]
    clock = [time.clock_gettime_ns(6) >> transit.limits.tcp_shift & 255] * 8
    full = [word._replace(seen=at) for word, at in zip(full, clock)]
    assert all(word.fp != flow.fp and pack(word) for word in full)
    transit.write_buckets({b: full for b in set(buckets_of(flow.value, transit.where))})
    decision = words(transit, flow)
    shown = decision["steering"]["transition"]
    assert (shown["entry"], shown["entry_after"], shown["refused"]) == (None, None, True)
    (to, _), = transit.steer([(flow.frame(SYN, 0), [])], transit.kernel.ifindex["in"])
    assert decision["backend"]["id"] == transit.ids[to]
