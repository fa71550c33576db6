# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drains as an operator sees them: how long they last, what waits for them, what takes them back, and pools without any."""

import json
import threading
import time

import pytest
from shuntlab import web


def document(**pool):
    made = web(3, slots=251)
    made["pools"][0].update(pool)
    return made


def row(shunt, name):
    return next((one for one in shunt.json("backend", "list")["backends"]
                 if (one["pool"], one["name"]) == ("web", name)), None)


def pool(shunt):
    return shunt.json("pool", "show", "web")


def start(shunt, **keys):
    shunt.write(document(**keys))
    shunt.start()
    shunt.wait(lambda: all(row(shunt, f"web{i}")["slots"] for i in (1, 2, 3)), "all have slots")
    return shunt


def rested(shunt):
    shunt.wait(lambda: pool(shunt)["tracked"] == 0, "all slots are at rest", 30)
    return shunt


def timed(shunt, *args):
    began = time.monotonic()
    done = shunt.ctl(*args)
    return done, time.monotonic() - began


def test_wait_returns_when_nothing_names_it(shunt):
    rested(start(shunt, settle="3s", learn="1s"))
    done, seconds = timed(shunt, "backend", "drain", "web/web1", "--wait", "--timeout", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert 2.5 < seconds < 15
    one = row(shunt, "web1")
    assert (one["slots"], one["base_slots"], one["entries"], one["state"]) == (0, 0, 0, "draining")
    assert "slots and 0 recorded connections still name it" in done.stdout
    # With nothing left there is nothing to wait for.
    done, seconds = timed(shunt, "-j", "backend", "drain", "web/web1", "--wait", "--timeout", "60")
    assert done.returncode == 0 and seconds < 2
    json.loads(done.stdout)


def test_the_timeout_ends_the_wait_and_not_the_drain(shunt):
    start(shunt, settle="1h")
    done, seconds = timed(shunt, "-j", "backend", "drain", "web/web1", "--wait", "--timeout", "1")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["error"], done.stderr) == (1, "Timeout", "")
    assert "it goes on to drain" in answer["message"] and 1 <= seconds < 5
    assert row(shunt, "web1")["state"] == "draining" and row(shunt, "web1")["base_slots"] > 0
    done, _ = timed(shunt, "backend", "del", "web/web1", "--wait", "--timeout", "1")
    assert done.returncode == 1 and "it goes on to drain" in done.stderr
    assert row(shunt, "web1")["state"] == "leaving"


def test_undrain_takes_a_deletion_back(shunt):
    start(shunt, settle="3s", learn="1s")
    before = shunt.json("pool", "table", "web")
    assert shunt.json("backend", "del", "web/web1")["draining"] is True
    assert row(shunt, "web1")["state"] == "leaving" and row(shunt, "web1")["slots"] == 0
    assert shunt.ctl("backend", "undrain", "web/web1").returncode == 0
    assert row(shunt, "web1")["state"] == "active"
    assert shunt.json("pool", "table", "web")["rows"] == before["rows"]
    time.sleep(5)  # longer than the drain would have lasted
    assert row(shunt, "web1")["state"] == "active" and row(shunt, "web1")["slots"] > 0
    done = shunt.ctl("backend", "undrain", "web/nope")
    assert done.returncode == 1 and "nope" in done.stderr


def test_a_deletion_waits_for_its_drain(shunt):
    start(shunt, settle="3s", learn="1s")
    done, seconds = timed(shunt, "backend", "del", "web/web1", "--wait", "--timeout", "60")
    assert done.returncode == 0 and seconds > 1, done.stderr
    assert row(shunt, "web1") is None


def test_undrain_ends_a_wait_for_a_deletion_after_its_timeout_alone(shunt):
    """Whoever waits for the deletion is told that it did not happen."""
    start(shunt, settle="1h")
    timer = threading.Timer(1, lambda: shunt.ctl("backend", "undrain", "web/web1"))
    timer.start()
    done, seconds = timed(shunt, "backend", "del", "web/web1", "--wait", "--timeout", "3")
    timer.join()
    assert done.returncode == 1 and seconds < 10
    assert row(shunt, "web1")["state"] == "active"


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
def test_drain_timeout_gives_what_is_left_to_the_owners(shunt, restart):
    """Longer than that no backend drains, however long settle is; each pool has its own; a restart begins nothing anew."""
    both = document(settle="1h", **{"drain-timeout": "6s"})
    other = json.loads(json.dumps(both["pools"][0]))
    other.update({"name": "slow", "drain-timeout": "1h"})
    both["pools"].append(other)
    both["services"][1]["pool"] = "slow"
    shunt.write(both)
    shunt.start()
    shunt.wait(lambda: all(one["slots"] for one in shunt.json("backend", "list")["backends"]), "all have slots")
    began = time.monotonic()
    for name in ("web", "slow"):
        shunt.json("backend", "drain", f"{name}/web1")
    time.sleep(2)
    assert row(shunt, "web1")["base_slots"] > 0
    if restart:
        shunt.kill()
        shunt.start()
        assert row(shunt, "web1")["base_slots"] > 0
    shunt.wait(lambda: row(shunt, "web1")["base_slots"] == 0, "the drain is over", 20)
    assert 4.5 < time.monotonic() - began < 12
    slow = shunt.json("backend", "show", "slow/web1")
    assert slow["base_slots"] > 0 and slow["state"] == "draining"
    assert shunt.json("backend", "show", "web/web1")["state"] == "draining"  # until somebody undrains or deletes it


def test_a_stateless_pool_tracks_nothing(shunt):
    start(shunt, connections="stateless")
    assert (pool(shunt)["connections"], pool(shunt)["tracked"]) == ("stateless", 0)
    epoch = pool(shunt)["epoch"]
    done, seconds = timed(shunt, "backend", "drain", "web/web1", "--wait", "--timeout", "20")
    assert done.returncode == 0 and seconds < 3
    after = pool(shunt)
    assert after["epoch"] == epoch + 1 and after["tracked"] == after["unsettled"] == 0
    assert row(shunt, "web1")["slots"] == row(shunt, "web1")["base_slots"] == 0
    assert shunt.json("status")["flow_table"]["used_buckets"] == 0
    # Nothing waits, so that a deletion is done at once.
    done, seconds = timed(shunt, "backend", "del", "web/web2", "--wait", "--timeout", "20")
    assert done.returncode == 0 and seconds < 5 and row(shunt, "web2") is None


def test_a_pool_that_becomes_stateless_lets_go_of_everything(shunt):
    start(shunt, settle="1h")
    shunt.json("backend", "drain", "web/web1")
    assert pool(shunt)["tracked"] > 0
    shunt.write(document(connections="stateless"))
    assert shunt.ctl("reload", "--wait").returncode == 0
    assert pool(shunt)["tracked"] == 0 and row(shunt, "web1")["base_slots"] == 0
    shunt.write(document(settle="1h"))
    assert shunt.ctl("reload", "--wait").returncode == 0
    assert pool(shunt)["tracked"] == 0
    shunt.json("backend", "undrain", "web/web1")
    assert pool(shunt)["tracked"] > 0
