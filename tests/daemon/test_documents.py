# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Documents through the running daemon: the bad ones change nothing, the good ones are in force."""

import stat
from pathlib import Path

import pytest

from rawcontrol import Connection, ask, in_force
from shuntlab import RUN, TOP, Shunt, backend, web

DOCUMENTS = TOP / "tests/documents"
BAD = sorted((DOCUMENTS / "bad").glob("*.yaml"))
GOOD = sorted((DOCUMENTS / "good").iterdir()) if (DOCUMENTS / "good").is_dir() else []


@pytest.fixture(scope="module")
def host():
    """The host that these documents are checked for: tests/unit/test_document.c says the same."""
    with Shunt() as shunt:
        shunt.sh("ip address add 192.0.2.200/32 dev eth0; ip address add 192.0.2.201/32 dev lo; "
                 "ip address add 2001:db8::200/128 dev eth0 nodad")
        shunt.write(web(2))
        shunt.start("--log-level", "debug")
        yield shunt


def reload(shunt):
    with Connection(shunt) as connection:
        return connection.ask("Reload")


def test_there_are_enough_of_them():
    assert len(BAD) >= 50 and len(GOOD) >= 5


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_document_changes_nothing(host, path):
    before = in_force(host), ask(host, "ServiceList"), ask(host, "BackendList"), ask(host, "Status")["revision"]
    host.config.write_bytes(path.read_bytes())
    reply = reload(host)
    assert reply["error"] == "shunt.control.Invalid", reply
    errors = [e for e in reply["parameters"]["entries"] if e["level"] == "error"]
    assert errors and all(e["line"] > 0 and e["column"] > 0 and "\n" not in e["text"] for e in errors), reply
    after = in_force(host), ask(host, "ServiceList"), ask(host, "BackendList"), ask(host, "Status")["revision"]
    assert after == before
    problems = ask(host, "Status")["problems"]
    assert len(problems) == 1 and str(host.config) in problems[0]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_document_is_applied(host, path):
    revision = ask(host, "Status")["revision"]
    host.config.write_bytes(path.read_bytes())
    reply = reload(host)
    assert "error" not in reply, reply
    assert ask(host, "Status")["revision"] > revision
    assert not any(str(host.config) in problem for problem in ask(host, "Status")["problems"])


def test_state_of_every_good_document_survives(host):
    for path in GOOD:
        host.config.write_bytes(path.read_bytes())
        assert "error" not in reload(host)
        before = in_force(host), ask(host, "ServiceList"), ask(host, "Status")["revision"]
        host.kill()
        host.start()
        assert (in_force(host), ask(host, "ServiceList"), ask(host, "Status")["revision"]) == before, path.name


# ---- the key ----

def forms(key):
    return [key.encode(), key.upper().encode(), bytes.fromhex(key)]


def everything_said(shunt):
    """Replies of every method, errors too, what shuntctl prints, and the log."""
    said = []
    with Connection(shunt) as connection:
        for method, parameters in [("Status", {}), ("ServiceList", {}), ("PoolList", {}), ("BackendList", {}),
                                   ("PoolTable", {"name": "web", "owners": True}), ("Counters", {}), ("Reload", {}),
                                   ("BackendSet", {"pool": "web", "name": "web1", "weight": 3}),
                                   ("BackendAdd", {"pool": "web", "name": "web1", "address": backend(3)}),
                                   ("ServiceAdd", {"name": "x", "address": "192.0.2.10", "protocol": "tcp",
                                                   "ports": "80", "pool": "web"})]:
            said.append(repr(connection.ask(method, **parameters)))
    for words in [["status"], ["service", "list"], ["pool", "list"], ["backend", "list"], ["metrics"], ["counters"],
                  ["stats"], ["check", shunt.config], ["service", "show", "www"], ["pool", "show", "web"]]:
        for mode in ([], ["-j"]):
            done = shunt.ctl(*mode, *words)
            said.append(done.stdout + done.stderr)
    said.append(shunt.log.read_text())
    return said


@pytest.mark.parametrize("inline", [False, True], ids=["key file", "inline key"])
def test_key_is_shown_nowhere(shunt, inline):
    document = web(2)
    if inline:
        document["hash-key"] = shunt.key
    shunt.write(document)
    shunt.config.chmod(0o600)
    shunt.start("--log-level", "debug")
    said = everything_said(shunt)
    # A document that is wrong right beside the key must not be quoted with it.
    for wrong in ("", "x", " x: y"):
        shunt.config.write_text(f'version: 1\nhash-key: "{shunt.key}{wrong}"\nhash-key: {shunt.key}\npools: [{{\n')
        said.append(repr(reload(shunt)))
        said.append(repr(ask(shunt, "Status")))
    shunt.kill()
    shunt.start("--log-level", "debug")
    said += everything_said(shunt)
    for text in said:
        for form in forms(shunt.key):
            assert form not in text.encode(), text


def test_key_is_in_no_file_that_others_can_read(shunt):
    document = web(2)
    document["hash-key"] = shunt.key
    shunt.write(document)
    shunt.config.chmod(0o600)
    shunt.start()
    assert stat.S_IMODE(shunt.state.stat().st_mode) & 0o077 == 0
    holders = 0
    for folder in (shunt.dir, shunt.state, RUN / shunt.instance):
        for path in Path(folder).rglob("*"):
            if path.is_file() and any(form in path.read_bytes() for form in forms(shunt.key)):
                holders += 1
                assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert holders >= 2, "the document, the key file or the state should hold it: else this test sees nothing"


def test_cmdline_and_environment_hold_no_key(running):
    process = Path(f"/proc/{running.process.pid}")
    for what in ("cmdline", "environ", "comm"):
        assert running.key.encode() not in (process / what).read_bytes()
