# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What goes over the control socket, and daemons that misbehave."""

import os
import socket
import threading
import time

import pytest
from conftest import PROGRAM, only_json
from fake_daemon import error

NOBODY = 65534

REQUESTS = [
    (["status"], "Status", {}),
    (["service", "show", "www"], "ServiceList", {"name": "www"}),
    (["service", "add", "www", "tcp", "192.0.2.10:80,443,8000-8099", "--pool", "web"], "ServiceAdd",
     {"name": "www", "protocol": "tcp", "address": "192.0.2.10", "ports": "80,443,8000-8099", "pool": "web"}),
    (["service", "add", "www6", "udp", "[2001:db8::10]:any", "--pool=web", "--hash=source", "--unknown-port=pass",
      "--wait"], "ServiceAdd",
     {"name": "www6", "protocol": "udp", "address": "2001:db8::10", "ports": "any", "pool": "web", "hash": "source",
      "unknown_port": "pass", "wait": True}),
    (["service", "del", "www"], "ServiceDel", {"name": "www"}),
    (["service", "del", "www", "--ignore-missing", "--wait"], "ServiceDel",
     {"name": "www", "ignore_missing": True, "wait": True}),
    (["pool", "show", "web"], "PoolList", {"name": "web"}),
    (["pool", "add", "web"], "PoolAdd", {"name": "web"}),
    (["pool", "add", "web", "--algorithm", "minimal", "--slots", "4099", "--encapsulation", "ipip", "--source",
      "10.0.0.1", "--source", "fd00::1", "--wait"], "PoolAdd",
     {"name": "web", "algorithm": "minimal", "slots": 4099, "encapsulation": "ipip", "source4": "10.0.0.1",
      "source6": "fd00::1", "wait": True}),
    (["pool", "add", "web", "--encapsulation", "gue", "--port", "5555", "--udp6-checksum", "zero", "--source",
      "10.77.3.0/24"], "PoolAdd", {"name": "web", "encapsulation": "gue", "port": 5555, "udp6_checksum": "zero",
                                   "source4": "10.77.3.0/24"}),
    (["pool", "add", "web", "--encapsulation", "l2"], "PoolAdd", {"name": "web", "encapsulation": "l2"}),
    (["pool", "del", "web"], "PoolDel", {"name": "web"}),
    (["pool", "table", "web"], "PoolTable", {"name": "web"}),
    (["pool", "table", "web", "--slots"], "PoolTable", {"name": "web", "owners": True}),
    (["backend", "show", "web/web1"], "BackendList", {"pool": "web", "name": "web1"}),
    (["backend", "add", "web/web1", "10.1.0.11"], "BackendAdd",
     {"pool": "web", "name": "web1", "address": "10.1.0.11"}),
    (["backend", "add", "web/web1", "fd00:1::11", "--weight", "0", "--wait"], "BackendAdd",
     {"pool": "web", "name": "web1", "address": "fd00:1::11", "weight": 0, "wait": True}),
    (["backend", "set", "web/web1", "--weight", "3"], "BackendSet", {"pool": "web", "name": "web1", "weight": 3}),
    (["backend", "del", "web/web1", "--ignore-missing"], "BackendDel",
     {"pool": "web", "name": "web1", "ignore_missing": True}),
    (["counters"], "Counters", {}),
    (["reload", "--wait"], "Reload", {"wait": True}),
]


@pytest.mark.parametrize("args,method,parameters", REQUESTS, ids=lambda value: " ".join(value)[:50]
                         if isinstance(value, list) else "")
def test_a_verb_asks_as_the_protocol_says(ctl, fake, args, method, parameters):
    daemon = fake({method: error("Failed", "no")})
    assert ctl(*args, instance=daemon.instance).returncode == 1
    request = daemon.requests[0]
    assert request["method"] == f"shunt.control.{method}"
    assert request["version"] == 1
    assert request.get("parameters", {}) == parameters
    assert set(request) <= {"method", "version", "parameters"}


def test_a_word_that_is_no_utf_8_reaches_the_daemon_as_text(ctl, fake):
    daemon = fake({"ServiceList": error("NotFound", "there is none")})
    assert ctl("service", "show", os.fsdecode(b"w\xffw"), instance=daemon.instance).returncode == 1
    assert daemon.requests[0]["parameters"] == {"name": "w?w"}


@pytest.mark.parametrize("kind", ["Invalid", "NotFound", "Exists", "Full", "PermissionDenied", "UnknownMethod",
                                  "BadRequest", "VersionMismatch", "Failed", "SomethingNew"])
def test_an_error_of_the_daemon_is_exit_1(ctl, fake, kind):
    entries = [{"level": "error", "line": 3, "column": 7, "text": "weight is \"x\""},
               {"level": "warning", "line": 0, "column": 0, "text": "odd"}]
    daemon = fake({"Reload": error(kind, "the document is wrong", entries)})
    done = ctl("reload", instance=daemon.instance)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "shuntctl: the document is wrong\n3:7: error: weight is \"x\"\nwarning: odd\n"
    assert only_json(ctl("-j", "reload", instance=daemon.instance)) == \
        {"error": kind, "message": "the document is wrong", "entries": entries}


def test_a_sentence_is_not_said_twice(ctl, fake):
    entries = [{"level": "error", "line": 0, "column": 0, "text": "no pool \"x\""}]
    daemon = fake({"PoolDel": error("NotFound", "no pool \"x\"", entries)})
    assert ctl("pool", "del", "x", instance=daemon.instance).stderr == "shuntctl: no pool \"x\"\n"


def unreachable(ctl, daemon, says, *args, kind="Unreachable", within=4.0):
    """Exit 3 with a sentence, soon, in both forms."""
    args = args or ("status", "--check")
    start = time.monotonic()
    done = ctl(*args, "--timeout", "0.5", instance=daemon.instance)
    assert time.monotonic() - start < within
    assert done.returncode == 3
    assert done.stdout == ""
    assert says in done.stderr
    done = ctl("-j", *args, "--timeout", "0.5", instance=daemon.instance)
    assert done.returncode == 3
    failure = only_json(done)
    assert failure["error"] == kind
    assert says in failure["message"]


def test_a_daemon_that_hangs(ctl, fake):
    unreachable(ctl, fake({"Status": None}), "does not answer", kind="NoAnswer")


def test_a_daemon_that_does_not_even_accept(ctl, fake):
    daemon = fake(accept=False)
    filler = socket.socket(socket.AF_UNIX)
    filler.connect(str(daemon.path))
    unreachable(ctl, daemon, "does not answer", kind="NoAnswer")
    filler.close()


def test_the_default_timeout_is_5_seconds(ctl, fake):
    daemon = fake({"Status": None})
    start = time.monotonic()
    assert ctl("status", "--check", instance=daemon.instance).returncode == 3
    assert 4.5 < time.monotonic() - start < 8


def test_a_change_that_got_no_answer_may_have_been_made(ctl, fake):
    daemon = fake({"BackendSet": None})
    done = ctl("backend", "set", "a/b", "--weight", "1", "--timeout", "0.3", instance=daemon.instance)
    assert done.returncode == 3
    assert "may have been made" in done.stderr


@pytest.mark.parametrize("answer,says", [
    (b"", "without an answer"),
    (b"{\"parameters\": {", "without an answer"),
    (b"{\"parameters\": {}}", "without an answer"),
    (b"hello\0", "not JSON"),
    (b"[]\0", "not a JSON object"),
    (b"{}\0", "no \"parameters\""),
    (b"{\"parameters\": []}\0", "no \"parameters\""),
    (b"{\"error\": \"other.Interface.Invalid\", \"parameters\": {}}\0", "none of shunt.control"),
    (b"{\"parameters\": {\"a\": 1, \"a\": 2}}\0", "not JSON"),
    (b"\xff\xfe\0", "not JSON"),
    (b"{\"parameters\": {\"x\": \"\xff\"}}\0", "not JSON"),
], ids=str)
def test_what_is_no_answer_of_shuntd(ctl, fake, answer, says):
    unreachable(ctl, fake({"Status": answer}), says)


@pytest.mark.parametrize("args,method", [
    (["service", "list"], "ServiceList"), (["pool", "list"], "PoolList"), (["backend", "list"], "BackendList"),
    (["counters"], "Counters"), (["pool", "table", "x"], "PoolTable"),
])
def test_an_answer_without_its_list(ctl, fake, args, method):
    for parameters in ({}, {"services": {}, "pools": 1, "backends": None, "counters": "x", "rows": {}}):
        unreachable(ctl, fake({method: parameters}), f"reply to {method} has no", *args)


def test_rows_with_nothing_in_them_are_printed_as_dashes(ctl, fake):
    row = {"name": None, "packets": [], "pool": {"a": 1}}
    daemon = fake({"ServiceList": {"services": [{}, row, 7]}, "PoolList": {"pools": [{}, 7]},
                   "BackendList": {"backends": [{}, row]}, "Counters": {"counters": [{}, 7]}, "Status": {},
                   "PoolTable": {"rows": [{}], "owners": [[0, 2], [5, 1], "x"]}})
    for args in (["service", "list"], ["pool", "list"], ["backend", "list"], ["counters", "--all"], ["status"],
                 ["stats"], ["pool", "table", "x"], ["pool", "table", "x", "--slots"], ["metrics"]):
        done = ctl(*args, instance=daemon.instance)
        assert (done.returncode, done.stderr) == (0, ""), args


def test_an_answer_above_the_limit(ctl, fake):
    daemon = fake()

    def flood():
        conn, _ = daemon.listener.accept()
        conn.recv(65536)
        try:
            conn.sendall(b"{\"parameters\": {\"x\": \"")
            block = b"x" * (1 << 20)
            while True:
                conn.sendall(block)
        except OSError:
            conn.close()
    # The fake's own thread is stopped: this one answers instead.
    daemon.listener.shutdown(socket.SHUT_RDWR)
    daemon.thread.join()
    daemon.listener.close()
    daemon.path.unlink()
    daemon.listener = socket.socket(socket.AF_UNIX)
    daemon.listener.bind(str(daemon.path))
    daemon.listener.listen(1)
    daemon.thread = threading.Thread(target=flood, daemon=True)
    daemon.thread.start()
    done = ctl("status", "--timeout", "20", instance=daemon.instance)
    assert done.returncode == 3
    assert "longer than any reply can be" in done.stderr


def test_a_socket_left_behind_is_no_daemon(ctl, fake):
    daemon = fake()
    daemon.listener.shutdown(socket.SHUT_RDWR)
    daemon.thread.join()
    daemon.listener.close()
    daemon.accept = False
    unreachable(ctl, daemon, "no shuntd listens", kind="NotRunning")


def test_a_socket_that_this_user_may_not_open(fake):
    import subprocess
    daemon = fake({"Status": {}})
    daemon.path.chmod(0o600)
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", PROGRAM, "-j",
                           "--instance", daemon.instance, "status"], check=False, capture_output=True, text=True)
    assert done.returncode == 3
    failure = only_json(done)
    assert failure["error"] == "PermissionDenied"
    assert "run as root" in failure["message"]
