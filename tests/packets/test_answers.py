# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the document's settings make of used-up TTLs, of what is too big, and of how often errors are sent."""

import os
import time

import pytest

import cases_answers
from cases import ODD, POOLS, SERVICES, SHUT, ether, ip4, tcp, udp
from cases_encap import tcp_of
from conftest import BUILDS
from fleet import Fleet
from kernel import XDP_TX, Kernel, difference
from test_cases import run

CASES = cases_answers.SETTLED_CASES
LOCALS = cases_answers.SETTLED.locals


@pytest.fixture(scope="module", params=list(BUILDS))
def settled(request):
    capacities, frags = BUILDS[request.param]
    with Kernel(capacities) as kernel:
        kernel.frags = frags
        kernel.load("lb", frags)
        kernel.apply(cases_answers.SETTLED)
        yield kernel


@pytest.mark.parametrize("case", [case for case in CASES if not case.frags], ids=lambda case: case.sentence)
def test_case(settled, case):
    run(settled, case)


@pytest.mark.parametrize("settled", ["frags"], indirect=True)
@pytest.mark.parametrize("case", [case for case in CASES if case.frags], ids=lambda case: case.sentence)
def test_several_segments(settled, case):
    run(settled, case)


# ---- the rate, on one CPU ----

TTL, BIG = ether() / ip4(ttl=1) / tcp(), ether() / ip4(ODD) / tcp_of(20, 1500, 82)
SYN, DATAGRAM = ether() / ip4(SHUT) / tcp(81, flags="S"), ether() / ip4(SHUT) / udp(81)
RESET, PING = ether() / ip4(SHUT) / tcp(81, flags="R"), cases_answers.ether() / cases_answers.ping4()


@pytest.fixture(scope="module")
def slow():
    """Five errors a second, two at once."""
    with Kernel() as kernel:
        os.sched_setaffinity(kernel.process.pid, {min(os.sched_getaffinity(0))})
        kernel.load("lb")
        kernel.apply(Fleet(POOLS, SERVICES, LOCALS, {"ttl-exceeded": "answer", "error-rate": 5}))
        yield kernel


def reasons(kernel, frames):
    before = kernel.counters()
    kernel.run(frames)
    return {name: count for (kind, name), count in difference(before, kernel.counters()).items() if kind == "reason"}


@pytest.mark.parametrize("frame,given,otherwise", [
    (TTL, "answer_ttl", "drop_ttl"), (BIG, "answer_too_big", "drop_too_big"),
    (SYN, "answer_refused", "drop_unknown_port"), (DATAGRAM, "answer_refused", "drop_unknown_port"),
], ids=["TTL", "too big", "reset", "unreachable"])
def test_errors_are_limited_and_come_back(slow, frame, given, otherwise):
    time.sleep(0.5)
    assert reasons(slow, [frame] * 20) == {given: 2, otherwise: 18}
    time.sleep(0.25)
    assert reasons(slow, [frame] * 20) == {given: 1, otherwise: 19}


def test_kinds_of_errors_share_the_limit(slow):
    time.sleep(0.5)
    assert reasons(slow, [TTL, SYN, BIG, DATAGRAM]) == {
        "answer_ttl": 1, "answer_refused": 1, "drop_too_big": 1, "drop_unknown_port": 1}


def test_what_gets_no_error_uses_nothing_up(slow):
    time.sleep(0.5)
    reasons(slow, [RESET] * 50)
    assert reasons(slow, [SYN] * 3) == {"answer_refused": 2, "drop_unknown_port": 1}


def test_pings_are_not_limited(slow):
    assert reasons(slow, [PING] * 100) == {"answer_echo": 100}


def test_a_rate_of_0_sends_none():
    with Kernel() as kernel:
        kernel.load("lb")
        kernel.apply(Fleet(POOLS, SERVICES, LOCALS, {"ttl-exceeded": "answer", "error-rate": 0}))
        assert reasons(kernel, [TTL, SYN, BIG, DATAGRAM, PING]) == {
            "drop_ttl": 1, "drop_too_big": 1, "drop_unknown_port": 2, "answer_echo": 1}


def test_a_rate_of_a_million_sends_all(settled):
    assert {action for action, _ in settled.run([TTL, SYN, BIG, DATAGRAM] * 500)} == {XDP_TX}
