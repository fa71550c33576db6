# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shunt_decap: each case as for the balancer, and what the lists allow."""

import struct

import pytest

from all_cases import DECAP_CASES as CASES
from cases import Drop, ether
from cases_decap import (BALANCER, CE, ECT0, INNER, SOURCES, Unwrapped, inner4, inner6, outer4, outer6,
                         unwrapped)
from conftest import run_case
from decode import decode, decode_ip
from kernel import XDP_DROP, XDP_PASS, difference


def run(kernel, case):
    frame = bytes(case.frame)
    action, reason = XDP_PASS, "decap_unwrapped"
    if isinstance(case.expect, Unwrapped):
        frame = unwrapped(frame, case.expect.ecn)
    else:
        action = XDP_DROP if isinstance(case.expect, Drop) else XDP_PASS
        reason = case.expect.reason
    before = kernel.counters()
    got_action, got_frame = run_case(kernel, case, role="decap")
    assert difference(before, kernel.counters()) == {("reason", reason): 1}
    assert got_action == action
    assert got_frame.hex() == frame.hex()


@pytest.fixture
def listed(decapsulator):
    decapsulator.ask("allow", sources=SOURCES, inner=INNER)
    return decapsulator


@pytest.mark.parametrize("case", [case for case in CASES if not case.frags], ids=lambda case: case.sentence)
def test_case(listed, case):
    run(listed, case)


@pytest.mark.parametrize("decapsulator", [True], ids=["frags"], indirect=True)
@pytest.mark.parametrize("case", [case for case in CASES if case.frags], ids=lambda case: case.sentence)
def test_several_segments(listed, case):
    run(listed, case)


def test_sentences_are_all_different():
    assert len({case.sentence for case in CASES}) == len(CASES)


def test_an_ecn_mark_leaves_every_checksum_as_right_as_it_was(listed):
    frame = bytearray(bytes(ether() / outer4(4, tos=CE) / inner4(tos=ECT0)))
    for first in range(0, 65536, 8192):
        frames = []
        for value in range(first, first + 8192):
            frame[44:46] = struct.pack(">H", value)
            frames.append(bytes(frame))
        for before, (_, after) in zip(frames, listed.run(frames, role="decap")):
            assert decode(after)["tos"] == CE
            assert decode(after)["sum"] % 0xFFFF == decode_ip(before[34:])["sum"] % 0xFFFF


# ---- the lists as a whole ----

FOUR, SIX = ether() / outer4(4) / inner4(), ether() / outer6(41) / inner6()


def reasons(kernel, *frames):
    """The one reason that each frame raises."""
    out = []
    for frame in frames:
        before = kernel.counters()
        kernel.run([frame], role="decap")
        ((_, name),) = difference(before, kernel.counters())
        out.append(name)
    return out


def test_empty_lists_deny_all(decapsulator):
    decapsulator.ask("allow", sources=[], inner=[])
    assert reasons(decapsulator, FOUR, SIX) == ["decap_drop_source"] * 2


def test_an_empty_list_of_sources_denies_all(decapsulator):
    decapsulator.ask("allow", sources=[], inner=INNER)
    assert reasons(decapsulator, FOUR, SIX) == ["decap_drop_source"] * 2


def test_an_empty_list_of_destinations_denies_all(decapsulator):
    decapsulator.ask("allow", sources=SOURCES, inner=[])
    assert reasons(decapsulator, FOUR, SIX) == ["decap_drop_inner"] * 2


@pytest.mark.parametrize("any_source,reason4,reason6", [
    ("0.0.0.0/0", "decap_unwrapped", "decap_drop_source"),
    ("::/0", "decap_drop_source", "decap_unwrapped"),
])
def test_all_of_one_family_is_nothing_of_the_other(decapsulator, any_source, reason4, reason6):
    decapsulator.ask("allow", sources=[any_source], inner=INNER)
    assert reasons(decapsulator, FOUR, SIX) == [reason4, reason6]


@pytest.mark.parametrize("any_inner,reason4,reason6", [
    ("0.0.0.0/0", "decap_unwrapped", "decap_drop_inner"),
    ("::/0", "decap_drop_inner", "decap_unwrapped"),
])
def test_all_destinations_of_one_family_are_none_of_the_other(decapsulator, any_inner, reason4, reason6):
    decapsulator.ask("allow", sources=SOURCES, inner=[any_inner])
    assert reasons(decapsulator, FOUR, SIX) == [reason4, reason6]


def test_a_prefix_taken_away_denies_at_once(decapsulator):
    decapsulator.ask("allow", sources=SOURCES, inner=INNER)
    assert reasons(decapsulator, FOUR) == ["decap_unwrapped"]
    decapsulator.ask("allow", sources=[source for source in SOURCES if source != BALANCER], inner=INNER)
    assert reasons(decapsulator, FOUR) == ["decap_drop_source"]
