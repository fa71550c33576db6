# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What people and programs see, with a daemon that answers known things."""

import json
import subprocess
import time

import pytest
from conftest import PROGRAM, only_json

POOL = {"name": "web", "algorithm": "maglev", "slots": 7, "encapsulation": "ipip", "source4": "10.0.0.1",
        "source6": None, "backends": 2, "services": 1, "epoch": 5, "phase": 0, "digest": "00ff00ff00ff00ff",
        "activated": 1790000000, "published": True, "with_slots": 1, "reachable": 1}
TABLE = {"pool": "web", "epoch": 5, "digest": "00ff00ff00ff00ff", "slots": 7, "activated": 1790000000,
         "rows": [{"backend": "web1", "weight": 1, "slots": 4, "share": 57.142857, "target": 50.0},
                  {"backend": "web2", "weight": 1, "slots": 2, "share": 28.571429, "target": 50.0}],
         "owners": [[0, 3], [-1, 1], [1, 2], [0, 1]]}
COUNTERS = {"counters": [
    {"name": "pass_not_ip", "class": "pass", "packets": 12, "description": "Left to the host."},
    {"name": "forward_tx", "class": "forward", "packets": 1000, "description": "Sent."},
    {"name": "drop_ttl", "class": "drop", "packets": 0, "description": "Used up."}]}
STATUS = {"instance": "blue", "abi": 1, "daemon_version": "0.1.0", "pid": 7, "uptime": 93784,
          "state_dir": "/var/lib/shunt/blue", "document": "/etc/shunt/blue.yaml", "healthy": True, "problems": [],
          "revision": 3, "capacities": {"services": 100, "addresses": 10, "pools": 9, "backends": 8, "flows": 7},
          "used": {"services": 3, "addresses": 2, "pools": 1, "backends": 2}, "memory_bytes": 3 << 20,
          "memory_per_cpu_bytes": 1 << 19, "pools": 1, "services": 1, "backends": 2}
BACKENDS = {"backends": [
    {"pool": "web", "name": "web1", "address": "10.1.0.11", "state": "active", "weight": 1, "slots": 7,
     "share": 100.0, "packets": 5, "nexthop": "02:00:00:00:00:01", "interface": "eth0", "mtu": 1500, "mss": 1440, "why": "",
     "reachable": True},
    {"pool": "web", "name": "web2", "address": "10.1.0.12", "state": "unreachable", "weight": 1, "slots": 0,
     "share": 0.0, "packets": 0, "nexthop": "", "interface": "", "mtu": 1500, "mss": 0, "why": "no route", "reachable": False}]}


def lines(done):
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]


def test_a_list_is_a_table_and_the_same_rows_as_json(ctl, fake):
    instance = fake({"BackendList": BACKENDS}).instance
    rows = lines(ctl("backend", "list", instance=instance))
    assert rows[0][:5] == ["BACKEND", "ADDRESS", "STATE", "HEALTH", "WEIGHT"]
    assert rows[1] == ["web/web1", "10.1.0.11", "active", "-", "1", "7", "100.00%", "5", "02:00:00:00:00:01", "eth0",
                       "1500", "1440", "-"]
    assert rows[2] == ["web/web2", "10.1.0.12", "unreachable", "-", "1", "0", "0.00%", "0", "-", "-", "1500", "0", "no", "route"]
    assert only_json(ctl("-j", "backend", "list", instance=instance)) == BACKENDS


def test_show_prints_one_and_its_row_as_json(ctl, fake):
    instance = fake({"PoolList": {"pools": [POOL]}}).instance
    rows = lines(ctl("pool", "show", "web", instance=instance))
    assert ["IPv4", "source", "10.0.0.1"] in rows
    assert ["IPv6", "source", "-"] in rows
    assert ["published", "yes"] in rows
    assert only_json(ctl("pool", "show", "web", "--json", instance=instance)) == POOL


def test_show_of_an_empty_answer_is_not_found(ctl, fake):
    instance = fake({"PoolList": {"pools": []}}).instance
    done = ctl("pool", "show", "web", instance=instance)
    assert done.returncode == 1
    assert 'there is no pool "web"' in done.stderr
    assert only_json(ctl("pool", "show", "web", "-j", instance=instance))["error"] == "NotFound"


def test_a_service_is_listed_as_it_is_added(ctl, fake):
    row = {"name": "www", "protocol": "tcp", "pool": "web", "packets": 1, "bytes": 2}
    instance = fake({"ServiceList": {"services": [
        {**row, "address": "192.0.2.10", "ports": "80,8000-8099"}, {**row, "address": "2001:db8::10", "ports": "any"},
    ]}}).instance
    rows = lines(ctl("service", "list", instance=instance))
    assert [row[2] for row in rows] == ["ADDRESS", "192.0.2.10:80,8000-8099", "[2001:db8::10]:any"]


def test_pool_table(ctl, fake):
    instance = fake({"PoolTable": TABLE}).instance
    rows = lines(ctl("pool", "table", "web", instance=instance))
    assert ["digest", "00ff00ff00ff00ff"] in rows
    assert rows[-2:] == [["web1", "1", "4", "57.14%", "50.00%"], ["web2", "1", "2", "28.57%", "50.00%"]]
    owners = lines(ctl("pool", "table", "web", "--slots", instance=instance))
    assert [owner for _, owner in owners] == ["web1"] * 3 + ["-"] + ["web2"] * 2 + ["web1"]
    assert [int(slot) for slot, _ in owners] == list(range(7))
    assert only_json(ctl("pool", "table", "web", "-j", instance=instance)) == TABLE


def test_a_change_says_nothing_and_in_json_an_object(ctl, fake):
    instance = fake({"BackendSet": {}}).instance
    args = ["backend", "set", "web/web1", "--weight", "3"]
    done = ctl(*args, instance=instance)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert only_json(ctl(*args, "-j", instance=instance)) == {}


def test_counters_hide_zeros_unless_asked(ctl, fake):
    instance = fake({"Counters": COUNTERS}).instance
    assert [row[0] for row in lines(ctl("counters", instance=instance))] == ["COUNTER", "pass_not_ip", "forward_tx"]
    assert [row[0] for row in lines(ctl("counters", "--all", instance=instance))][-1] == "drop_ttl"
    assert only_json(ctl("counters", "-j", instance=instance)) == COUNTERS
    zero = {"counters": [{**row, "packets": 0} for row in COUNTERS["counters"]]}
    assert "No packet" in ctl("counters", instance=fake({"Counters": zero}).instance).stdout


def test_reload(ctl, fake):
    done = ctl("reload", instance=fake({"Reload": {"changed": True, "warnings": ["odd"]}}).instance)
    assert (done.returncode, done.stdout) == (0, "The document is applied.\n")
    assert done.stderr == "shuntctl: warning: odd\n"
    done = ctl("reload", instance=fake({"Reload": {"changed": False, "warnings": []}}).instance)
    assert (done.stdout, done.stderr) == ("Nothing to do: the document says what is in force already.\n", "")


# ---- status ----

def screen_of(status):
    def backends(parameters):
        assert parameters == {"without_way": True}, "not ten thousand rows to count them"
        return {"backends": [row for row in BACKENDS["backends"] if not row["reachable"]]}

    return {"Status": status, "PoolList": {"pools": [POOL]}, "BackendList": backends, "Counters": COUNTERS}


# A fake daemon's instance has no program on any interface.
NOWHERE = "the load balancer is on no interface: shunt-loader attach IFACE... --instance {}"
FAR = "backend web/web2 cannot be reached and has no slots: no route"


def test_status_fits_on_a_screen(ctl, fake):
    instance = fake(screen_of(STATUS)).instance
    done = ctl("status", instance=instance)
    rows = lines(done)
    assert len(rows) <= 24 and all(len(line) <= 100 for line in done.stdout.splitlines())
    assert rows[0] == ["instance", "blue:", "2", "PROBLEMS"]
    assert "up 1d 02:03:04" in done.stdout
    assert "services   3 of 100" in done.stdout
    assert ["interfaces", "none"] in rows
    assert f"\nPROBLEMS\n  {NOWHERE.format(instance)}\n  {FAR}\n\n" in done.stdout
    pools = rows[rows.index(["forward_tx", "1000", "Sent."]) - 4:]
    assert pools[0][:6] == ["POOL", "SERVICES", "BACKENDS", "WITH", "SLOTS", "REACHABLE"]
    assert pools[1][:5] == ["web", "1", "2", "1", "1"]
    assert "pass_not_ip" not in done.stdout


def test_the_screen_lists_some_problems_and_check_all(ctl, fake):
    many = {**STATUS, "healthy": False, "problems": [f"problem {i}" for i in range(50)]}
    instance = fake(screen_of(many)).instance
    text = ctl("status", instance=instance).stdout
    assert "blue: 52 PROBLEMS" in text
    assert "  problem 7\n  and 44 more (status --check lists all)\n" in text
    done = ctl("status", "--check", instance=instance)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 52


@pytest.mark.parametrize("change,problems", [
    ({}, [NOWHERE, FAR]),
    ({"Status": {**STATUS, "problems": ["one", "two"]}}, ["one", "two", NOWHERE, FAR]),
    ({"Status": {**STATUS, "healthy": False}},
     ["shuntd says that it is not healthy, and not why: see its log", NOWHERE, FAR]),
    ({"BackendList": {"backends": [{**BACKENDS["backends"][1], "weight": 0}]}}, [NOWHERE]),
    ({"BackendList": {"backends": [{**BACKENDS["backends"][0], "why": "10.1.0.11 does not answer"}]}},
     [NOWHERE, "backend web/web1 is sent to its last known next hop: 10.1.0.11 does not answer"]),
    ({"BackendList": {"backends": []}, "Counters": {"counters": [
        {"name": "bug_table", "class": "bug", "packets": 3, "description": "x"},
        {"name": "bug_backend", "class": "bug", "packets": 0, "description": "x"}]}},
     [NOWHERE, "counter bug_table is 3, which is a defect of shunt: report it, with `shuntctl counters`"]),
], ids=["backend", "daemon", "unsaid", "no weight", "last next hop", "bug"])
def test_status_check_gives_every_reason(ctl, fake, change, problems):
    instance = fake({**screen_of(STATUS), **change}).instance
    problems = [problem.replace(NOWHERE, NOWHERE.format(instance)) for problem in problems]
    done = ctl("status", "--check", instance=instance)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (1, problems, "")
    for args in (["status", "--check", "-j"], ["status", "-j"]):
        done = ctl(*args, instance=instance)
        assert done.returncode == (1 if "--check" in args else 0)
        status = only_json(done)
        assert status["problems"] == problems
        assert status["healthy"] is False
        assert status["interfaces"] == []


# ---- readers that go away ----

@pytest.mark.parametrize("args,first", [(["pool", "table", "web", "--slots"], "0 web1\n"),
                                        (["-j", "pool", "table", "web", "--slots"], "{\n")])
def test_a_reader_that_goes_away_is_no_failure(fake, args, first):
    big = {**TABLE, "owners": [[0, 1]] * 1048573}
    instance = fake({"PoolTable": big}).instance
    with subprocess.Popen([PROGRAM, "--instance", instance, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == first
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 0


# ---- stats ----

class Growing:
    """Counters that grow by 1000 packets and 100,000 bytes with each question."""

    def __init__(self):
        self.asked = 0

    def services(self, _):
        self.asked += 1
        rows = [{"name": "www", "packets": 1000 * self.asked, "bytes": 100000 * self.asked}]
        if self.asked > 2:
            rows.append({"name": "new", "packets": 5, "bytes": 5})
        return {"services": rows}

    def backends(self, _):
        # web1 begins anew with the third question; web2's id is another backend's then.
        grown = self.asked * 1000
        return {"backends": [
            {"pool": "web", "name": "web1", "id": 0, "generation": 0, "packets": grown if self.asked < 3 else 1,
             "bytes": grown},
            {"pool": "web", "name": "web2", "id": 1, "generation": int(self.asked > 2), "packets": grown,
             "bytes": grown}]}

    def counters(self, _):
        return {"counters": [{"name": "drop_a", "class": "drop", "packets": self.asked * 10},
                             {"name": "drop_b", "class": "drop", "packets": 1},
                             {"name": "forward_tx", "class": "forward", "packets": 7}]}

    def answers(self):
        return {"ServiceList": self.services, "BackendList": self.backends, "Counters": self.counters}


def test_stats_once(ctl, fake):
    instance = fake(Growing().answers()).instance
    sample = only_json(ctl("stats", "-j", instance=instance))
    assert abs(sample.pop("time") - time.time()) < 10
    assert sample == {
        "classes": [{"class": "drop", "packets": 1}, {"class": "forward", "packets": 7}],
        "services": [{"name": "www", "packets": 1000, "bytes": 100000}],
        "backends": [{"pool": "web", "name": "web1", "id": 0, "generation": 0, "packets": 1000, "bytes": 1000},
                     {"pool": "web", "name": "web2", "id": 1, "generation": 0, "packets": 1000, "bytes": 1000}]}
    rows = lines(ctl("stats", instance=instance))
    assert ["SERVICE", "PACKETS", "BYTES"] in rows
    assert ["www", "2000", "200000"] in rows


def watch(instance, *args, n=2):
    """The first n lines of stats --watch."""
    with subprocess.Popen([PROGRAM, "--instance", instance, "stats", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        found = [process.stdout.readline() for _ in range(n)]
        process.terminate()
        assert process.stderr.read() == ""
    return found


@pytest.mark.parametrize("args", [["--watch=0.3", "-j"], ["-j", "--watch", "0.3"], ["-w0.3", "-j"]])
def test_watch_gives_rates_by_differences(fake, args):
    first, second = map(json.loads, watch(fake(Growing().answers()).instance, *args))
    assert 0.25 < first["seconds"] < 2
    www = first["services"][0]
    assert www["packets"] == 2000
    assert www["packets_per_second"] == pytest.approx(1000 / first["seconds"], rel=1e-9)
    assert www["bytes_per_second"] == pytest.approx(100000 / first["seconds"], rel=1e-9)
    drop = next(row for row in first["classes"] if row["class"] == "drop")
    assert drop["packets_per_second"] == pytest.approx(10 / first["seconds"], rel=1e-9)
    assert "bytes_per_second" not in drop
    assert [row["packets_per_second"] for row in second["services"] if row["name"] == "new"] == [None]
    assert [row["packets_per_second"] for row in second["backends"]] == [None, None]
    assert second["backends"][0]["bytes_per_second"] == pytest.approx(1000 / second["seconds"], rel=1e-9)


def test_watch_for_people(fake):
    text = watch(fake(Growing().answers()).instance, "--watch", "0.2", n=14)
    assert any(line.split()[-2:] == ["PACKETS/S", "BIT/S"] for line in text)
    row = next(line.split() for line in text if line.startswith("www"))
    assert row[:3] == ["www", "2000", "200000"]
    assert row[3].endswith("k") and 1.0 < float(row[3][:-1]) < 6.0
    assert row[4].endswith("M") and 0.8 < float(row[4][:-1]) < 5.0
    assert "\033" not in "".join(text)


def test_watch_ends_when_the_daemon_does(ctl, fake):
    growing = Growing()
    answers = growing.answers()
    answers["Counters"] = lambda p: growing.counters(p) if growing.asked < 3 else b""
    done = ctl("stats", "--watch=0.1", "-j", instance=fake(answers).instance)
    assert done.returncode == 3
    *samples, failure = done.stdout.split("\n{\n")
    assert len(samples[0].splitlines()) == 2
    assert json.loads("{" + failure)["error"] == "Unreachable"


def test_watch_ends_when_its_reader_does(fake):
    with subprocess.Popen([PROGRAM, "--instance", fake(Growing().answers()).instance, "stats", "--watch=0.1", "-j"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 0
        assert process.stderr.read() == ""
