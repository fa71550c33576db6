# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each program stays within tests/verifier/budget.tsv, and the budget is not much above the program."""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["O"])
COLUMNS = ["instructions", "jited_bytes", "stack_bytes", "verified_instructions", "states"]


def rows(text):
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, program, *numbers = line.split("\t")
            yield (name, program), dict(zip(COLUMNS, map(int, numbers), strict=True))


BUDGET = dict(rows((HERE / "budget.tsv").read_text()))


@pytest.fixture(scope="module")
def measured():
    objects = sorted(BUILD.glob("*.bpf.o"))
    tool = BUILD / "tests/verifier/measure"
    done = subprocess.run([tool, *objects], check=True, capture_output=True, text=True)
    return dict(rows(done.stdout))


def test_every_program_has_a_budget(measured):
    assert set(measured) == set(BUDGET)


@pytest.mark.parametrize("program", BUDGET, ids="/".join)
@pytest.mark.parametrize("column", COLUMNS)
def test_program_costs_at_most_its_budget(measured, program, column):
    assert measured[program][column] <= BUDGET[program][column]


@pytest.mark.parametrize("program", BUDGET, ids="/".join)
def test_budget_is_not_loose(measured, program):
    assert measured[program]["instructions"] >= 0.8 * BUDGET[program]["instructions"]
