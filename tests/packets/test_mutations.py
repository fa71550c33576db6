# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Good packets with random damage, through the kernel: nothing is lost between the counters, nothing is half done."""

import os
import random

import pytest

import all_cases
import cases_decap
from answers import addresses, check_sums
from fleet import split
from kernel import XDP_DROP, XDP_PASS, XDP_REDIRECT, XDP_TX, difference
from reasons import CLASSES

FRAMES = int(os.environ.get("MUTATIONS", "20000"))
BATCH = 500


def damaged(frame, rng):
    frame = bytearray(frame)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        kind = rng.randrange(5)
        at = rng.randrange(min(len(frame), 100))
        if kind == 0:
            frame[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            frame[at] = rng.choice((0, 1, 4, 5, 6, 17, 41, 44, 58, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            frame[at : at + 2] = rng.randbytes(2)
        elif kind == 3:
            del frame[rng.randrange(14, len(frame) + 1) :]
        else:
            frame += rng.randbytes(rng.randrange(64))
        frame += bytes(max(0, 14 - len(frame)))
    return bytes(frame)


def send(kernel, role, cases, wanted):
    """{class: frames} of what happened to `wanted` damaged frames; each frame is judged by itself."""
    rng = random.Random(f"{role} {kernel.frags}")
    good = [bytes(case.frame) for case in cases if not case.frags and not case.options]
    actions = {"PASS": 0, "FORWARD": 0, "ANSWER": 0, "DROP": 0, "BUG": 0}
    before = kernel.counters()
    for _ in range(wanted // BATCH):
        frames = [damaged(rng.choice(good), rng) for _ in range(BATCH)]
        for frame, (action, after) in zip(frames, kernel.run(frames, role=role)):
            actions[judge(role, frame, action, after)] += 1
    reasons = {name: count for (kind, name), count in difference(before, kernel.counters()).items() if kind == "reason"}
    by_class = dict.fromkeys(actions, 0)
    for name, count in reasons.items():
        by_class[CLASSES[name]] += count
    assert by_class["BUG"] == 0, reasons
    assert by_class == actions
    assert sum(reasons.values()) == wanted
    return reasons


def judge(role, frame, action, after):
    if action == XDP_PASS and after == frame:
        return "PASS"
    if role == "decap" and action == XDP_PASS:
        assert 20 <= len(frame) - len(after) <= 72
        return "FORWARD"
    if action == XDP_DROP:
        return "DROP"
    assert role == "lb" and action in (XDP_TX, XDP_REDIRECT)
    link, packet, padding = split(frame)
    answer = split(after)[1]
    if addresses(answer)[:2] == addresses(packet)[1::-1]:
        return judge_answer(link, packet, after)
    assert len(after) - len(frame) in (0, 20, 32, 40, 52)
    inner = after[len(link) + len(after) - len(frame) :]
    assert inner[: len(packet)][12 if packet[0] >> 4 == 4 else 8 :] == packet[12 if packet[0] >> 4 == 4 else 8 :]
    assert inner[len(packet) :] == padding
    return "FORWARD"


def judge_answer(link, packet, after):
    """Back where the packet came from; what was built from zero has right checksums."""
    answer_link, answer, _ = split(after)
    assert answer_link == link[6:12] + link[:6] + link[12:]
    if len(answer) != len(packet):
        check_sums(after)
    return "ANSWER"


def test_the_balancer_counts_every_packet_once(balancer):
    reasons = send(balancer, "lb", all_cases.CASES, FRAMES)
    assert len(reasons) > 12, reasons


@pytest.fixture
def listed(decapsulator):
    decapsulator.ask("allow", sources=cases_decap.SOURCES, inner=cases_decap.INNER)
    return decapsulator


def test_the_decapsulator_counts_every_packet_once(listed):
    reasons = send(listed, "decap", all_cases.DECAP_CASES, FRAMES)
    assert len(reasons) > 6, reasons
