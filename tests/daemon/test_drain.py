# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drains as an operator sees them: how long they last, what waits for them, what takes them back, and pools without any."""

import json
import re
import threading
import time

import pytest
from shuntlab import UNDER, run, web


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


@pytest.mark.parametrize("verb,back,says", [
    ("del", "undrain", "is not deleted, and does not drain any more"),
    ("del", "activate", "is not deleted, and does not drain any more"),
    ("del", "maintenance", "drains on, but is not deleted then"),
    ("drain", "undrain", "does not drain any more"),
    ("maintenance", "activate", "does not drain any more"),
])
def test_who_waits_is_told_at_once_that_it_was_taken_back(shunt, verb, back, says):
    start(shunt, settle="1h")
    timer = threading.Timer(1, lambda: shunt.ctl("backend", back, "web/web1"))
    timer.start()
    done, seconds = timed(shunt, "-j", "backend", verb, "web/web1", "--wait", "--timeout", "60")
    timer.join()
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["error"]) == (1, "TakenBack") and seconds < 30
    assert f"web/web1 {says}: that was taken back" in answer["message"]
    assert row(shunt, "web1")["state"] == ("maintenance" if back == "maintenance" else "active")


def test_a_deletion_that_cannot_be_written_down_waits_and_says_so(shunt):
    """The backend drains all the same, and is deleted when that can be written."""
    with shunt.small_disk("1m"):
        start(shunt, settle="3s", learn="1s")
        waited = []
        waiter = threading.Thread(target=lambda: waited.append(
            shunt.ctl("backend", "del", "web/web1", "--wait", "--timeout", "40" if UNDER else "15")))
        waiter.start()
        shunt.wait(lambda: row(shunt, "web1")["state"] == "leaving", "it drains")
        run(["mount", "-o", "remount,ro", shunt.state])
        done, _ = timed(shunt, "backend", "set", "web/web2", "--weight", "3")
        assert done.returncode == 1 and "Read-only file system" in done.stderr
        shunt.wait(lambda: "the deletion of backends that have drained waits" in shunt.ctl("status", "--check").stdout,
                   "status says so", 30)
        waiter.join()
        assert waited[0].returncode == 1 and "has drained, but is not deleted yet" in waited[0].stderr, waited
        done = shunt.ctl("backend", "del", "web/web1")
        assert done.returncode == 1 and "Read-only file system" in done.stderr
        assert row(shunt, "web1")["state"] == "leaving"
        assert shunt.json("status")["alarms"]["history"]
        assert shunt.log_tail().count("Read-only file system") < 4, "it is not said every second"
        run(["mount", "-o", "remount,rw", shunt.state])
        shunt.wait(lambda: row(shunt, "web1") is None, "it is deleted", 30)
        shunt.wait(lambda: "waits" not in shunt.ctl("status", "--check").stdout, "status is content")
        assert not shunt.json("status")["alarms"]["history"]


def test_the_history_has_drains_and_the_deletion_after_them(shunt):
    start(shunt, settle="3s", learn="1s")

    def history():
        return [(one["user"], one["why"], one["changes"]) for one in shunt.json("revision", "list")["revisions"]][1:]

    made = [("root", "BackendMaintenance web/web2: new disks", 0)]
    assert shunt.ctl("backend", "maintenance", "web/web2", "--reason", "new disks").returncode == 0
    assert shunt.ctl("backend", "maintenance", "web/web2").returncode == 0  # it is already
    assert history() == made
    assert shunt.ctl("backend", "del", "web/web1", "--reason", "old").returncode == 0
    shunt.wait(lambda: row(shunt, "web1") is None, "it is deleted", 30)
    made += [("root", "BackendDel web/web1: old", 0), ("shuntd", "backends that had drained are deleted", 1)]
    assert history() == made
    shunt.kill()
    shunt.process = None
    shunt.start()
    assert history() == made and row(shunt, "web2")["state"] == "maintenance"
    # Going back to a document from before the decision leaves the decision alone.
    assert shunt.ctl("revision", "rollback", "1").returncode == 0
    assert row(shunt, "web2")["state"] == "maintenance" and row(shunt, "web1")["state"] == "active"


@pytest.mark.parametrize("more", [{}, {"policy": {"max-moved": "90%"}}], ids=["", "other"])
def test_a_document_that_names_it_takes_a_deletion_back(shunt, more):
    """Whether or not anything else is different, and whether or not it is the daemon's own file."""
    start(shunt, settle="1h")
    assert shunt.ctl("backend", "del", "web/web1").returncode == 0
    text = json.dumps({**document(settle="1h"), "hash-key-file": str(shunt.dir / "hash.key"), **more})
    assert shunt.ctl("plan", "-", "--exit-code", stdin=text).returncode == 5
    assert row(shunt, "web1")["state"] == "leaving"
    done = shunt.ctl("apply", "-", "--confirm-within", "1h", stdin=text)
    assert done.returncode == 0 and "in force" in done.stdout, done.stderr
    assert row(shunt, "web1")["state"] == "active" and row(shunt, "web1")["slots"] > 0
    assert shunt.ctl("confirm").returncode == 0
    assert shunt.ctl("plan", "-", "--exit-code", stdin=text).returncode == 0


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
    assert re.search(r"pool web: drain-timeout is over: \d+ slots go to their owners", shunt.log_tail())
    assert "pool slow: drain-timeout" not in shunt.log_tail()
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
