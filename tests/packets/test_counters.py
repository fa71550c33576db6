# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each counter has a case that raises it, and docs/counters.md says what the list says."""

import subprocess

import all_cases
import cases_answers
from cases import Forward
from cases_decap import Unwrapped
from kernel import TOP
from reasons import CLASSES

# Raised by tests of states that no case is in.
STATES = {"pass_no_config", "drop_backend_down", "drop_no_nexthop", "drop_transit", "drop_path_error"}
# No frame that PROG_TEST_RUN can make: fuzz_decap raises it, with a driver that refuses.
UNREACHABLE = {"decap_drop_adjust"}


def raised():
    names = set()
    for case in all_cases.CASES + cases_answers.SETTLED_CASES + all_cases.DECAP_CASES:
        if isinstance(case.expect, Forward):
            names |= {"forward_tx", "forward_redirect"}  # told apart below
        elif isinstance(case.expect, Unwrapped):
            names.add("decap_unwrapped")
        else:
            names.add(case.expect.reason)
    return names


def test_each_counter_is_raised_by_a_case():
    wanted = {name for name, kind in CLASSES.items() if kind != "BUG"}
    assert raised() | STATES | UNREACHABLE == wanted


def test_no_case_wants_a_defect():
    assert not [name for name in raised() if CLASSES[name] == "BUG"]


def test_forwarding_by_both_ways_was_counted(balancer):
    frames = [case.frame for case in all_cases.CASES if isinstance(case.expect, Forward) and not case.frags]
    balancer.run(frames)
    reasons = {name: count for (kind, name), count in balancer.counters().items() if kind == "reason"}
    assert reasons["forward_tx"] and reasons["forward_redirect"]
    assert not [name for name in reasons if CLASSES[name] == "BUG"]


def test_the_page_is_up_to_date():
    done = subprocess.run([TOP / "scripts/gen-counters", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
