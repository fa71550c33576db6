# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import json
import os
import subprocess
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from shuntlab import BUILD

# With sanitizers where there is one; an absolute path, because tests change folders.
PROGRAM = Path(os.environ.get("SHUNTCTL", BUILD / "shuntctl")).resolve()


@pytest.fixture(scope="session")
def ctl():
    """Run shuntctl; keyword instance names one, else there is none that could answer."""
    def run(*args, instance="ctl-test-none", stdin="", **options):
        return subprocess.run([PROGRAM, "--instance", instance, *map(str, args)], check=False, capture_output=True,
                              text=True, input=stdin, timeout=30, **options)
    return run


@pytest.fixture
def fake():
    """Start a FakeDaemon that ends with the test."""
    open_ones = []

    def start(answers=None, **options):
        daemon = FakeDaemon(answers, **options)
        open_ones.append(daemon)
        return daemon.__enter__()
    yield start
    for daemon in open_ones:
        daemon.__exit__()


def only_json(done):
    """The one JSON value on standard output; standard error must be empty."""
    assert done.stderr == ""
    return json.loads(done.stdout)
