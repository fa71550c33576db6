# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The two builds that every case runs on, and their instances."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import NETWORK  # noqa: E402
from kernel import Kernel, Refused  # noqa: E402

# The smallest maps that hold the network: other load-time constants than the defaults'.
TIGHT = {"services": 540, "addresses": 18, "pools": 24, "backends": 40, "flows": 1000}
BUILDS = {"default": ({}, False), "frags": (TIGHT, True)}


@pytest.fixture(scope="session", params=list(BUILDS))
def balancer(request):
    """The load balancer with the network of cases.py in force."""
    capacities, frags = BUILDS[request.param]
    with Kernel(capacities) as kernel:
        kernel.frags = frags
        kernel.load("lb", frags)
        kernel.apply(NETWORK)
        yield kernel


@pytest.fixture(scope="session", params=[False, True], ids=list(BUILDS))
def decapsulator(request):
    """shunt_decap on maps of its own, with empty lists."""
    with Kernel({}) as kernel:
        kernel.frags = request.param
        kernel.load("decap", request.param, gue_port=6080)
        yield kernel


def run_case(kernel, case, **options):
    """(action, frame) of a case, or a skip where the kernel's PROG_TEST_RUN has no such frames (before 6.18)."""
    try:
        (result,) = kernel.run([case.frame], **case.options, **options)
    except Refused as refused:
        if case.options and refused.error == "EINVAL":
            pytest.skip(f"this kernel makes no test frames with {case.options}")
        raise
    return result
