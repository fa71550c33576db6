# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What needs no daemon: the command line, help, exit codes, keygen."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, only_json
from shuntlab import TOP

VERBS = {
    "": ["status", "service", "pool", "backend", "stats", "counters", "explain", "flow", "metrics", "plan", "apply",
         "confirm", "undo", "diff", "export", "revision", "epoch", "digests", "verify", "self", "reload", "simulate",
         "check", "keygen"],
    "service": ["list", "show", "add", "del"],
    "pool": ["list", "show", "table", "add", "del"],
    "backend": ["list", "show", "add", "set", "drain", "undrain", "maintenance", "activate", "del"],
    "revision": ["list", "show", "diff", "rollback"],
    "epoch": ["list", "show", "diff"],
    "flow": ["list", "show"],
    "self": ["drain", "undrain"],
}
LEAVES = [[verb] for verb in VERBS[""] if verb not in VERBS] + \
         [[group, verb] for group, verbs in VERBS.items() if group for verb in verbs]

USAGE_ERRORS = [
    ([], "a verb is missing"),
    (["service"], "a verb is missing"),
    (["servcie", "list"], 'did you mean "service"'),
    (["backend", "lst"], 'did you mean "list"'),
    (["pool", "frobnicate"], '"frobnicate" is no verb of shuntctl pool'),
    (["status", "extra"], '"extra" is one word too many'),
    (["status", "--chekc"], "--chekc"),
    (["--bogus", "status"], "--bogus"),
    (["status", "--timeout"], "--timeout"),
    (["status", "--timeout", "0"], "--timeout 0"),
    (["status", "--timeout", "-1"], "--timeout -1"),
    (["status", "--timeout", "5x"], "--timeout 5x"),
    (["status", "--timeout", "nan"], "--timeout nan"),
    (["status", "--timeout", "1e9"], "--timeout 1e9"),
    (["status", "--instance", "../../etc"], "../../etc"),
    (["status", "--instance", ""], "instance"),
    (["status", "--instance", "a" * 32], "a" * 32),
    (["status", "--instance", "Upper"], "Upper"),
    (["service", "show"], "NAME is missing"),
    (["service", "show", "a", "b"], '"b" is one word too many'),
    (["service", "list", "www"], '"www" is one word too many'),
    (["service", "add", "www", "tcp"], "ADDRESS:PORTS is missing"),
    (["service", "add", "www", "tcp", "192.0.2.10:80"], "--pool"),
    (["service", "add", "www", "tcp", "192.0.2.10", "--pool", "web"], '"192.0.2.10": write ADDRESS:PORTS'),
    (["service", "add", "www", "tcp", "192.0.2.10:", "--pool", "web"], "write ADDRESS:PORTS"),
    (["service", "add", "www", "tcp", ":80", "--pool", "web"], "write ADDRESS:PORTS"),
    (["service", "add", "www", "tcp", "[]:80", "--pool", "web"], "write ADDRESS:PORTS"),
    (["service", "add", "www", "tcp", "", "--pool", "web"], "write ADDRESS:PORTS"),
    (["service", "add", "www", "tcp", "2001:db8::10:443", "--pool", "web"], "in brackets"),
    (["service", "add", "www", "tcp", "2001:db8::10", "--pool", "web"], "in brackets"),
    (["service", "add", "www", "tcp", "[2001:db8::10]", "--pool", "web"], "write ADDRESS:PORTS"),
    (["service", "add", "www", "tcp", "[2001:db8::10:443", "--pool", "web"], "write ADDRESS:PORTS"),
    (["backend", "add", "web", "10.1.0.11"], '"web" is not of the form POOL/BACKEND'),
    (["backend", "add", "web/web1"], "ADDRESS is missing"),
    (["backend", "add", "/web1", "10.1.0.11"], "POOL/BACKEND"),
    (["backend", "add", "web/", "10.1.0.11"], "POOL/BACKEND"),
    (["backend", "show", "web/a/b"], "POOL/BACKEND"),
    (["backend", "del", "web1"], "POOL/BACKEND"),
    (["backend", "set", "web/web1"], "give --weight"),
    (["backend", "set", "web/web1", "--weight", "x"], "--weight x"),
    (["backend", "set", "web/web1", "--weight", "-1"], "--weight -1"),
    (["backend", "set", "web/web1", "--weight", "1.5"], "--weight 1.5"),
    (["backend", "set", "web/web1", "--weight", ""], "--weight"),
    (["backend", "set", "web/web1", "--weight", " 3"], "--weight"),
    (["backend", "set", "web/web1", "--weight", "0x10"], "--weight 0x10"),
    (["backend", "set", "web/web1", "--weight", "9" * 20], "--weight 99"),
    (["pool", "add", "web", "--slots", "many"], "--slots many"),
    (["pool", "add", "web", "--balance", "0.9"], "--balance 0.9: give a number from 1 to 100"),
    (["pool", "add", "web", "--balance", "1.05x"], "--balance 1.05x"),
    (["pool", "add", "web", "--vnodes", "some"], "--vnodes some"),
    (["pool", "add", "web", "--port", "0"], "give a UDP port from 1 to 65535"),
    (["pool", "add", "web", "--port", "65536"], "give a UDP port from 1 to 65535"),
    (["pool", "add", "web", "--source", "10.0.0.1", "--source", "10.0.0.2"], "there is an IPv4 source already"),
    (["pool", "add", "web", "--source", "fd00::1", "--source", "fd00::2"], "there is an IPv6 source already"),
    (["pool", "table"], "NAME is missing"),
    (["stats", "5"], '"5" is one word too many'),
    (["stats", "--watch", "0"], "--watch 0"),
    (["stats", "--watch=fast"], "--watch fast"),
    (["stats", "--watch", "1", "2"], '"2" is one word too many'),
    (["check"], "FILE is missing"),
    (["flow"], "a verb is missing"),
    (["flow", "list", "x"], '"x" is one word too many'),
    (["flow", "list", "--state", "dead"], "give half-open, adopted, live, closing or stale"),
    (["flow", "list", "--limit", "0"], "--limit 0: give a number from 1 to 1000000"),
    (["flow", "list", "--limit", "1000001"], "--limit 1000001"),
    (["flow", "list", "--limit", "many"], "--limit many"),
    (["flow", "show"], "PROTOCOL is missing"),
    (["flow", "show", "tcp", "203.0.113.7:1"], "DESTINATION is missing"),
    (["flow", "show", "icmp", "203.0.113.7", "192.0.2.10"], '"icmp" is no protocol here: give tcp or udp'),
    (["flow", "show", "tcp", "203.0.113.7", "192.0.2.10:80"], '"203.0.113.7": give ADDRESS:PORT'),
    (["flow", "show", "udp", "[2001:db8::1]:1", "192.0.2.10:80"], "of two families"),
    (["explain"], "or --packet FILE"),
    (["explain", "tcp"], "SOURCE is missing"),
    (["explain", "tcp", "203.0.113.7:1"], "DESTINATION is missing"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "x"], '"x" is one word too many'),
    (["explain", "sctp", "203.0.113.7:1", "192.0.2.10:80"], '"sctp" is no protocol here'),
    (["explain", "tcp", "203.0.113.7", "192.0.2.10:80"], '"203.0.113.7": give ADDRESS:PORT'),
    (["explain", "tcp", "203.0.113.7:0", "192.0.2.10:80"], "give ADDRESS:PORT"),
    (["explain", "tcp", "203.0.113.7:65536", "192.0.2.10:80"], "give ADDRESS:PORT"),
    (["explain", "tcp", "203.0.113.7:any", "192.0.2.10:80"], "give ADDRESS:PORT"),
    (["explain", "udp", "2001:db8::1:1", "[2001:db8::10]:80"], "in brackets"),
    (["explain", "udp", "[2001:db8::1]:1", "192.0.2.10:80"], "of two families"),
    (["explain", "icmp", "203.0.113.7:1", "192.0.2.10"], "an address alone"),
    (["explain", "icmp", "host", "192.0.2.10"], "an address alone"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--length", "39"], "the headers alone are 40 bytes"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--length", "65536"], "--length 65536"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--ttl", "256"], "--ttl 256"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--ttl", "x"], "--ttl x"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--vlan", "4096"], "--vlan 4096"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", *["--vlan", "1"] * 4], "at most 3 tags"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--index", "1"], "give --packet FILE"),
    (["explain", "--packet", "x", "--index", "0"], "--index 0"),
    (["explain", "--packet", "x", "--ttl", "3"], "--packet gives one as it is"),
    (["explain", "tcp", "203.0.113.7:1", "192.0.2.10:80", "--packet", "x", "--index", "1"], "leave one out"),
    (["keygen", "a", "b"], '"b" is one word too many'),
]


def name(case):
    return " ".join(case[0])[:60] or "nothing"


@pytest.mark.parametrize("args,says", USAGE_ERRORS, ids=map(name, USAGE_ERRORS))
def test_a_wrong_command_line_is_exit_2_and_one_sentence(ctl, args, says):
    done = ctl(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert re.fullmatch(r"shuntctl: [^\n]+\n", done.stderr)


@pytest.mark.parametrize("args,says", USAGE_ERRORS, ids=map(name, USAGE_ERRORS))
def test_with_json_it_is_json_wherever_the_option_stands(ctl, args, says):
    for line in (["-j", *args], [*args, "--json"]):
        done = ctl(*line)
        assert done.returncode == 2
        error = only_json(done)
        assert error["error"] == "Usage"
        assert says in error["message"]


DIGESTS = Path(__file__).with_name("digests.json")
REACHES_FOR_THE_DAEMON = [
    ["status"], ["status", "--check"], ["service", "list"], ["service", "show", "a"],
    ["service", "add", "a", "tcp", "192.0.2.1:80", "--pool", "p"], ["service", "del", "a"], ["pool", "list"],
    ["pool", "show", "a"], ["pool", "table", "a"], ["pool", "add", "a"], ["pool", "del", "a", "--ignore-missing"],
    ["backend", "list"], ["backend", "show", "a/b"], ["backend", "add", "a/b", "10.0.0.1"],
    ["backend", "set", "a/b", "--weight", "1"], ["backend", "drain", "a/b"], ["backend", "undrain", "a/b"],
    ["backend", "maintenance", "a/b"], ["backend", "activate", "a/b"],
    ["backend", "del", "a/b"], ["stats"], ["stats", "--watch"],
    ["counters"], ["metrics"], ["reload"], ["confirm"], ["undo"], ["export"], ["digests"], ["epoch", "list"],
    ["epoch", "show", "web", "1"], ["epoch", "diff", "web", "1", "2"], ["revision", "list"], ["revision", "show", "1"],
    ["revision", "diff", "1", "2"], ["revision", "rollback", "1"], ["plan", os.devnull], ["diff", os.devnull],
    ["apply", os.devnull], ["verify", DIGESTS], ["self", "drain"], ["self", "undrain"],
]


@pytest.mark.parametrize("args", REACHES_FOR_THE_DAEMON, ids=lambda args: " ".join(map(str, args)))
def test_without_a_daemon_every_verb_is_exit_3(ctl, args):
    done = ctl(*args)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "no shuntd listens on /run/shunt/ctl-test-none/control.sock" in done.stderr
    assert done.stderr.count("\n") == 1
    done = ctl(*args, "-j")
    assert done.returncode == 3
    assert only_json(done)["error"] == "NotRunning"


def test_every_verb_is_covered_above():
    without = {("check",), ("explain",), ("flow", "list"), ("flow", "show"), ("keygen",), ("simulate",)}
    covered = {tuple(leaf) for leaf in LEAVES for args in REACHES_FOR_THE_DAEMON if args[:len(leaf)] == leaf}
    assert covered | without == {tuple(leaf) for leaf in LEAVES}


def help_of(words):
    done = subprocess.run([PROGRAM, *words, "--help"], check=False, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("group", VERBS, ids=lambda g: g or "shuntctl")
def test_help_lists_every_verb(group):
    text = help_of([group] if group else [])
    assert re.findall(r"^  ([a-z]+)\b", text, re.M) == VERBS[group]
    assert all(len(line) < 80 for line in text.splitlines())
    verbs = text[text.index("\n\n") + 2:text.index("\n\n Options")]
    assert all(line.startswith("  ") for line in verbs.splitlines()), "a summary that does not fit is broken"


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_help_of_a_verb_fits_and_its_options_are_in_the_man_page(words):
    text = help_of(words)
    assert text.startswith(f"Usage: shuntctl {' '.join(words)} ")
    assert all(len(line) < 80 for line in text.splitlines())
    man = (TOP / "docs/shuntctl.8.rst").read_text()
    options = re.findall(r"--[a-z0-9-]+", text)
    assert {"--instance", "--json", "--timeout", "--help", "--version"} <= set(options)
    for option in options:
        assert re.search(rf"^(-[a-z] ?[A-Z]*, )?{option}(=[A-Z]+)?$", man, re.M), f"{option} is not in the man page"
    assert f"**{'** **'.join(words)}**" in man


def test_help_does_not_need_the_rest_of_the_command_line(ctl):
    assert ctl("backend", "set", "-h").returncode == 0
    assert ctl("-h").returncode == 0


def test_version(ctl):
    for args in (["--version"], ["pool", "list", "--version"]):
        done = ctl(*args)
        assert done.returncode == 0
        assert re.fullmatch(r"shuntctl \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("args", [["keygen"], ["keygen", "-j"], ["--help"], ["pool", "table", "--help"], ["--version"]])
def test_output_that_is_lost_is_an_error(args):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, *args], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "No space left" in done.stderr


# ---- keygen ----

def test_keygen_prints_a_new_key_each_time(ctl):
    keys = {ctl("keygen").stdout for _ in range(20)}
    assert len(keys) == 20
    assert all(re.fullmatch(r"[0-9a-f]{32}\n", key) for key in keys)
    assert re.fullmatch(r"[0-9a-f]{32}", only_json(ctl("-j", "keygen"))["key"])


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_keygen_writes_a_file_for_its_owner_alone(ctl, tmp_path, umask):
    path = tmp_path / "hash.key"
    done = ctl("keygen", path, umask=umask)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(r"[0-9a-f]{32}\n", path.read_text())


def test_keygen_never_writes_over_anything(ctl, tmp_path):
    path = tmp_path / "hash.key"
    path.write_text("precious\n")
    target = tmp_path / "elsewhere"
    link = tmp_path / "link"
    link.symlink_to(target)
    for victim in (path, link, tmp_path):
        done = ctl("keygen", victim)
        assert done.returncode == 1
        assert f"{victim} exists" in done.stderr
        assert only_json(ctl("-j", "keygen", victim))["error"] == "Exists"
    assert path.read_text() == "precious\n"
    assert not target.exists()


def test_keygen_says_where_it_cannot_write(ctl, tmp_path):
    done = ctl("keygen", tmp_path / "none/hash.key")
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert ctl("keygen", tmp_path / "k", "-j").stdout == "{}\n"


def test_a_key_that_could_not_be_written_whole_leaves_no_file(tmp_path):
    # A file-size limit of 10 bytes makes the write short.
    done = subprocess.run(["sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {PROGRAM} keygen {tmp_path / 'k'}"],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert os.listdir(tmp_path) == []
