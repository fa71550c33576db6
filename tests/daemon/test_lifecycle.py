# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Maintenance, slow start, and health on a full disk."""

import tempfile
import time
from pathlib import Path

import pytest

from shuntlab import UNDER, Shunt, backend, web


def rows(shunt):
    return {row["name"]: row for row in shunt.json("backend", "list")["backends"]}


def ramping(backends=2, time="3s", **more):
    document = web(backends)
    document["pools"][0].update({"slow-start": time, **more})
    document["pools"][0]["table"]["algorithm"] = "minimal"
    return document


def why(shunt):
    return [epoch["why"] for epoch in shunt.json("epoch", "list", "web")["epochs"]]


# ---- maintenance ----

def test_maintenance_lasts_until_it_is_ended(running):
    # An operator's decision: neither a document, nor a kill, nor undrain takes it back, and drain-timeout is no end.
    document = web(2)
    document["pools"][0].update({"drain-timeout": "1s", "settle": "1s", "learn": "1s"})
    running.write(document)
    running.json("reload")
    running.json("backend", "maintenance", "web/web1", "--reason", "new disks")
    row = rows(running)["web1"]
    assert (row["state"], row["slots"]) == ("maintenance", 0) and rows(running)["web2"]["slots"] == 4099
    assert any("BackendMaintenance web/web1: new disks" in text for text in why(running))
    running.write({**document, "policy": {"max-leaving": 5}})
    running.json("reload")
    running.kill()
    running.start()
    assert rows(running)["web1"]["state"] == "maintenance"
    running.json("backend", "drain", "web/web1")
    assert rows(running)["web1"]["state"] == "maintenance"
    done = running.ctl("backend", "undrain", "web/web1")
    assert done.returncode == 1 and "backend activate web/web1" in done.stderr
    time.sleep(1.2)
    assert rows(running)["web1"]["state"] == "maintenance"
    running.json("backend", "activate", "web/web1")
    assert rows(running)["web1"]["state"] == "active" and rows(running)["web1"]["slots"] > 2000
    running.json("backend", "activate", "web/web1")  # again: nothing to do


def test_activate_ends_a_drain_too_and_plans(running):
    running.json("backend", "drain", "web/web2")
    plan = running.json("backend", "activate", "web/web2", "--plan")
    assert plan["pools"][0]["moved"] > 2000 and rows(running)["web2"]["state"] == "draining"
    running.json("backend", "activate", "web/web2")
    assert rows(running)["web2"]["state"] == "active"
    assert running.ctl("backend", "maintenance", "web/nobody").returncode == 1
    # The policy holds for it as for a drain.
    running.write({**web(2), "policy": {"max-leaving": 0}})
    running.json("reload")
    assert running.ctl("backend", "maintenance", "web/web1").returncode == 4
    running.json("backend", "maintenance", "web/web1", "--force")


# ---- slow start ----

def test_a_newcomer_ramps_in_ten_steps_of_least_movement(running):
    running.write(ramping(2, "3s"))
    running.json("reload")
    assert {row["state"] for row in rows(running).values()} == {"active"}, "the first of a pool need no slow start"
    first = running.json("pool", "show", "web")["epoch"]
    running.json("backend", "add", "web/web3", backend(3))
    row = rows(running)["web3"]
    assert row["state"] == "slow-start" and row["weight_percent"] == 10
    assert abs(row["slots"] - 4099 / 21) < 2, "a tenth beside two of ten"
    # Operators are told that another balancer may be elsewhere.
    plan = running.json("backend", "set", "web/web1", "--weight", "1", "--plan")
    plan = running.json("backend", "set", "web/web1", "--weight", "2", "--plan")
    assert any("slow start" in entry["text"] for entry in plan["entries"])
    running.wait(lambda: rows(running)["web3"]["state"] == "active", "the slow start is over", 6)
    assert abs(rows(running)["web3"]["slots"] - 4099 / 3) < 2
    steps = [e for e in running.json("epoch", "list", "web")["epochs"] if e["epoch"] > first + 1]
    assert len(steps) == 9
    assert [e["why"] for e in sorted(steps, key=lambda e: e["epoch"])] == [
        f"slow start: web/web3 is at {step} of 10" for step in range(2, 11)]
    assert all(e["moved"] == e["minimum"] for e in steps)
    assert sum(e["moved"] for e in steps) < 4099 / 3


def test_a_slow_start_survives_the_daemon_and_ends_in_time(running):
    running.write(ramping(2, "4s"))
    running.json("reload")
    running.json("backend", "maintenance", "web/web2")
    running.json("backend", "activate", "web/web2")
    began = time.monotonic()
    assert rows(running)["web2"]["state"] == "slow-start"
    running.wait(lambda: rows(running)["web2"]["weight_percent"] >= 30, "the third step")
    weight, epoch = rows(running)["web2"]["weight_percent"], running.json("pool", "show", "web")["epoch"]
    running.kill()
    running.start()
    after, row = running.json("pool", "show", "web")["epoch"], rows(running)["web2"]
    assert row["weight_percent"] >= weight >= 30, "it is not begun anew"
    assert after - epoch <= (row["weight_percent"] - weight) / 10, "each epoch is a step"
    running.wait(lambda: rows(running)["web2"]["state"] == "active", "the slow start is over", 8)
    assert time.monotonic() - began > 3.9
    assert abs(rows(running)["web2"]["slots"] - 4099 / 2) < 2
    # The same table as without one.
    digest = running.json("pool", "show", "web")["digest"]
    running.json("reload")
    assert running.json("pool", "show", "web")["digest"] == digest


def test_a_document_without_it_ends_it(running):
    running.write(ramping(2, "1h"))
    running.json("reload")
    running.json("backend", "drain", "web/web2")
    running.json("backend", "undrain", "web/web2")
    assert rows(running)["web2"]["state"] == "slow-start"
    running.write(web(2))
    running.json("reload")
    assert rows(running)["web2"]["state"] == "active" and abs(rows(running)["web2"]["slots"] - 4099 / 2) < 2


@pytest.mark.parametrize("algorithm", ["maglev", "rendezvous", "ring"])
def test_weights_of_a_slow_start_with_every_algorithm(running, algorithm):
    document = ramping(2, "1h")
    document["pools"][0]["table"]["algorithm"] = algorithm
    for row in document["pools"][0]["backends"]:
        row["weight"] = 20
    running.write(document)
    running.json("reload")
    running.json("backend", "maintenance", "web/web2")
    running.json("backend", "activate", "web/web2")
    assert 4099 / 11 * 0.8 < rows(running)["web2"]["slots"] < 4099 / 11 * 1.25


# ---- a full disk ----

@pytest.fixture
def full():
    with Shunt() as shunt, shunt.small_disk("512k"):
        yield shunt


@pytest.mark.skipif(bool(UNDER), reason="hooks need pidfd_open(), which valgrind does not know")
def test_health_acts_on_a_full_disk_and_operators_are_refused(full):
    with tempfile.TemporaryDirectory(prefix="shunt-hooks-") as name:
        hooks = Path(name)
        hooks.chmod(0o755)
        (hooks / "ask").write_text(f"#!/bin/sh\n! [ -e {hooks}/down-$SHUNT_BACKEND ]\n")
        (hooks / "ask").chmod(0o755)
        document = web(3)
        document["pools"][0]["health"] = {"type": "exec", "hook": "ask", "interval": "300ms", "timeout": "200ms",
                                          "rise": 1, "fall": 2, "hold-down": "0s"}
        full.write(document)
        full.start("--hooks-dir", hooks)
        full.wait(lambda: all(row["health"] == "up" for row in rows(full).values()), "all are up")
        fill(full.state / "filler")
        epoch = full.json("pool", "show", "web")["epoch"]
        done = full.ctl("backend", "set", "web/web2", "--weight", "7")
        assert done.returncode == 1 and "No space left" in done.stderr
        assert rows(full)["web2"]["weight"] == 1 and full.json("pool", "show", "web")["epoch"] == epoch
        (hooks / "down-web1").touch()
        full.wait(lambda: rows(full)["web1"]["slots"] == 0, "health acts", 5)
        assert any("state cannot be written" in p for p in full.json("status")["problems"])
        done = full.ctl("status", "--check")
        assert done.returncode == 1 and "state cannot be written" in done.stdout
        assert full.ctl("backend", "drain", "web/web2").returncode == 1
        assert full.ctl("backend", "set", "web/web2", "--weight", "7").returncode == 1
        now = rows(full)
        assert now["web1"]["slots"] == 0 and (now["web2"]["state"], now["web2"]["weight"]) == ("active", 1)
        table = full.json("pool", "show", "web")
        full.kill()
        full.start("--hooks-dir", hooks)
        again = full.json("pool", "show", "web")
        assert (again["epoch"], again["digest"]) == (table["epoch"], table["digest"])
        (hooks / "down-web1").unlink()
        full.wait(lambda: rows(full)["web1"]["slots"] > 0, "health acts after a restart too", 5)
        (full.state / "filler").unlink()
        full.json("backend", "set", "web/web2", "--weight", "7")
        assert "state cannot be written" not in full.ctl("status", "--check").stdout


def test_a_refused_change_raises_the_alarm_until_there_is_room(full):
    full.write(web(3))
    full.start()
    assert full.ctl("backend", "set", "web/web1", "--weight", "3").returncode == 0
    fill(full.state / "filler")
    done = full.ctl("backend", "set", "web/web2", "--weight", "7")
    assert done.returncode == 1 and "No space left" in done.stderr
    status = full.json("status")
    assert status["alarms"]["history"] and any("state cannot be written" in p for p in status["problems"])
    assert rows(full)["web2"]["weight"] == 1
    (full.state / "filler").unlink()
    full.wait(lambda: not full.json("status")["alarms"]["history"], "it is over by itself", 40)
    assert "state cannot be written" not in full.ctl("status", "--check").stdout


def fill(path):
    with open(path, "wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                pass


# ---- checks ----

def test_a_newcomer_that_cannot_be_checked_serves(running):
    # The service's address is the host's: checks down the data path would not leave it.
    document = web(2)
    document["pools"][0]["health"] = {"type": "tcp", "interval": "200ms", "timeout": "100ms", "fall": 2}
    running.sh(f"ip address add {document['services'][0]['address']} dev lo")
    running.write(document)
    running.json("reload")
    running.wait(lambda: "one of this host" in rows(running)["web1"]["health_why"], "it cannot be checked")
    assert rows(running)["web1"]["slots"] > 0
    running.json("backend", "add", "web/web3", "10.1.0.13")
    running.wait(lambda: rows(running)["web3"]["slots"] > 0, "it serves as the others do")
    assert rows(running)["web3"]["state"] == "active" and rows(running)["web3"]["health"] == "unknown"
    assert "web/web3 cannot be checked and serves without" in running.log_tail()


@pytest.mark.parametrize("last", ["fail-open", "refuse"])
def test_an_address_that_the_host_gets_later_takes_no_backend_out(running, last):
    """Nor does one that it loses keep them unchecked."""
    document = web(2)
    document["pools"][0]["health"] = {"type": "tcp", "interval": "200ms", "timeout": "100ms", "fall": 100, "panic": 100,
                                      "last-backend": last}
    # Nobody answers here; what counts is whether a check says so.
    running.sh("ip route add default via 10.1.0.11; ip -6 route add default via fd00:1::11")
    address = f"{document['services'][0]['address']} dev lo"
    running.sh(f"ip address add {address}")
    running.write(document)
    running.json("reload")
    running.wait(lambda: "one of this host" in rows(running)["web1"]["health_why"], "it cannot be checked")
    running.sh(f"ip address del {address}")
    running.wait(lambda: rows(running)["web1"]["health_failed"] > 0, "it is checked")
    running.sh(f"ip address add {address}")
    running.wait(lambda: all("one of this host" in row["health_why"] for row in rows(running).values()), "it cannot be")
    failed = {name: row["health_failed"] for name, row in rows(running).items()}
    time.sleep(1.5)
    assert failed == {name: row["health_failed"] for name, row in rows(running).items()}
    assert all(row["health"] == "unknown" and row["slots"] for row in rows(running).values())
