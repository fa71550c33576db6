# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each case: the packet in, the verdict, the whole packet out, and every counter that changed."""

import pytest

from all_cases import CASES
from cases import NETWORK, Answer, Drop, Forward, flow_of
from conftest import run_case
from kernel import XDP_DROP, XDP_PASS, XDP_TX, difference


def expected(case):
    """(action, frame, changed counters)"""
    frame = bytes(case.frame)[case.options.get("meta", 0) :]
    if isinstance(case.expect, Answer):
        return XDP_TX, case.expect.frame, {("reason", case.expect.reason): 1}
    if not isinstance(case.expect, Forward):
        # A dropped frame is nobody's, but where nothing was sent nothing may have been written.
        action = XDP_DROP if isinstance(case.expect, Drop) else XDP_PASS
        return action, frame, {("reason", case.expect.reason): 1}
    service = case.expect.service
    sent = NETWORK.forward(frame, case.expect.flow or flow_of(frame), service)
    reason = "forward_tx" if sent.action == XDP_TX else "forward_redirect"
    return sent.action, sent.frame, {
        ("reason", reason): 1, ("service", service): (1, sent.length), ("backend", sent.backend): (1, sent.length)}


def run(balancer, case):
    action, frame, changes = expected(case)
    before = balancer.counters()
    got_action, got_frame = run_case(balancer, case)
    assert difference(before, balancer.counters()) == changes
    assert got_action == action
    # The TTL of a packet for which there was no headroom is gone already.
    if not (isinstance(case.expect, Drop) and case.expect.reason == "drop_headroom"):
        assert got_frame.hex() == frame.hex()


@pytest.mark.parametrize("case", [case for case in CASES if not case.frags], ids=lambda case: case.sentence)
def test_case(balancer, case):
    run(balancer, case)


@pytest.mark.parametrize("balancer", ["frags"], indirect=True)
@pytest.mark.parametrize("case", [case for case in CASES if case.frags], ids=lambda case: case.sentence)
def test_several_segments(balancer, case):
    run(balancer, case)


def test_sentences_are_all_different():
    sentences = [case.sentence for case in CASES]
    assert len(set(sentences)) == len(sentences), [s for s in sentences if sentences.count(s) > 1]
