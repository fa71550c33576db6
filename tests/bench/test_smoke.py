# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The benchmarks run, find every frame right, and report all that docs/performance.md promises.  No time is judged."""

import json
import os
import pathlib
import subprocess

OUT = pathlib.Path(os.environ["O"])
BENCH = OUT / "tests" / "bench"
CASES = """steady.v4.ipip.1 steady.v4.ipip.10k steady.v4.ipip.1m steady.v4.ipip.1m.1400 steady.v6.ipip.1m
           syn.v4.ipip.1m services64.v4.ipip.1m services2k.v4.ipip.1m pools8.v4.ipip.1m
           pools64.v4.ipip.1m backends1k.v4.ipip.1m backends4k.v4.ipip.1m pass.v4.1m
           transit.hit.1 transit.hit.1k transit.hit.10k transit.hit.1m transit.insert.10k transit.insert.1m""".split()
MEMBERS = ["empty_ns", "floor_ns", "method", "ns", "ratio", "ratio_max", "ratio_min"]


def run(report, *command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text())


def test_path(tmp_path):
    path = tmp_path / "path.json"
    report = run(path, BENCH / "path", OUT, BENCH / "path.bpf.o", path, 1, 20000)
    assert set(CASES) | {f"wrap.{name}" for name in CASES} <= set(report["packet"])
    for name, figures in report["packet"].items():
        assert sorted(figures) == MEMBERS, name
        assert figures["method"] == ("wrap" if name.startswith("wrap.") else "live"), name
        assert figures["ns"] > 0 and figures["ratio_min"] <= figures["ratio"] <= figures["ratio_max"], name
    assert report["pipeline"]["ratio"] > 0


def test_swap(tmp_path):
    path = tmp_path / "swap.json"
    report = run(path, BENCH / "swap", BENCH / "swap.bpf.o", path)
    assert report["swap"]["ratio_to_batch"] > 0 and report["swap"]["ratio_64_to_1"] > 0
    # Not times, but sizes: these do not depend on the machine.
    memory = report["memory"]
    assert memory["pool_bytes"] < 300 << 10
    assert memory["flow_bytes"] <= 32
    assert memory["total_small_bytes"] < 8 << 20
    assert memory["total_default_bytes"] + memory["total_default_per_cpu_bytes"] < 72 << 20


def test_report(tmp_path):
    figures = {"empty_ns": 40, "floor_ns": 50, "ns": 75, "ratio": 1.5, "ratio_min": 1.4, "ratio_max": 1.75}
    packet = {"b": figures | {"method": "live"}, "a": figures | {"method": "live"}, "wrap.a": figures | {"method": "wrap"}}
    (tmp_path / "path.json").write_text(json.dumps({"packet": packet}))
    (tmp_path / "tables.json").write_text(json.dumps({"tables.maglev.100.build_ms": 1.0}))
    done = subprocess.run(
        ["scripts/bench-report", "--markdown", tmp_path], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[:2] == [
        "| `b` | 50 | 75 | 25 | 1.50 | 1.40, 1.75 |  |  |",
        "| `a` | 50 | 75 | 25 | 1.50 | 1.40, 1.75 | 10 | 35 |",
    ]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["packet"]["wrap.a"]["ratio"] == 1.5
    assert report["tables"]["maglev"]["100"]["build_ms"] == 1.0
