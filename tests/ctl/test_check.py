# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntctl check: the report, on both ways, and nothing of the key."""

import json
import subprocess

from conftest import PROGRAM, only_json
from shuntlab import web

KEY = "00112233445566778899aabbccddeeff"

BAD = """\
version: 1
hash-key: "00112233445566778899aabbccddeeff"
pools:
  - name: web
    table: {size: 65536}
    backends: [{name: web1, address: 10.1.0.11, weight: 70000}]
services:
  - {name: www, address: 192.0.2.10, protocol: tcp, ports: [80], pool: wep}
"""


def good_text():
    return json.dumps({**web(2), "hash-key": KEY})


def test_a_good_document(ctl, tmp_path):
    path = tmp_path / "shunt.yaml"
    path.touch(mode=0o600)
    path.write_text(good_text())
    done = ctl("check", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: ok: 2 services, 1 pools, 2 backends\n"
    assert only_json(ctl("check", path, "-j")) == {"file": str(path), "services": 2, "pools": 1, "backends": 2,
                                                   "entries": []}


def test_standard_input(ctl):
    done = ctl("check", "-", stdin=good_text())
    assert done.returncode == 0
    assert "-: ok" in done.stdout


def test_a_bad_document_is_listed_whole_by_place(ctl, tmp_path):
    path = tmp_path / "shunt.yaml"
    path.touch(mode=0o600)
    path.write_text(BAD)
    done = ctl("check", path)
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{path}:5:19", f"{path}:6:57", f"{path}:8:72"]
    assert all(": error: " in line for line in lines)


def test_the_same_report_in_json(ctl):
    done = ctl("-j", "check", "-", stdin=BAD)
    assert done.returncode == 1
    error = only_json(done)
    assert error["error"] == "Invalid"
    assert [(e["line"], e["column"], e["level"]) for e in error["entries"]] == \
        [(5, 19, "error"), (6, 57, "error"), (8, 72, "error")]
    assert error["message"] == error["entries"][0]["text"]


def test_what_is_no_document_at_all(ctl, tmp_path):
    for text in ("", "\0", "- a\n", "a: b: c\n", "version: 2\n", "{", "\t"):
        done = ctl("check", "-", stdin=text)
        assert done.returncode == 1, text
        assert "error: " in done.stdout
        assert only_json(ctl("check", "-", "-j", stdin=text))["error"] == "Invalid"
    for path in (tmp_path / "none", tmp_path):
        assert ctl("check", path).returncode == 1
        assert only_json(ctl("check", path, "-j"))["error"] == "Invalid"


def test_bytes_that_are_no_utf_8_still_make_good_json(ctl, tmp_path):
    path = tmp_path / "bytes.yaml"
    path.write_bytes(b"version: 1\npools: [{name: \"w\xff\xfeb\"}]\n")
    done = ctl("check", path, "-j")
    assert done.returncode == 1
    assert only_json(done)["error"] == "Invalid"


def test_the_key_is_never_shown(ctl):
    for text in (good_text(), BAD, BAD.replace("ff\"", "f\""), BAD.replace("hash-key", "hash-kez")):
        for args in (["check", "-"], ["check", "-", "-j"]):
            done = ctl(*args, stdin=text)
            assert KEY[:-1] not in done.stdout + done.stderr


def test_a_key_that_others_may_read_is_not_to_be_made_anew(tmp_path):
    key, document = tmp_path / "hash.key", tmp_path / "document.yaml"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    document.write_text(json.dumps({**web(2), "hash-key-file": str(key)}))
    tmp_path.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", PROGRAM, "check", "-"], check=False, text=True,
                          stdin=document.open(), capture_output=True)
    assert done.returncode == 1
    assert f"cannot read the key file {key} (Permission denied): run this as root or as its owner" in done.stdout
