#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""seeds_packet.py DIR: the frames of the packet tests' cases as inputs of fuzz_packet."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packets"))
from all_cases import CASES  # noqa: E402

target = Path(sys.argv[1])
for number, case in enumerate(CASES):
    frame = bytes(case.frame)[:4096]
    (target / f"case-{number:04d}").write_bytes(bytes([number & 1, 0, 0]) + frame)
