# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packet cases: explained as they are then treated, and without a trace in any map of the instance.

SHUNT_EXPLAIN_CASES: of each outcome so many cases.
"""

import os
import struct

import pytest
from all_cases import CASES
from kernel import BUILD, difference
from packets_conftest import run_case
from reasons import CLASSES

REASONS = list(CLASSES)
EACH = int(os.environ.get("SHUNT_EXPLAIN_CASES", "2"))
ZERO = bytes(4)
TRACE_SIZE = 264


def sample(cases):
    """Some of each outcome: reason, or service for what is forwarded."""
    taken = {}
    for case in cases:
        taken.setdefault(repr(getattr(case.expect, "reason", None) or case.expect.service), []).append(case)
    return [case for group in taken.values() for case in group[:EACH]]


def explained(kernel, case):
    """(action, frame, reason)"""
    kernel.poke("scratch_trace", ZERO, bytes(TRACE_SIZE))
    action, frame = run_case(kernel, case, role="explain")
    (reason,) = struct.unpack_from("<i", kernel.peek("scratch_trace", ZERO), 4)
    return action, frame, REASONS[reason]


def compare(kernel, case):
    before, counted = kernel.ask("digest"), kernel.counters()
    action, frame, reason = explained(kernel, case)
    assert kernel.ask("digest") == before
    real = run_case(kernel, case)
    changes = [name for kind, name in difference(counted, kernel.counters()) if kind == "reason"]
    assert (action, frame.hex(), [reason]) == (real[0], real[1].hex(), changes)


@pytest.mark.parametrize("case", sample(case for case in CASES if not case.frags), ids=lambda case: case.sentence)
def test_case(balancer, case):
    compare(balancer, case)


@pytest.mark.parametrize("balancer", ["frags"], indirect=True)
@pytest.mark.parametrize("case", sample(case for case in CASES if case.frags), ids=lambda case: case.sentence)
def test_several_segments(balancer, case):
    compare(balancer, case)


def test_the_digest_sees_a_single_packet(balancer):
    before = balancer.ask("digest")
    run_case(balancer, CASES[0])
    after = balancer.ask("digest")
    assert {name for name in before if before[name] != after[name]} >= {"reasons"}
    assert {"flows", "fragments", "error_clock", "backends", "backend_path", "service_stats", "pool_stats"} <= set(before)


def test_the_program_that_carries_traffic_knows_nothing_of_it():
    assert b"scratch_trace" in (BUILD / "shunt_explain.bpf.o").read_bytes()
    assert b"scratch_trace" not in (BUILD / "shunt.bpf.o").read_bytes()
