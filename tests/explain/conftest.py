# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The network of the packet cases, with both programs loaded, and shuntctl on the same instance."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "packets"), str(TESTS / "model"), str(Path(__file__).resolve().parent)]
from cases import NETWORK  # noqa: E402
from kernel import BUILD, Kernel  # noqa: E402

# Of tests/packets, beside this file of the same name.
_spec = importlib.util.spec_from_file_location("packets_conftest", TESTS / "packets/conftest.py")
packets_conftest = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packets_conftest)
sys.modules["packets_conftest"] = packets_conftest

MICRO, NANO = 0xA1B2C3D4, 0xA1B23C4D


def pcap(*frames, order="<", magic=MICRO, link=1, captured=None):
    """A capture file; captured: bytes that each packet was cut to."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for frame in frames:
        kept = frame[:captured]
        out += struct.pack(order + "IIII", 1700000000, 5, len(kept), len(frame)) + kept
    return out


def read_pcap(data):
    """The frames of a file that shuntctl wrote."""
    assert struct.unpack_from("=IHH", data) == (NANO, 2, 4) and struct.unpack_from("=I", data, 20) == (1,)
    at, frames = 24, []
    while at < len(data):
        _, _, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        frames.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    return frames


def shuntctl(kernel, *args, namespace=None):
    """shuntctl on the instance of a Kernel, in its network namespace."""
    return subprocess.run(
        ["nsenter", f"--net=/run/netns/{namespace or kernel.name}", "--", BUILD / "shuntctl", "--instance", kernel.name,
         *map(str, args)],
        check=False, capture_output=True, text=True, timeout=60, env={**os.environ, "SHUNT_OBJECT_DIR": str(BUILD)})


def explain(kernel, *args):
    """The decision of a command that must end well."""
    done = shuntctl(kernel, "-j", "explain", "--interface", "in", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session", params=list(packets_conftest.BUILDS))
def balancer(request):
    _, frags = packets_conftest.BUILDS[request.param]
    with Kernel(packets_conftest.TIGHT) as kernel:
        kernel.frags = frags
        kernel.load("lb", frags)
        kernel.load("explain", frags)
        kernel.apply(NETWORK)
        yield kernel
