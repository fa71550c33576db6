# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a change would do, the policy, changes that wait to be confirmed, and the way back."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from rawcontrol import ask, error_of, in_force, pool
from shuntlab import BUILD, UNDER, Shunt, backend, web


def document(shunt, text=None, **members):
    made = {**(text or web(3)), **members}
    if "hash-key" not in made:
        made = {**made, "hash-key-file": str(shunt.dir / "hash.key")}
    return json.dumps(made)


def apply(shunt, text, *options):
    return shunt.ctl("apply", "-", *options, stdin=text)


def plan(shunt, text):
    done = shunt.ctl("-j", "plan", "-", "--exit-code", stdin=text)
    return done.returncode, json.loads(done.stdout)


def weights(shunt):
    return [b["weight"] for b in shunt.json("backend", "list")["backends"]]


def test_plan_says_what_apply_does(running):
    text = document(running, web(4, weights=[1, 2, 1, 1]))
    before = in_force(running)
    code, planned = plan(running, text)
    assert code == 5 and planned["changed"] and planned["verdict"] == "allowed"
    assert {(c["change"], c["kind"], c["name"]) for c in planned["changes"]} == {
        ("added", "backend", "web/web3"), ("added", "backend", "web/web4"), ("changed", "backend", "web/web2")}
    assert in_force(running) == before, "a plan changes nothing"
    applied = running.ctl("-j", "apply", "-", stdin=text)
    assert applied.returncode == 0
    row, = planned["pools"]
    assert row["minimum"] <= row["moved"] <= row["slots"] == 4099
    assert (row["backends_before"], row["backends_after"], row["leaving"]) == (2, 4, 0)
    assert row["connections"] == 0, "slots at rest record none"
    assert pool(running)["digest"] == row["digest"] and pool(running)["epoch"] == row["epoch"]
    assert plan(running, text) == (0, {"changed": False, "verdict": "allowed", "revision": 2, "changes": [],
                                       "pools": [], "entries": []})


def test_moved_and_minimum_are_those_of_the_tables(running):
    def owners():
        table = ask(running, "PoolTable", name="web", owners=True)
        return [table["rows"][row]["backend"] for row, run in table["owners"] for _ in range(run)]

    before = owners()
    code, planned = plan(running, document(running, web(3)))
    assert code == 5
    assert apply(running, document(running, web(3))).returncode == 0
    after = owners()
    moved = sum(a != b for a, b in zip(before, after))
    kept = sum(min(before.count(b), after.count(b)) for b in set(before))
    assert planned["pools"][0]["moved"] == moved
    assert planned["pools"][0]["minimum"] == 4099 - kept
    epochs = ask(running, "EpochList", pool="web")["epochs"]
    assert [(e["epoch"], e["moved"], e["minimum"]) for e in epochs][1:] == [(2, moved, 4099 - kept)]
    diff = ask(running, "EpochDiff", **{"pool": "web", "from": 1, "to": 2})
    assert (diff["moved"], diff["minimum"]) == (moved, 4099 - kept)


VERBS = [
    ("ServiceAdd", {"name": "x", "address": "192.0.2.77", "protocol": "tcp", "ports": "80", "pool": "web"}),
    ("ServiceDel", {"name": "www"}),
    ("PoolAdd", {"name": "x"}),
    ("BackendAdd", {"pool": "web", "name": "x", "address": "10.1.0.20"}),
    ("BackendDel", {"pool": "web", "name": "web1", "now": True}),
    ("BackendSet", {"pool": "web", "name": "web1", "weight": 9}),
]


@pytest.mark.parametrize("method,parameters", VERBS, ids=[v[0] for v in VERBS])
def test_a_verb_can_be_planned(running, method, parameters):
    before, revision = in_force(running), ask(running, "Status")["revision"]
    planned = ask(running, method, plan=True, **parameters)
    assert len(planned["changes"]) == 1 and planned["changed"]
    assert in_force(running) == before and ask(running, "Status")["revision"] == revision
    assert ask(running, method, reason="as planned", **parameters) == {}
    made = ask(running, "RevisionList")["revisions"][-1]
    assert made["revision"] == revision + 1 and made["uid"] == os.getuid() and made["pid"] > 0
    assert made["why"].startswith(method) and made["why"].endswith(": as planned")


# ---- policy ----

POLICY = [
    ({"max-moved": "10%"}, ("BackendDel", {"pool": "web", "name": "web1", "now": True}), "max-moved is 10%"),
    ({"max-leaving": 0}, ("BackendSet", {"pool": "web", "name": "web1", "weight": 0}), "max-leaving is 0"),
    ({"max-leaving": 1}, ("ServiceDel", {"name": "www"}), None),
    ({"max-moved": "60%", "max-leaving": 1}, ("BackendDel", {"pool": "web", "name": "web1", "now": True}), None),
]


@pytest.mark.parametrize("policy,verb,says", POLICY, ids=[str(p[0]) for p in POLICY])
def test_policy(shunt, policy, verb, says):
    shunt.write({**web(2), "policy": policy})
    shunt.start()
    before = in_force(shunt)
    method, parameters = verb
    if not says:
        assert ask(shunt, method, **parameters) == {}
        return
    error, message = error_of(shunt, method, **parameters)
    assert error == "Policy" and says in message
    assert in_force(shunt) == before
    assert ask(shunt, method, plan=True, **parameters)["verdict"] == "refused"
    assert ask(shunt, method, force=True, **parameters) == {}
    assert ask(shunt, "RevisionList")["revisions"][-1]["forced"]
    assert ask(shunt, "EpochList", pool="web")["epochs"][-1]["forced"]


def test_a_pool_does_not_become_empty(shunt):
    shunt.write({**web(1), "policy": {}})
    shunt.start()
    done = shunt.ctl("backend", "del", "web/web1")
    assert done.returncode == 4 and "pool web becomes empty" in done.stderr
    assert shunt.ctl("backend", "del", "web/web1", "--plan").returncode == 4
    assert shunt.ctl("backend", "del", "web/web1", "--force").returncode == 0


def test_a_document_cannot_bring_its_own_permission(shunt):
    shunt.write({**web(4), "policy": {"max-leaving": 1}})
    shunt.start()
    loose = document(shunt, web(1), policy={"max-leaving": 9})
    assert apply(shunt, loose).returncode == 4
    assert plan(shunt, loose)[0] == 4
    assert apply(shunt, document(shunt, web(4), policy={"max-leaving": 9})).returncode == 0
    assert apply(shunt, loose).returncode == 0


REHASHED = [
    ({"hash-key": "0" * 32}, "the hash key"),
    ({"services": [{**one, "hash": "source"} if one["name"] == "www" else one for one in web(3)["services"]]},
     "the hash of service www"),
]


@pytest.mark.parametrize("members,what", REHASHED, ids=["key", "mode"])
def test_other_slots_for_all_flows_are_a_movement_too(running, members, what):
    """No table changes, and yet no connection stays where it was."""
    text = document(running, web(2), **members)
    planned = running.ctl("plan", "-", stdin=text)
    assert planned.returncode == 0 and f"warning: {what} changes: nearly all of its flows get another slot" in planned.stderr
    guarded = {"policy": {"max-moved": "50%"}}
    assert apply(running, document(running, web(2), **guarded)).returncode == 0
    before, text = in_force(running), document(running, web(2), **guarded, **members)
    assert running.ctl("plan", "-", stdin=text).returncode == 4
    done = apply(running, text)
    assert done.returncode == 4 and f"policy: {what} changes" in done.stderr and in_force(running) == before
    assert apply(running, text, "--force").returncode == 0
    assert ask(running, "RevisionList")["revisions"][-1]["forced"]


def test_another_size_is_an_interruption_and_said_so(running):
    planned = running.ctl("plan", "-", stdin=document(running, web(2, slots=251)))
    assert "pool web: in a table of another size nearly all flows get another slot" in planned.stderr
    added = web(2)
    added["pools"].append({**added["pools"][0], "name": "new"})
    assert not running.ctl("plan", "-", stdin=document(running, added)).stderr


# ---- confirm and undo ----

def test_what_is_not_confirmed_is_taken_back(running):
    before = pool(running)["digest"]
    time_left = "20s" if UNDER else "4s"  # enough for the few requests before it is over
    done = apply(running, document(running, web(5)), "--confirm-within", time_left)
    assert done.returncode == 0 and f"taken back in {time_left}" in done.stdout
    assert pool(running)["digest"] != before
    assert ask(running, "Status")["pending"]["back_to"] == 1
    assert error_of(running, "BackendSet", pool="web", name="web1", weight=2)[0] == "Pending"
    running.wait(lambda: pool(running)["digest"] == before, "it is taken back", timeout=20)
    assert ask(running, "Status")["pending"] is None
    assert pool(running)["epoch"] == 3, "an old table comes back as a new epoch"
    assert ask(running, "BackendSet", pool="web", name="web1", weight=2) == {}


def test_a_reload_that_had_to_wait_is_not_forgotten(running):
    assert apply(running, document(running, web(5)), "--confirm-within", "1h").returncode == 0
    running.write(web(4))
    done = running.ctl("reload")
    assert done.returncode == 1 and "waits to be confirmed" in done.stderr
    assert running.ctl("undo").returncode == 0
    problem, = ask(running, "Status")["problems"]
    assert "was not read again, because another change waited" in problem
    assert running.ctl("reload").returncode == 0 and ask(running, "Status")["healthy"]


def test_confirm_lets_it_stand(running):
    assert apply(running, document(running, web(5)), "--confirm-within", "1s").returncode == 0
    assert running.ctl("confirm").returncode == 0
    time.sleep(1.5)
    assert len(weights(running)) == 5
    assert running.ctl("confirm").returncode == 1
    running.kill()
    running.process = None
    running.start()
    time.sleep(1.5)
    assert len(weights(running)) == 5


def test_undo_takes_it_back_at_once(running):
    assert apply(running, document(running, web(5)), "--confirm-within", "1h").returncode == 0
    done = running.ctl("undo")
    assert done.returncode == 0 and "revision 3" in done.stdout
    assert len(weights(running)) == 2
    assert running.ctl("undo").returncode == 1


@pytest.mark.parametrize("pause", [0, 3])
def test_taken_back_in_time_after_a_kill(running, pause):
    """Down for less, or more, than the time that is left."""
    assert apply(running, document(running, web(5)), "--confirm-within", "3s").returncode == 0
    running.kill()
    running.process = None
    time.sleep(pause)
    running.start()
    running.wait(lambda: len(weights(running)) == 2, "it is taken back", timeout=5)


def test_a_first_document_cannot_wait(shunt):
    shunt.config.unlink()
    with open(shunt.log, "ab") as log, subprocess.Popen(
            shunt.argv([BUILD / "shuntd", "--instance", shunt.instance, "--state-dir", shunt.state]),
            stdout=log, stderr=log) as shunt.process:
        shunt.wait(lambda: shunt.ctl("status").returncode != 3, "shuntd answers")
        done = apply(shunt, document(shunt), "--confirm-within", "1m")
        assert done.returncode == 1 and "nothing to go back to" in done.stderr
        assert apply(shunt, document(shunt)).returncode == 0
        shunt.stop()


# ---- the document file and apply ----

def test_applying_the_daemons_own_file_counts_as_applying_it(running):
    running.write(web(4))
    assert running.ctl("apply", str(running.config)).returncode == 0
    assert running.ctl("backend", "set", "web/web1", "--weight", "5").returncode == 0
    running.kill()
    running.process = None
    running.start()
    assert weights(running) == [5, 1, 1, 1], "the file is not applied again"


def test_a_wrong_document_is_refused_with_places(running):
    before = in_force(running)
    done = running.ctl("apply", "-", stdin="version: 1\nhash-key: keep\npools: []\nservices: [{name: a}]\n")
    assert done.returncode == 1 and "4:" in done.stderr and in_force(running) == before


def test_a_document_above_a_mebibyte(running):
    text = document(running, web(3)) + "\n# " + "x" * (3 << 20) + "\n"
    assert apply(running, text).returncode == 0
    assert len(weights(running)) == 3


# ---- export, keep, revisions ----

def test_export_changes_nothing_and_has_no_key(shunt):
    shunt.write({**web(3), "hash-key": shunt.key, "policy": {"max-moved": "40%"}})
    shunt.config.chmod(0o600)
    shunt.start()
    for exported in (shunt.ctl("export").stdout, shunt.ctl("-j", "export").stdout):
        assert shunt.key not in exported and "keep" in exported
        assert plan(shunt, exported)[0] == 0
        assert "Nothing to do" in apply(shunt, exported).stdout


def test_keep_needs_a_key_on_a_fresh_instance(running):
    exported = json.loads(running.ctl("-j", "export").stdout)
    exported.pop("hash-key-file")
    exported["hash-key"] = "keep"
    with Shunt() as fresh:
        fresh.write(exported)
        fresh.start(wait=False)
        assert fresh.process.wait(10) == 1 and "--hash-key-file" in fresh.log_tail()
        fresh.process = None
        fresh.start("--hash-key-file", str(running.dir / "hash.key"))
        assert fresh.ctl("verify", "-", stdin=running.ctl("-j", "digests").stdout).returncode == 0


def test_verify_finds_what_differs(running):
    theirs = running.json("digests")
    theirs["key"] = "0" * 16
    theirs["pools"][0]["digest"] = "1" * 16
    theirs["pools"].append({"pool": "other", "digest": "2" * 16})
    done = running.ctl("-j", "verify", "-", stdin=json.dumps(theirs))
    assert done.returncode == 1
    assert [d["what"] for d in json.loads(done.stdout)["differences"]] == ["hash key", "pool web", "pool other"]


def test_a_document_that_is_in_force_makes_no_revision(running):
    """Whoever gives it: apply, reload, SIGHUP. One of other bytes that says the same is noted, once."""
    def state():
        return running.json("revision", "list"), ask(running, "Status")["revision"], in_force(running)

    before = state()
    for _ in range(2):
        done = running.ctl("reload")
        assert (done.returncode, done.stdout, done.stderr) == (
            0, "Nothing to do: the document says what is in force already.\n", "")
        assert running.json("reload") == {"changed": False, "warnings": []}
        assert running.ctl("apply", str(running.config)).stdout == "Nothing to do.\n"
        assert running.ctl("plan", str(running.config), "--exit-code").returncode == 0
        assert running.ctl("revision", "rollback", str(before[1])).stdout == "Nothing to do.\n"
        running.process.send_signal(signal.SIGHUP)
        running.wait(lambda: running.log_tail().count("says what is in force already") % 3 == 0, "SIGHUP is dealt with")
    assert state() == before
    running.config.write_text(running.config.read_text() + "\n")
    for _ in range(2):
        assert running.json("reload")["changed"] is False
        assert ask(running, "Status")["revision"] == before[1] + 1
    running.kill()
    running.start()
    assert ask(running, "Status")["revision"] == before[1] + 1, "a start finds the file that it knows"
    assert in_force(running) == before[2]
    ask(running, "BackendSet", pool="web", name="web1", weight=2)
    assert running.json("reload")["changed"] is True
    assert ask(running, "Status")["revision"] == before[1] + 3


def test_rollback_makes_new_epochs(running):
    digests = [pool(running)["digest"]]
    for weight in (2, 3):
        ask(running, "BackendSet", pool="web", name="web1", weight=weight)
        digests.append(pool(running)["digest"])
    assert running.ctl("revision", "rollback", "1", "--plan", "--exit-code").returncode == 5
    assert running.ctl("revision", "rollback", "1", "--reason", "worse").returncode == 0
    assert (pool(running)["digest"], pool(running)["epoch"]) == (digests[0], 4)
    revisions = ask(running, "RevisionList")["revisions"]
    assert [r["state"] for r in revisions] == ["kept", "kept", "kept", "in force"]
    assert revisions[-1]["why"] == "RevisionRollback to 1: worse"
    diff = ask(running, "RevisionDiff", **{"from": 1, "to": 3})["changes"]
    assert diff == [{"change": "changed", "kind": "backend", "name": "web/web1",
                     "members": [{"member": "weight", "from": 1, "to": 3}]}]
    assert error_of(running, "RevisionRollback", revision=99)[0] == "NotFound"


def test_a_damaged_revision_is_refused_and_nothing_else(running):
    ask(running, "BackendSet", pool="web", name="web1", weight=2)
    kept = running.state / "revisions" / "1.json"
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 4
    kept.write_bytes(data)
    before = in_force(running)
    assert "damaged" in error_of(running, "RevisionRollback", revision=1)[1]
    assert in_force(running) == before
    assert ask(running, "BackendSet", pool="web", name="web1", weight=3) == {}


def test_history_survives_a_kill(running):
    for weight in range(2, 6):
        ask(running, "BackendSet", pool="web", name="web1", weight=weight)
    before = ask(running, "EpochList"), ask(running, "RevisionList")
    running.kill()
    running.process = None
    running.start()
    assert (ask(running, "EpochList"), ask(running, "RevisionList")) == before


def test_a_damaged_history_is_set_aside(running):
    ask(running, "BackendSet", pool="web", name="web1", weight=2)
    running.stop()
    running.process = None
    path = running.state / "history.jsonl"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    running.start()
    assert (running.state / "history.jsonl.damaged").exists() and "is damaged" in running.log_tail()
    assert ask(running, "EpochList", pool="web")["epochs"][-1]["why"] == "found in force at start"
    assert ask(running, "BackendSet", pool="web", name="web1", weight=3) == {}


def test_minimal_is_warned_of(shunt):
    made = web(3)
    made["pools"][0]["table"]["algorithm"] = "minimal"
    shunt.write(made)
    shunt.start()
    planned = ask(shunt, "BackendDel", pool="web", name="web1", plan=True)
    assert any("shuntctl verify" in e["text"] and e["level"] == "warning" for e in planned["entries"])


def test_a_slow_start_is_warned_of(shunt):
    made = web(2)
    made["pools"][0]["slow-start"] = "1h"
    shunt.write(made)
    shunt.start()
    assert not ask(shunt, "BackendSet", pool="web", name="web1", weight=2, plan=True)["entries"]
    ask(shunt, "BackendAdd", pool="web", name="web3", address=backend(3))
    planned = shunt.ctl("backend", "set", "web/web1", "--weight", "2", "--plan")
    assert planned.returncode == 0
    assert "warning: pool web: a slow start is under way: balancers on which it began at another time" in planned.stderr


@pytest.mark.skipif(bool(UNDER), reason="hooks need pidfd_open(), which valgrind does not know")
def test_health_verdicts_of_this_host_are_warned_of(shunt):
    made = web(3)
    made["pools"][0]["health"] = {"type": "exec", "hook": "ask", "interval": "500ms", "timeout": "400ms", "fall": 1}
    shunt.write(made)
    with tempfile.TemporaryDirectory(prefix="shunt-hooks-") as name:
        hook = Path(name) / "ask"
        hook.write_text("#!/bin/sh\n[ $SHUNT_BACKEND != web1 ]\n")
        hook.chmod(0o755)
        Path(name).chmod(0o755)
        shunt.start("--hooks-dir", name)
        shunt.wait(lambda: shunt.json("backend", "show", "web/web1")["state"] == "down", "one is down")
        planned = shunt.ctl("backend", "set", "web/web2", "--weight", "2", "--plan")
        assert "1 of its backends are taken out by the health checks of this host: balancers whose checks" in planned.stderr
        shunt.stop()


def test_verify_says_why_it_cannot_compare(running):
    """With an exit status of its own: a script that compares must not take an empty file for a difference."""
    words = '"key": "0123456789abcdef", "services": "0123456789abcdef"'
    for name, text, says in [("none", None, "cannot read"), ("empty", "", "expected near end of file"),
                             ("text", "hello", "expected near 'hello'"), ("other", "{}", "is not what"),
                             ("list", "[]", "is not what"), ("half", '{"pools": []}', "is not what"),
                             ("services", '{"pools": [], "key": "0123456789abcdef"}', "is not what"),
                             ("row", f'{{{words}, "pools": [1]}}', "is not what"),
                             ("nameless", f'{{{words}, "pools": [{{"digest": "1"}}]}}', "is not what")]:
        path = running.dir / name
        if text is not None:
            path.write_text(text)
        done = running.ctl("verify", str(path))
        assert done.returncode == 6 and says in done.stderr and str(path) in done.stderr and not done.stdout, done
    done = running.ctl("-j", "verify", "-", stdin="")
    assert done.returncode == 6 and json.loads(done.stdout)["error"] == "Invalid", done
    path = running.dir / "whole"
    path.write_text(f'{{{words}, "pools": []}}')
    assert running.ctl("verify", str(path)).returncode == 1
