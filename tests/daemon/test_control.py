# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The control socket: whatever comes in, the daemon answers, and goes on."""

import grp
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rawcontrol import Connection, as_user, ask, error_of, in_force, pool, request
from shuntlab import RUN, SLOWER, backend, web

NOBODY = 65534


def alive(shunt):
    start = time.monotonic()
    assert ask(shunt, "Status")["pid"] == shunt.process.pid
    return time.monotonic() - start


def test_socket_is_open_to_all(running):
    assert stat.S_IMODE((RUN / running.instance / "control.sock").stat().st_mode) == 0o666


def test_every_list_and_its_fields(running):
    service = ask(running, "ServiceList", name="www")["services"][0]
    assert service == {"name": "www", "address": "192.0.2.10", "protocol": "tcp", "ports": "80", "pool": "web",
                       "hash": service["hash"], "unknown_port": "drop", "echo": "answer", "index": 0, "packets": 0,
                       "bytes": 0, "announced": None, "announced_why": service["announced_why"]}
    backends = ask(running, "BackendList", pool="web", name="web2")["backends"]
    assert len(backends) == 1
    row = backends[0]
    assert (row["state"], row["reachable"], row["nexthop"]) == ("active", True, "02:00:00:00:00:0c")
    assert (row["interface"], row["mtu"], row["mss"], row["mss6"]) == ("eth0", 1500, 1440, 1420)
    assert row["slots"] == row["quota"] and row["why"] == ""
    counters = ask(running, "Counters")["counters"]
    assert {c["class"] for c in counters} == {"pass", "forward", "answer", "drop", "bug"}
    assert all(c["packets"] == 0 and c["description"] for c in counters)


def test_pool_table(running):
    table = ask(running, "PoolTable", name="web", owners=True)
    assert table["epoch"] == pool(running)["epoch"] and table["digest"] == pool(running)["digest"]
    assert sum(run for _, run in table["owners"]) == table["slots"] == 4099
    for index, row in enumerate(table["rows"]):
        assert row["slots"] == sum(run for owner, run in table["owners"] if owner == index)
        assert abs(row["share"] - row["target"]) < 0.05
    assert "owners" not in ask(running, "PoolTable", name="web")


def test_table_of_each_size_class(running):
    for slots in (2, 4099, 65537, 1048573):
        ask(running, "PoolAdd", name=f"p{slots}", slots=slots)
        ask(running, "BackendAdd", pool=f"p{slots}", name="b", address=backend(5))
        table = ask(running, "PoolTable", name=f"p{slots}", owners=True)
        assert table["owners"] == [[0, slots]]


def test_pools_of_other_algorithms(running):
    done = running.ctl("pool", "add", "ring", "--algorithm", "ring", "--slots", "4099", "--balance", "1.07",
                       "--vnodes", "50")
    assert done.returncode == 0, done.stderr
    made = next(p for p in running.json("export")["pools"] if p["name"] == "ring")
    assert made["table"] == {"algorithm": "ring", "size": 4099, "balance": 1.07, "vnodes": 50}


def test_verbs_make_change_and_delete(running):
    ask(running, "PoolAdd", name="dns", slots=251, source4="10.1.0.1")
    ask(running, "BackendAdd", pool="dns", name="d1", address=backend(7), weight=2)
    ask(running, "BackendAdd", pool="dns", name="d2", address=backend(8), wait=True)
    ask(running, "ServiceAdd", name="dns", address="192.0.2.53", protocol="udp", ports="53,5353,8000-8010",
        pool="dns", hash="source")
    assert ask(running, "ServiceList", name="dns")["services"][0]["ports"] == "53,5353,8000-8010"
    assert pool(running, "dns")["services"] == 1 and pool(running, "dns")["source4"] == "10.1.0.1"
    assert [r["slots"] for r in ask(running, "PoolTable", name="dns")["rows"]] == [167, 84]
    ask(running, "BackendSet", pool="dns", name="d1", weight=0)
    assert [b["state"] for b in ask(running, "BackendList", pool="dns")["backends"]] == ["no-weight", "active"]
    assert error_of(running, "PoolDel", name="dns")[0] == "Invalid"
    ask(running, "ServiceDel", name="dns")
    ask(running, "PoolDel", name="dns")
    assert error_of(running, "PoolTable", name="dns")[0] == "NotFound"


def test_unreachable_backend_has_no_slots_and_says_why(running):
    ask(running, "BackendAdd", pool="web", name="far", address="10.1.0.200")
    row = ask(running, "BackendList", name="far")["backends"][0]
    assert (row["state"], row["slots"], row["reachable"]) == ("unreachable", 0, False)
    assert "10.1.0.200" in row["why"]
    ask(running, "BackendAdd", pool="web", name="nowhere", address="203.0.113.7")
    assert ask(running, "BackendList", name="nowhere")["backends"][0]["why"] == "no route to it"
    ask(running, "BackendAdd", pool="web", name="spare", address="203.0.113.8", weight=0)
    without = ask(running, "BackendList", without_way=True)["backends"]
    assert [row["name"] for row in without] == ["far", "nowhere"], "neither those in use nor one without a weight"
    assert ask(running, "BackendList", name="web1", without_way=True)["backends"] == []
    pool = ask(running, "PoolList", name="web")["pools"][0]
    assert (pool["backends"], pool["with_slots"], pool["reachable"], pool["services"]) == (5, 2, 2, 2)
    assert ask(running, "Status")["healthy"], "others of the pool can be reached"


REFUSED = [
    ("ServiceAdd", {"name": "www", "address": "192.0.2.11", "protocol": "tcp", "ports": "80", "pool": "web"}, "Exists"),
    ("ServiceAdd", {"name": "x", "address": "192.0.2.10", "protocol": "tcp", "ports": "80", "pool": "web"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "192.0.2.11", "protocol": "tcp", "ports": "80", "pool": "no"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "192.0.2.11", "protocol": "sctp", "ports": "1", "pool": "web"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "192.0.2.11", "protocol": "tcp", "ports": "0", "pool": "web"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "www.example", "protocol": "tcp", "ports": "1", "pool": "web"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "10.1.0.1", "protocol": "tcp", "ports": "1", "pool": "web"}, "Invalid"),
    ("ServiceAdd", {"name": "x", "address": "192.0.2.11", "protocol": "tcp", "ports": "1", "pool": "web",
                    "hash": "dice"}, "Invalid"),
    ("ServiceDel", {"name": "none"}, "NotFound"),
    ("ServiceList", {"name": "none"}, "NotFound"),
    ("PoolAdd", {"name": "web"}, "Exists"),
    ("PoolAdd", {"name": "p", "slots": 100}, "Invalid"),
    ("PoolAdd", {"name": "p", "algorithm": "magic"}, "Invalid"),
    ("PoolAdd", {"name": "p", "balance_percent": 105}, "Invalid"),  # of maglev
    ("PoolAdd", {"name": "p", "algorithm": "ring", "balance_percent": 99}, "Invalid"),
    ("PoolAdd", {"name": "p", "algorithm": "ring", "balance_percent": 10001}, "Invalid"),
    ("PoolAdd", {"name": "p", "algorithm": "rendezvous", "vnodes": 3}, "Invalid"),
    ("PoolAdd", {"name": "p", "algorithm": "ring", "vnodes": 0}, "Invalid"),
    ("PoolAdd", {"name": "p", "algorithm": "ring", "vnodes": 100001}, "Invalid"),
    ("PoolAdd", {"name": "p", "encapsulation": "gre"}, "Invalid"),
    ("PoolAdd", {"name": "p", "source4": "x"}, "Invalid"),
    ("PoolAdd", {"name": "bad name"}, "Invalid"),
    ("PoolDel", {"name": "web"}, "Invalid"),
    ("PoolDel", {"name": "none"}, "NotFound"),
    ("PoolList", {"name": "none"}, "NotFound"),
    ("PoolTable", {"name": "none"}, "NotFound"),
    ("BackendAdd", {"pool": "web", "name": "web1", "address": "10.1.0.19"}, "Exists"),
    ("BackendAdd", {"pool": "web", "name": "web9", "address": "10.1.0.11"}, "Invalid"),
    ("BackendAdd", {"pool": "none", "name": "web9", "address": "10.1.0.19"}, "NotFound"),
    ("BackendAdd", {"pool": "web", "name": "web9", "address": "10.1.0.19:80"}, "Invalid"),
    ("BackendDel", {"pool": "web", "name": "none"}, "NotFound"),
    ("BackendSet", {"pool": "web", "name": "none", "weight": 1}, "NotFound"),
    ("BackendList", {"pool": "none"}, "NotFound"),
    ("BackendList", {"name": "none"}, "NotFound"),
    ("BackendSet", {"pool": "web", "name": "web1", "weight": 65536}, "BadRequest"),
    ("BackendSet", {"pool": "web", "name": "web1", "weight": -1}, "BadRequest"),
    ("BackendSet", {"pool": "web", "name": "web1", "weight": 1.5}, "BadRequest"),
    ("BackendSet", {"pool": "web", "name": "web1", "weight": "1"}, "BadRequest"),
    ("BackendSet", {"pool": "web", "name": "web1", "wait_": 1}, "BadRequest"),
    ("BackendSet", {"pool": "web"}, "BadRequest"),
    ("BackendSet", {"pool": "web", "name": "web1\0x", "weight": 2}, "BadRequest"),
    ("PoolTable", {"name": "web", "owners": 1}, "BadRequest"),
    ("Status", {"name": "x"}, "BadRequest"),
    ("NoSuch", {}, "UnknownMethod"),
    ("", {}, "UnknownMethod"),
]


@pytest.mark.parametrize("method,parameters,expected", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refused_with_one_sentence_and_nothing_changed(standing, method, parameters, expected):
    before = in_force(standing), ask(standing, "ServiceList"), ask(standing, "BackendList")
    error, message = error_of(standing, method, **parameters)
    assert error == expected
    assert message and "\n" not in message
    assert (in_force(standing), ask(standing, "ServiceList"), ask(standing, "BackendList")) == before


def test_full_names_the_command_that_grows_it(shunt):
    shunt.start("--backends", "2")
    before = in_force(shunt)
    error, message = error_of(shunt, "BackendAdd", pool="web", name="web3", address=backend(3))
    assert error == "Full" and "shunt-loader upgrade" in message and "--backends" in message
    assert in_force(shunt) == before


def test_deleting_what_is_not_there_can_be_ignored(running):
    ask(running, "ServiceDel", name="none", ignore_missing=True)
    ask(running, "PoolDel", name="none", ignore_missing=True)
    ask(running, "BackendDel", pool="web", name="none", ignore_missing=True)
    assert pool(running)["epoch"] == 1


def test_nobody_may_read_and_not_change(running):
    before = in_force(running)

    def reads_only():
        changes = [("BackendSet", {"pool": "web", "name": "web1", "weight": 5}), ("Reload", {}), ("Reopen", {}),
                   ("SelfDrain", {}), ("SelfUndrain", {}),
                   ("PoolDel", {"name": "web"})]
        planned = error_of(running, "Apply", document="version: 1", plan=True)
        assert planned[0] == "PermissionDenied" and planned[1].startswith("Apply, also only to plan it, is for root")
        return (ask(running, "Status")["pid"] == running.process.pid and
                all(error_of(running, method, **parameters)[0] == "PermissionDenied" for method, parameters in changes))

    assert as_user(NOBODY, reads_only)
    assert in_force(running) == before


def test_version_mismatch_names_both(running):
    with Connection(running) as connection:
        connection.send(request("Status", version=99))
        reply = connection.reply()
        assert reply["error"] == "shunt.control.VersionMismatch"
        assert "99" in reply["parameters"]["message"] and "1" in reply["parameters"]["message"]
        assert "error" not in connection.ask("Status")


GARBAGE = [b"\0", b"x\0", b"[]\0", b"{\0", b'"text"\0', b"{}\0", b'{"method": 1}\0', b"\xff\xfe\0",
           b'{"method": "shunt.control.Status"}\0', b'{"method": "other.Status", "version": 1}\0',
           b'{"method": "shunt.control.Status", "version": 1, "parameters": []}\0',
           b'{"method": "shunt.control.Status", "version": "1"}\0',
           b'{"method": "shunt.control.Status", "method": "shunt.control.Reload", "version": 1}\0',
           b"[" * 100000 + b"\0"]


def test_garbage_is_answered_and_the_connection_goes_on(running):
    with Connection(running) as connection:
        for data in GARBAGE:
            connection.send(data)
            reply = connection.reply()
            assert reply["error"] in ("shunt.control.BadRequest", "shunt.control.UnknownMethod"), data[:40]
            assert reply["parameters"]["message"]
        assert "error" not in connection.ask("Status")


def test_oversize_request_is_refused_and_closed(running):
    with Connection(running) as connection:
        try:
            for _ in range(74):
                connection.send(b"x" * (1 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass
        reply = connection.reply()
        assert reply is None or reply["error"] == "shunt.control.BadRequest"
        assert reply is None or connection.reply() is None
    alive(running)


def test_request_of_the_full_size_is_read(running):
    data = request("PoolList", name="x" * 1000000)
    with Connection(running) as connection:
        connection.send(data)
        assert connection.reply()["error"] == "shunt.control.NotFound"


def test_byte_by_byte_and_many_at_once(running):
    with Connection(running) as connection:
        for byte in request("Status"):
            connection.send(bytes([byte]))
        assert connection.reply()["parameters"]["healthy"]
        connection.send(request("Status") * 50 + request("NoSuch"))
        assert all(connection.reply()["parameters"]["pid"] == running.process.pid for _ in range(50))
        assert connection.reply()["error"] == "shunt.control.UnknownMethod"


def test_reply_comes_after_the_client_ended_its_side(running):
    with Connection(running) as connection:
        connection.send(request("Status") + request("PoolList"))
        connection.socket.shutdown(1)
        assert connection.reply()["parameters"]["healthy"]
        assert connection.reply()["parameters"]["pools"]
        assert connection.reply() is None


def test_two_hundred_clients_at_once(running):
    with ThreadPoolExecutor(200) as threads:
        connections = list(threads.map(lambda _: Connection(running), range(200)))
        replies = list(threads.map(lambda c: c.ask("BackendList"), connections))
        assert all(len(r["parameters"]["backends"]) == 2 for r in replies)
        changes = list(threads.map(lambda i: connections[i].ask("BackendSet", pool="web", name="web1",
                                                                weight=i % 5 + 1), range(50)))
        assert all(r == {"parameters": {}} for r in changes)
        for connection in connections:
            connection.socket.close()
    alive(running)


def test_slow_and_dead_clients_stall_nobody(running):
    half = [Connection(running) for _ in range(100)]
    for connection in half:
        connection.send(request("Status")[:20])
    # These ask for much and read nothing: the daemon keeps one reply for each, and reads no further.
    deaf = [Connection(running) for _ in range(20)]
    for connection in deaf:
        connection.socket.settimeout(0.2)
        try:
            for _ in range(200):
                connection.send(request("PoolTable", name="web", owners=True) * 50)
        except TimeoutError:
            pass
    assert alive(running) < 2 * SLOWER
    ask(running, "BackendSet", pool="web", name="web1", weight=2, wait=True)
    for connection in half[:50] + deaf[:10]:
        connection.socket.close()
    assert alive(running) < 2 * SLOWER
    memory = int(next(line.split()[1] for line in open(f"/proc/{running.process.pid}/status", encoding="ascii")
                      if line.startswith("VmRSS")))
    assert memory < 200 * 1024, "a bounded reply for each client"
    half[99].send(request("Status")[20:])
    assert half[99].reply()["parameters"]["healthy"]


def test_too_many_clients_of_a_user_are_told_and_root_gets_in(running):
    def fill():
        connections = [Connection(running) for _ in range(100)]
        replies = []
        for connection in connections:
            try:
                replies.append(connection.ask("Status"))
            except (BrokenPipeError, ConnectionResetError):
                replies.append(connection.reply())
        served = sum(1 for r in replies if r and "error" not in r)
        os.write(writer, b"%d" % served)
        os.read(stay, 1)
        return True

    reader, writer = os.pipe()
    stay, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        fill()
        os._exit(0)
    try:
        assert os.read(reader, 10) == b"64"
        alive(running)
    finally:
        os.write(go, b"x")
        os.waitpid(child, 0)
        for fd in (reader, writer, stay, go):
            os.close(fd)


def may(shunt, method, **parameters):
    with Connection(shunt) as connection:
        reply = connection.ask(method, **parameters)
    return reply.get("error") != "shunt.control.PermissionDenied"


CHANGE = {"pool": "web", "name": "web1", "weight": 2}


def test_members_of_the_admin_group_may_change(shunt):
    group = grp.getgrnam("games")
    shunt.start("--admin-group", group.gr_name)
    for groups in ({"gid": group.gr_gid}, {"groups": [group.gr_gid]}):
        assert as_user(NOBODY, lambda: may(shunt, "BackendSet", **CHANGE), **groups)
    assert not as_user(NOBODY, lambda: may(shunt, "BackendSet", **CHANGE))
    assert as_user(NOBODY, lambda: may(shunt, "BackendList"))
    assert ask(shunt, "RevisionList")["revisions"][-1]["user"] == "nobody"


def test_others_may_be_kept_from_reading(shunt):
    shunt.start("--others", "nothing", "--admin-group", "no-such-group")
    assert may(shunt, "BackendList")
    assert not as_user(NOBODY, lambda: may(shunt, "BackendList"))
    assert not as_user(NOBODY, lambda: may(shunt, "Export"))


def test_random_bytes(running):
    random = os.urandom(200000)
    for cut in range(0, len(random), 20000):
        with Connection(running) as connection:
            connection.send(random[cut:cut + 20000])
            connection.socket.shutdown(1)
            while (reply := connection.reply()) is not None:
                assert "error" in reply
    alive(running)


def test_reopen_without_a_rebuild_changes_nothing(running):
    before = in_force(running)
    ask(running, "Reopen")
    assert in_force(running) == before


def test_replies_are_json_objects_ended_by_nul(running):
    with Connection(running) as connection:
        connection.send(request("Status"))
        data = b""
        while not data.endswith(b"\0"):
            data += connection.socket.recv(1 << 16)
        assert data.count(b"\0") == 1 and isinstance(json.loads(data[:-1]), dict)


def test_many_backends_in_one_list(shunt):
    document = web(1)
    document["pools"][0]["backends"] = [{"name": f"b{i}", "address": f"10.1.{i // 250 + 1}.{i % 250 + 1}"}
                                        for i in range(2000)]
    shunt.sh("ip route add 10.1.0.0/17 via 10.1.0.11")
    shunt.write(document)
    shunt.start()
    rows = ask(shunt, "BackendList")["backends"]
    assert len(rows) == 2000 and all(row["slots"] > 0 for row in rows)
    assert pool(shunt)["epoch"] == 1


def test_service_address_on_an_interface_forbids_no_other_change(running):
    """Somebody else (VRRP, say) puts a service address on eth0 later: documents must tell, verbs must still work."""
    running.sh("ip address add 192.0.2.10/32 dev eth0")
    ask(running, "BackendSet", pool="web", name="web1", weight=5)
    assert ask(running, "BackendList", pool="web", name="web1")["backends"][0]["weight"] == 5
    name, message = error_of(running, "ServiceAdd", name="quic", address="192.0.2.10", protocol="udp", ports="443",
                             pool="web")
    assert name == "Invalid" and "is an address of interface eth0" in message
    assert error_of(running, "Reload")[0] == "Invalid"
