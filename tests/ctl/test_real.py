# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntctl against the real daemon, in a namespace of its own."""

import json
import re
import subprocess

import openmetrics
import pytest
from shuntlab import BUILD, TOP, Shunt, web

MAN = (TOP / "docs/shuntctl.8.rst").read_text()

# A SYN to 192.0.2.10:80, a datagram to a port of it that no service has, and ARP.  IPv4 checksums are not looked at.
SEND = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("far", 0))
mac = open("/sys/class/net/eth0/address").read().strip().replace(":", "")
head = bytes.fromhex(mac) + bytes.fromhex("020000000001")
def ip(protocol, l4):
    return head + b"\\x08\\x00" + bytes.fromhex("4500%04x0000400040%02x0000" % (20 + len(l4), protocol)) \\
        + socket.inet_aton("198.51.100.7") + socket.inet_aton("192.0.2.10") + l4
tcp = bytes.fromhex("c3500050" "00000001" "00000000" "50022000" "00000000")
for _ in range(10):
    s.send(ip(6, tcp))
for _ in range(3):
    s.send(ip(17, bytes.fromhex("c3500035" "00080000")))
s.send(b"\\xff" * 6 + head[6:] + b"\\x08\\x06" + bytes(28))
"""


@pytest.fixture(scope="module")
def shunt():
    """A pool of three backends, of which one cannot be reached, and two services; attached; a few packets counted."""
    with Shunt() as instance:
        document = web(2)
        document["pools"][0]["backends"].append({"name": "far", "address": "10.1.9.9", "weight": 2})
        instance.write(document)
        instance.start()
        instance.wait(lambda: instance.json("pool", "list")["pools"][0]["published"], "the table is published")
        subprocess.run(instance.argv([BUILD / "shunt-loader", "attach", "eth0", "--instance", instance.instance]),
                       check=True, capture_output=True)
        subprocess.run(instance.argv(["/usr/bin/python3", "-c", SEND]), check=True)
        yield instance


def keys_in(value):
    """Every key of every object in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_in, value.values()))
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


# These print a document, which has a page of its own.
DOCUMENTS = [["export"], ["revision", "show", "1"]]
DOCUMENT_MAN = (TOP / "docs/shunt.yaml.5.rst").read_text()
SHOWN = [
    ["status"], ["status", "--check"], ["service", "list"], ["service", "show", "www"], ["pool", "list"],
    ["pool", "show", "web"], ["pool", "table", "web"], ["pool", "table", "web", "--slots"], ["backend", "list"],
    ["backend", "show", "web/web1"], ["backend", "show", "web/far"], ["stats"], ["counters"], ["counters", "--all"],
    ["reload"], ["check", "-"], ["explain", "tcp", "203.0.113.7:40000", "192.0.2.10:80"],
    ["flow", "list"], ["flow", "show", "tcp", "203.0.113.7:40000", "192.0.2.10:80"], ["export"], ["digests"], ["epoch", "list"], ["epoch", "show", "web", "1"],
    ["epoch", "diff", "web", "1", "1"], ["revision", "list"], ["revision", "show", "1"], ["revision", "diff", "1", "1"],
    ["plan", "-"], ["diff", "-"], ["backend", "set", "web/web1", "--weight", "7", "--plan"],
    ["revision", "rollback", "1", "--plan"],
    ["simulate", "--backends", "3", "--event", "add"], ["simulate", "--compare", "--backends", "4", "--slots", "7"],
    ["simulate", "--backends", "3", "--keys", "100", "--zipf", "1", "--replicas", "2", "--zones", "2"],
    ["simulate", "--backends", "9", "--slots", "7", "--algorithm", "maglev,rendezvous"],
]


@pytest.mark.parametrize("args", SHOWN, ids=" ".join)
def test_json_parses_and_each_member_is_in_the_man_page(shunt, args):
    done = shunt.ctl("-j", *args, stdin=json.dumps({**web(1), "hash-key": "0" * 31 + "1"}))
    assert done.stderr == ""
    assert done.returncode == (1 if "--check" in args else 0)
    keys = keys_in(json.loads(done.stdout))
    assert keys
    for key in keys:
        # The term of a definition, alone or in a list, or in bold in the text of one.
        known = re.search(rf"^([a-z0-9_]+, )*{key}(, [a-z0-9_]+)*$", MAN, re.M) or f"**{key}**" in MAN
        assert known or (args in DOCUMENTS and f"``{key}``" in DOCUMENT_MAN), key


def test_members_of_watch_are_in_the_man_page(shunt):
    with subprocess.Popen(shunt.argv([BUILD / "shuntctl", "--instance", shunt.instance, "-j", "stats", "--watch=0.1"]),
                          stdout=subprocess.PIPE, text=True) as process:
        sample = json.loads(process.stdout.readline())
        process.terminate()
    keys = keys_in(sample)
    assert {"packets_per_second", "bytes_per_second", "seconds"} <= keys
    assert all(re.search(rf"^(\w+, )*{key}(, \w+)*$", MAN, re.M) or f"**{key}**" in MAN for key in keys)


ERRORS = [
    (["service", "show", "none"], "NotFound"),
    (["service", "del", "none"], "NotFound"),
    (["service", "add", "www", "tcp", "192.0.2.77:80", "--pool", "web"], "Exists"),
    (["service", "add", "x", "tcp", "192.0.2.10:80", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:80", "--pool", "none"], "Invalid"),
    (["service", "add", "x", "sctp", "192.0.2.77:80", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.777:80", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "127.0.0.1:80", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:0", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:70000", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:90-80", "--pool", "web"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:80", "--pool", "web", "--hash", "dice"], "Invalid"),
    (["service", "add", "x", "tcp", "192.0.2.77:80", "--pool", "web", "--unknown-port", "maybe"], "Invalid"),
    (["service", "add", "bad name", "tcp", "192.0.2.77:80", "--pool", "web"], "Invalid"),
    (["pool", "show", "none"], "NotFound"),
    (["pool", "table", "none"], "NotFound"),
    (["pool", "del", "none"], "NotFound"),
    (["pool", "del", "web"], "Invalid"),
    (["pool", "add", "web"], "Exists"),
    (["pool", "add", "p", "--slots", "100"], "Invalid"),
    (["pool", "add", "p", "--algorithm", "dice"], "Invalid"),
    (["pool", "add", "p", "--encapsulation", "vxlan"], "Invalid"),
    (["pool", "add", "p", "--port", "6080"], "Invalid"),
    (["pool", "add", "p", "--encapsulation", "gue", "--udp6-checksum", "none"], "Invalid"),
    (["pool", "add", "p", "--encapsulation", "gue", "--source", "10.77.3.1/24"], "Invalid"),
    (["pool", "add", "p", "--encapsulation", "gue", "--source", "10.0.0.0/7"], "Invalid"),
    (["pool", "add", "p", "--encapsulation", "l2", "--source", "10.0.0.1"], "Invalid"),
    (["backend", "show", "web/none"], "NotFound"),
    (["backend", "show", "none/web1"], "NotFound"),
    (["backend", "add", "none/a", "10.1.0.20"], "NotFound"),
    (["backend", "add", "web/web1", "10.1.0.20"], "Exists"),
    (["backend", "add", "web/a", "10.1.0.11"], "Invalid"),
    (["backend", "add", "web/a", "10.1.0.20:80"], "Invalid"),
    (["backend", "add", "web/a", "10.1.0.20", "--weight", "70000"], "BadRequest"),
    (["backend", "set", "web/none", "--weight", "1"], "NotFound"),
    (["backend", "set", "web/web1", "--weight", "65536"], "BadRequest"),
    (["backend", "del", "web/none"], "NotFound"),
]


@pytest.mark.parametrize("args,kind", ERRORS, ids=[" ".join(args) for args, _ in ERRORS])
def test_a_refused_change_is_exit_1_and_changes_nothing(shunt, args, kind):
    before = [shunt.json("pool", "table", "web", "--slots"), shunt.json("status")["revision"]]
    done = shunt.ctl(*args)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(r"shuntctl: .+\n", done.stderr)
    done = shunt.ctl("-j", *args)
    assert (done.returncode, done.stderr) == (1, "")
    failure = json.loads(done.stdout)
    assert failure["error"] == kind
    assert set(failure) <= {"error", "message", "entries"}
    assert [shunt.json("pool", "table", "web", "--slots"), shunt.json("status")["revision"]] == before


def test_only_root_may_change(shunt):
    def as_nobody(*args):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BUILD / "shuntctl",
                               "--instance", shunt.instance, "-j", *args], check=False, capture_output=True, text=True)
    for args in (["status"], ["backend", "list"], ["pool", "table", "web", "--slots"], ["stats"], ["metrics"]):
        assert as_nobody(*args).returncode == 0, args
    for args in (["backend", "set", "web/web1", "--weight", "9"], ["backend", "del", "web/web1"], ["reload"],
                 ["pool", "add", "x"], ["service", "del", "www", "--ignore-missing"]):
        done = as_nobody(*args)
        assert done.returncode == 1, args
        assert json.loads(done.stdout)["error"] == "PermissionDenied"
    assert shunt.json("backend", "show", "web/web1")["weight"] == 1


def test_what_was_counted(shunt):
    counters = {row["name"]: row for row in shunt.json("counters")["counters"]}
    assert counters["forward_tx"]["packets"] == 10
    assert counters["drop_unknown_port"]["packets"] == 3
    assert counters["pass_not_ip"]["packets"] >= 1
    assert all(row["packets"] == 0 for row in counters.values() if row["class"] == "bug")
    names = re.findall(r"SHUNT_COUNTER\(\w+, \"(\w+)\"", (TOP / "include/shunt/counters.def").read_text())
    assert list(counters) == names
    assert shunt.json("service", "show", "www")["packets"] == 10
    assert sum(row["packets"] for row in shunt.json("backend", "list")["backends"]) == 10
    classes = {row["class"]: row["packets"] for row in shunt.json("stats")["classes"]}
    assert classes["forward"] == 10
    assert "drop_unknown_port" in shunt.ctl("status").stdout


def test_metrics_say_the_same(shunt):
    done = shunt.ctl("metrics")
    families = openmetrics.parse(done.stdout)
    packets = families["shunt_packets"].samples
    counters = shunt.json("counters")["counters"]
    assert {dict(labels)["reason"] for _, labels in packets} == {row["name"] for row in counters}
    assert packets[("_total", (("class", "forward"), ("reason", "forward_tx")))] == 10
    assert families["shunt_service_packets"].samples[("_total", (("service", "www"),))] == 10
    # 20 bytes of IP header and 20 of TCP each.
    assert families["shunt_service_bytes"].samples[("_total", (("service", "www"),))] == 400
    far = (("backend", "far"), ("pool", "web"))
    assert families["shunt_backend_reachable"].samples[("", far)] == 0
    assert families["shunt_backend_weight"].samples[("", far)] == 2
    assert sum(families["shunt_backend_slots"].samples.values()) == 4099
    assert families["shunt_capacity"].samples[("", (("resource", "pools"),))] == 1024
    assert families["shunt_used"].samples[("", (("resource", "backends"),))] == 3


def test_status(shunt):
    status = shunt.json("status")
    assert status["interfaces"] == [{"interface": "eth0", "mode": "native", "stale": False}]
    assert "interfaces eth0 (native)\n" in shunt.ctl("status").stdout
    done = shunt.ctl("status", "--check")
    assert done.returncode == 1
    assert re.fullmatch(r"backend web/far cannot be reached and has no slots: .*10\.1\.9\.9.*\n", done.stdout)


def test_pool_table_and_slots_agree(shunt):
    table = shunt.json("pool", "table", "web", "--slots")
    names = [row["backend"] for row in table["rows"]]
    owners = [names[index] for index, run in table["owners"] for _ in range(run)]
    assert len(owners) == table["slots"] == 4099
    assert {row["backend"]: row["slots"] for row in table["rows"]} == {name: owners.count(name) for name in names}
    assert sum(row["share"] for row in table["rows"]) == pytest.approx(100)
    assert sum(row["target"] for row in table["rows"]) == pytest.approx(100)
    lines = shunt.ctl("pool", "table", "web", "--slots").stdout.splitlines()
    assert lines == [f"{slot} {owner}" for slot, owner in enumerate(owners)]
    for row in table["rows"]:
        shown = shunt.json("backend", "show", f"web/{row['backend']}")
        assert (shown["slots"], shown["weight"]) == (row["slots"], row["weight"])
        assert shown["share"] == pytest.approx(row["share"])


# ---- changes; each on an instance of its own ----

@pytest.fixture
def fresh():
    with Shunt() as instance:
        instance.write(web(2))
        instance.start()
        instance.wait(lambda: instance.json("pool", "list")["pools"][0]["published"], "the table is published")
        yield instance


def ok(shunt, *args):
    done = shunt.ctl(*args)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), args


def test_services_pools_and_backends_come_and_go(fresh):
    ok(fresh, "pool", "add", "dns", "--slots", "251", "--algorithm", "maglev", "--source", "10.1.0.1", "--wait")
    ok(fresh, "backend", "add", "dns/a", "10.1.0.21", "--weight", "2", "--wait")
    ok(fresh, "backend", "add", "dns/b", "10.1.0.22", "--wait")
    ok(fresh, "service", "add", "dns", "udp", "192.0.2.53:53,853-854", "--pool", "dns", "--hash", "source", "--wait")
    ok(fresh, "service", "add", "dns6", "udp", "[2001:db8::53]:any", "--pool", "dns", "--wait")
    row = fresh.json("service", "show", "dns")
    assert (row["address"], row["ports"], row["hash"], row["protocol"]) == ("192.0.2.53", "53,853-854", "source", "udp")
    row = fresh.json("service", "show", "dns6")
    assert (row["address"], row["ports"], row["hash"]) == ("2001:db8::53", "any", "5-tuple")
    pool = fresh.json("pool", "show", "dns")
    assert (pool["slots"], pool["source4"], pool["source6"], pool["services"]) == (251, "10.1.0.1", None, 2)
    slots = {row["backend"]: row["slots"] for row in fresh.json("pool", "table", "dns")["rows"]}
    assert slots == {"a": 167, "b": 84}
    ok(fresh, "backend", "del", "dns/b", "--now", "--wait")
    assert fresh.json("backend", "show", "dns/a")["slots"] == 251
    ok(fresh, "service", "del", "dns", "--wait")
    ok(fresh, "service", "del", "dns6")
    ok(fresh, "pool", "del", "dns", "--wait")
    assert [row["name"] for row in fresh.json("pool", "list")["pools"]] == ["web"]


def test_wait_returns_when_the_table_is_in_force(fresh):
    for weight in (5, 0, 65535, 1):
        epoch = fresh.json("pool", "show", "web")["epoch"]
        ok(fresh, "backend", "set", "web/web1", "--weight", weight, "--wait")
        table = fresh.json("pool", "table", "web")
        assert table["epoch"] == epoch + 1
        assert next(row["weight"] for row in table["rows"] if row["backend"] == "web1") == weight


def test_deleting_twice(fresh):
    for kind, name in (("service", "www"), ("backend", "web/web2")):
        now = ["--now"] if kind == "backend" else []
        ok(fresh, kind, "del", name, *now)
        done = fresh.ctl(kind, "del", name)
        assert done.returncode == 1
        assert "there is no" in done.stderr
        ok(fresh, kind, "del", name, "--ignore-missing")
    ok(fresh, "pool", "del", "none", "--ignore-missing")


def test_reload_replaces_what_verbs_made(fresh):
    ok(fresh, "backend", "set", "web/web1", "--weight", "7")
    ok(fresh, "service", "add", "x", "tcp", "192.0.2.77:80", "--pool", "web")
    assert fresh.json("reload", "--wait")["changed"] is True
    assert fresh.json("backend", "show", "web/web1")["weight"] == 1
    assert fresh.ctl("service", "show", "x").returncode == 1
    assert fresh.json("reload")["changed"] is False


def test_reload_of_a_bad_document_lists_all_and_changes_nothing(fresh):
    before = fresh.json("pool", "table", "web", "--slots")
    fresh.write(fresh.config.read_text().replace("4099", "4098").replace("\"pool\": \"web\"", "\"pool\": \"wep\""))
    done = fresh.ctl("reload")
    assert done.returncode == 1
    assert "4098" in done.stderr and done.stderr.count("wep") >= 2
    assert re.search(r"^\d+:\d+: error: ", done.stderr, re.M)
    failure = json.loads(fresh.ctl("reload", "-j").stdout)
    assert failure["error"] == "Invalid"
    assert len(failure["entries"]) == 3
    assert all(entry["line"] > 0 and entry["column"] > 0 for entry in failure["entries"])
    assert fresh.json("pool", "table", "web", "--slots") == before
    assert fresh.ctl("status", "--check").returncode == 1


def test_all_is_well(fresh):
    subprocess.run(fresh.argv([BUILD / "shunt-loader", "attach", "eth0", "--instance", fresh.instance]), check=True,
                   capture_output=True)
    done = fresh.ctl("status", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "healthy\n", "")
    assert f"instance   {fresh.instance}: healthy\n" in fresh.ctl("status").stdout


def test_a_daemon_that_hangs_or_dies(fresh):
    import os
    import signal
    os.kill(fresh.process.pid, signal.SIGSTOP)
    done = fresh.ctl("status", "--check", "--timeout", "0.5")
    assert done.returncode == 3
    assert "does not answer" in done.stderr
    os.kill(fresh.process.pid, signal.SIGCONT)
    assert fresh.ctl("status").returncode == 0
    fresh.kill()
    done = fresh.ctl("status", "--check")
    assert done.returncode == 3
    assert "no shuntd listens" in done.stderr


def test_two_instances_do_not_see_each_other(fresh):
    with Shunt() as other:
        document = web(1)
        document["pools"][0]["name"] = "other"
        for service in document["services"]:
            service["pool"] = "other"
        other.write(document)
        other.start()
        assert [row["name"] for row in other.json("pool", "list")["pools"]] == ["other"]
        assert [row["name"] for row in fresh.json("pool", "list")["pools"]] == ["web"]


def test_the_key_is_in_no_output(fresh):
    for args in (["status"], ["service", "list"], ["pool", "list"], ["backend", "list"], ["counters"], ["stats"],
                 ["reload"]):
        assert fresh.key not in fresh.ctl("-j", *args).stdout
    assert fresh.key not in fresh.ctl("metrics").stdout + fresh.log_tail()


def test_explain_names_service_pool_and_backend(shunt):
    decision = shunt.json("explain", "tcp", "203.0.113.7:40000", "192.0.2.10:80")
    assert (decision["service"]["name"], decision["steering"]["pool"]["name"]) == ("www", "web")
    assert decision["backend"]["name"] == decision["steering"]["owner"]["name"]
    assert decision["backend"]["name"] in {f"web/{row['name']}" for row in shunt.json("backend", "list")["backends"]}
    assert decision["input"]["interface"] == "eth0" and decision["verdict"]["reason"] == "forward_tx"
