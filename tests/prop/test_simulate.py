# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntctl simulate: its figures against tables built and compared here."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import oracle
import tables
from tables import Member

PROGRAM = Path(os.environ["SHUNTCTL"]).resolve()
M = 4099
ALGORITHMS = ["maglev", "minimal", "rendezvous", "ring", "jump", "modulo"]
KEYS = {"algorithm", "backends", "slots", "max_over_mean", "min_over_mean", "cv", "moved", "minimum", "excess", "build_ms",
        "peak_bytes"}


def shuntctl(*arguments, code=0, **options):
    done = subprocess.run([PROGRAM, "simulate", *map(str, arguments)], check=False, capture_output=True, text=True,
                          timeout=120, **options)
    assert done.returncode == code, done
    return done


def simulate(*arguments):
    done = shuntctl(*arguments, "-j")
    assert done.stderr == ""
    return json.loads(done.stdout)


def backends(n, seed=1, weights=(1,)):
    return [Member(f"s{seed}-{i + 1:05}", weights[i % len(weights)]) for i in range(n)]


def newcomer(n, weight=1, seed=1):
    return Member(f"~s{seed}-{n + 1:05}", weight)


def course(algorithm, memberships, slots=M):
    """(moved, minimum) in slots, over all steps, by tables from the library and counts from here."""
    moved = minimum = 0
    before = tables.build(algorithm, memberships[0], slots)
    for members in memberships[1:]:
        after = tables.build(algorithm, members, slots, before)
        a, b = oracle.movement(before.names(), after.names())
        moved, minimum, before = moved + a, minimum + b, after
    return moved, minimum


def matches(row, expected, slots=M):
    moved, minimum = expected
    return all(abs(row[key] * slots - figure) < 1e-6
               for key, figure in [("moved", moved), ("minimum", minimum), ("excess", moved - minimum)])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_joins(algorithm):
    ten = backends(10)
    row = simulate("-a", algorithm, "-n", 10, "-m", M, "--event", "add")
    assert KEYS <= row.keys()
    assert (row["algorithm"], row["backends"], row["slots"], row["event"]) == (algorithm, 10, M, "add")
    assert matches(row, course(algorithm, [ten, ten + [newcomer(10)]]))
    row = simulate("-a", algorithm, "-n", 10, "-m", M, "--event", "grow:13", "--seed", 7)
    more = backends(10, 7)
    assert matches(row, course(algorithm, [more, more + [newcomer(n, seed=7) for n in (10, 11, 12)]]))
    # Ring: the tokens of a weight stay as many when all weights are multiplied.
    if algorithm != "ring":
        row = simulate("-a", algorithm, "-n", 10, "-m", M, "--event", "ramp:10")
        tens = [m._replace(weight=10) for m in ten]
        assert row["steps"] == 10
        assert matches(row, course(algorithm, [tens] + [tens + [newcomer(10, w)] for w in range(1, 11)]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("event, changes", [
    ("remove", [0]), ("drain", [0]), ("flap", [0, 3]), ("double", [6]), ("fail:1", [0]),
])
def test_who_is_struck(algorithm, event, changes):
    """It is a random one: so one of the possible figures, and not the same one for every seed."""
    struck = set()
    for seed in 1, 2, 3:
        members = backends(7, seed, (3, 3, 3))
        row = simulate("-a", algorithm, "-n", 7, "-w", "3", "-m", M, "--event", event, "--seed", seed)
        possible = []
        for i in range(7):
            steps = [[m._replace(weight=w) if m == members[i] else m for m in members] for w in changes]
            possible.append(course(algorithm, [members] + steps))
        assert any(matches(row, p) for p in possible)
        assert row["steps"] == len(changes)
        struck.add(next(i for i, p in enumerate(possible) if matches(row, p)))
    assert algorithm in ("maglev", "minimal", "modulo") or event == "double" or len(struck) > 1


@pytest.mark.parametrize("weights", ["1", "1-100", "1,2,4"])
def test_minimal_never_moves_more_than_it_must(weights):
    events = ["add", "remove", "fail:3", "double", "halve", "drain", "flap", "ramp:10", "roll", "grow:15"]
    rows = simulate("-a", "minimal", "-n", 10, "-m", M, "-w", weights, "-e", ",".join(events))
    assert [row["event"] for row in rows] == events
    for row in rows:
        assert row["excess"] == 0 < row["moved"], row["event"]
        assert row["restored"] == (row["event"] in ("flap", "roll"))
        assert row["steps"] == {"flap": 2, "ramp:10": 10, "roll": 20}.get(row["event"], 1)


def test_known_figures():
    rows = {(r["algorithm"], r["event"]): r
            for r in simulate("--compare", "-n", 10, "-k", 200000, "-e", "grow:11,remove")}
    assert len(rows) == 12
    assert abs(rows["modulo", "grow:11"]["moved"] - 0.909) < 0.005
    assert abs(rows["ring", "grow:11"]["moved"] - 0.091) < 0.015
    assert rows["jump", "grow:11"]["excess"] < 1e-12
    assert rows["rendezvous", "remove"]["excess"] < 1e-12
    assert abs(simulate("-a", "modulo", "-n", 120, "-k", 200000, "-e", "grow:121")["moved"] - 0.9917) < 0.001
    row = simulate("-a", "maglev", "-n", 100, "-e", "remove")
    assert row["slots"] == 65537
    assert row["max_over_mean"] <= 1.001
    assert 0.0045 <= row["excess"] <= 0.0070
    assert simulate("-n", 1000)["max_over_mean"] <= 1.008


def test_slow_start():
    """DESIGN's figure: ten steps move four times the minimum with maglev, the minimum with minimal."""
    maglev, minimal = simulate("-a", "maglev,minimal", "-n", 100, "-e", "ramp:10")
    assert 0.035 < maglev["moved"] < 0.05
    assert 0.0095 < minimal["moved"] < 0.0105


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_balance_figures(algorithm):
    weights = (1, 2, 5) if algorithm not in ("jump", "modulo") else (1,)
    members = backends(12, weights=weights)
    row = simulate("-a", algorithm, "-n", 12, "-m", M, "-w", ",".join(map(str, weights)))
    total = sum(m.weight for m in members)
    ratios = [tables.build(algorithm, members, M).counts()[m.name] * total / M / m.weight for m in members]
    mean = sum(ratios) / 12
    assert row["max_over_mean"] == pytest.approx(max(ratios))
    assert row["min_over_mean"] == pytest.approx(min(ratios))
    assert row["cv"] == pytest.approx((sum((r - mean) ** 2 for r in ratios) / 12) ** 0.5 / mean, abs=1e-7)
    assert row["moved"] == row["minimum"] == row["excess"] == 0
    assert row["event"] is None
    assert 0 < row["peak_bytes"] < 16 * M + 256 * 12
    assert row["build_ms"] > 0


def test_same_seed_same_figures():
    def run(seed):
        rows = simulate("--compare", "-n", 20, "-m", M, "-w", "1-9", "-e", "remove", "-k", 1000, "--seed", seed)
        return [{k: v for k, v in row.items() if k != "build_ms"} for row in rows]

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_keys_are_spread_like_slots():
    by_slot, by_key = simulate("-n", 10), simulate("-n", 10, "-k", 1000000, "-e", "remove")
    assert by_key["keys"] == 1000000
    assert abs(by_key["max_over_mean"] - by_slot["max_over_mean"]) < 0.015
    assert abs(by_key["minimum"] - 0.1) < 0.005


def test_a_hot_key():
    row = simulate("-n", 10, "-k", 10000, "--zipf", "1.1")
    harmonic = sum(k ** -1.1 for k in range(1, 10001))
    assert row["hot_share"] == pytest.approx(1 / harmonic)
    assert row["hot_over_mean"] == pytest.approx(10 / harmonic)
    assert row["by_request"]["max_over_mean"] > row["hot_over_mean"]
    assert row["by_key"]["max_over_mean"] == row["max_over_mean"] < 1.15
    assert row["by_byte"]["max_over_mean"] != row["by_request"]["max_over_mean"]
    text = shuntctl("-n", 10, "-k", 10000, "--zipf", "1.1").stdout
    assert f"No table splits one key: the hottest has {100 / harmonic:.2f}% of the requests" in text
    for load in "by key", "by request", "by byte":
        assert load in text


def test_replicas():
    row = simulate("-n", 12, "-m", 251, "--replicas", 3, "--zones", 4)
    assert (row["under_replicated"], row["zones_least"]) == (0, 3)
    text = shuntctl("-n", 12, "-m", 251, "--replicas", 3, "--zones", 4).stdout
    assert "Every slot has 3 distinct backends in distinct zones." in text
    row = simulate("-n", 12, "-m", 251, "--replicas", 3, "--zones", 2)
    assert (row["under_replicated"], row["zones_least"]) == (1, 2)
    assert "under-replicated: 100.00% of the slots" in \
        shuntctl("-n", 12, "-m", 251, "--replicas", 3, "--zones", 2).stdout
    row = simulate("-n", 2, "-m", 251, "--replicas", 3)
    assert (row["under_replicated"], row["zones_least"]) == (1, 2)


def test_balance_and_vnodes():
    for algorithm in "ring", "rendezvous":
        loose, capped = (simulate("-a", algorithm, "-n", 100, "-m", M, *o)["max_over_mean"]
                         for o in ([], ["--balance", "1.05"]))
        assert capped < loose
        assert capped <= max(1.05, 1 + 100 / M) * 42 * 100 / M
    few, many = (simulate("-a", "ring", "-n", 10, "--vnodes", v)["cv"] for v in (1, 1000))
    assert many < few / 5


DOCUMENT = """
version: 1
hash-key: "00112233445566778899aabbccddeeff"
pools:
  - name: web
    table: {algorithm: minimal, size: 251}
    backends:
      - {name: b1, address: 10.1.0.1, weight: 1}
      - {name: b2, address: 10.1.0.2, weight: 3}
  - name: dns
    table: {algorithm: maglev, size: 101}
    backends: [{name: d1, address: 10.1.0.3}]
services: []
"""


def test_a_document(tmp_path):
    path = tmp_path / "shunt.yaml"
    path.write_text(DOCUMENT)
    row = simulate("--config", path, "--pool", "web", "-e", "drain")
    assert (row["algorithm"], row["backends"], row["slots"], row["excess"]) == ("minimal", 2, 251, 0)
    counts = {"b1": 63, "b2": 188}
    assert tables.build("maglev", [Member("b1", 1), Member("b2", 3)], 251).counts() == counts
    assert row["max_over_mean"] == pytest.approx(63 * 4 / 251)
    assert simulate("--config", path, "--pool", "web", "-m", 4099, "-a", "ring")["slots"] == 4099
    path.write_text(DOCUMENT.replace("minimal, size: 251", "ring, size: 251, balance: 1.1, vnodes: 3"))
    capped = simulate("--config", path, "--pool", "web")
    table = tables.build("ring", [Member("b1", 1), Member("b2", 3)], 251, balance=110, vnodes=3)
    assert capped["min_over_mean"] == pytest.approx(min(table.counts()["b1"] * 4, table.counts()["b2"] * 4 / 3) / 251)
    path.write_text(DOCUMENT)
    assert "name one with --pool" in shuntctl("--config", path, code=1).stderr
    assert 'no pool "x"' in shuntctl("--config", path, "--pool", "x", code=1).stderr
    path.write_text(DOCUMENT.replace("weight: 1", "weight: -1"))
    done = shuntctl("--config", path, "--pool", "web", code=1)
    assert done.stderr.startswith(f"{path}:8:47: error: weight is")
    assert "No such file" in shuntctl("--config", tmp_path / "none", code=1).stderr


def test_no_root_is_needed(tmp_path):
    """A copy that everybody may run, by a user who may do nothing."""
    folder = Path("/tmp") / f"shunt-simulate-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        copy = shutil.copy(PROGRAM, folder)
        done = subprocess.run([copy, "simulate", "-n", "3", "-j"], check=True, capture_output=True, user=65534,
                              group=65534, extra_groups=[], cwd="/")
        assert json.loads(done.stdout)["backends"] == 3
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("arguments, sentence", [
    ([], "--backends is missing"),
    (["-n", "0"], "--backends 0: give a number from 1 to 10000"),
    (["-n", "ten"], "--backends ten"),
    (["-n", "5", "-m", "0"], "--slots 0"),
    (["-n", "5", "--balance", "0.5"], "--balance 0.5"),
    (["-n", "5", "--zipf", "1"], "give --keys too"),
    (["-n", "5", "--zones", "2"], "give --replicas too"),
    (["-n", "5", "--compare", "-a", "ring"], "leave out --algorithm"),
    (["-n", "5", "-c", "x"], "leave out --backends"),
    (["-n", "5", "--pool", "x"], "give --config too"),
    (["-n", "5", "word"], '"word" is one word too many'),
    (["-n", "5", "--nonsense"], "nonsense"),
])
def test_command_lines_that_are_refused(arguments, sentence):
    assert sentence in shuntctl(*arguments, code=2).stderr
    answer = json.loads(shuntctl(*arguments, "-j", code=2).stdout)
    assert answer["error"] == "Usage" and sentence in answer["message"]


@pytest.mark.parametrize("arguments, sentence", [
    (["-n", "5", "-a", "random"], 'algorithm "random" is unknown'),
    (["-n", "5", "-m", "100"], "the nearest are 97 and 101"),
    (["-n", "5", "-m", "1"], "is not within 2 to 1048573"),
    (["-n", "5", "-m", "4294967295"], "is not within 2 to 1048573"),
    (["-n", "300", "-m", "251"], "the next size that holds them is 307"),
    (["-n", "5", "-w", "x"], 'weights "x"'),
    (["-n", "5", "-w", "1,,2"], 'weights "1,,2"'),
    (["-n", "5", "-w", "9-1"], 'weights "9-1"'),
    (["-n", "5", "-w", "70000"], 'weights "70000"'),
    (["-n", "5", "-w", "-1"], 'weights "-1"'),
    (["-n", "5", "-w", "0"], "no backend has a positive weight"),
    (["-n", "5", "-e", "explode"], 'event "explode" is unknown'),
    (["-n", "5", "-e", "fail"], "write fail:NUMBER"),
    (["-n", "5", "-e", "fail:0"], "write fail:NUMBER"),
    (["-n", "5", "-e", "add:2"], "add takes no number"),
    (["-n", "5", "-e", "fail:5"], "leaves none"),
    (["-n", "1", "-e", "remove"], "leaves none"),
    (["-n", "5", "-e", "grow:5"], "there are 5 backends already"),
    (["-n", "10000", "-m", "1048573", "-e", "add"], "the limit is 10000"),
    (["-n", "5", "-w", "60000", "-e", "double"], "the limit is 65535"),
    (["-n", "6", "-w", "60000", "-a", "ring"], "use smaller weights or fewer virtual nodes"),
])
def test_what_cannot_be(arguments, sentence):
    assert sentence in shuntctl(*arguments, code=1).stderr
    answer = json.loads(shuntctl(*arguments, "-j", code=1).stdout)
    assert answer["error"] == "Invalid" and sentence in answer["message"]


def test_one_of_several_that_cannot_be():
    """Side by side, an algorithm that refuses has its row, with the reason."""
    rows = {r["algorithm"]: r for r in simulate("--compare", "-n", 6, "-m", 251, "-w", "60000")}
    assert list(rows) == ALGORITHMS
    assert "virtual nodes" in rows["ring"]["error"]
    assert all("error" not in rows[a] for a in ALGORITHMS if a != "ring")
    done = shuntctl("--compare", "-n", 6, "-m", 251, "-w", "60000")
    assert "ring: error: a ring of" in done.stderr


def test_warnings():
    row = simulate("-n", 200, "-m", 251)
    assert "shares are off by more than 1 %" in row["warnings"][0]["text"]
    done = shuntctl("-n", 200, "-m", 251)
    assert done.stderr.startswith("maglev: warning: 200 of 200 shares are off by more than 1 %")
