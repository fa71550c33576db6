# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `shuntctl flow` and `pool show` say of connections that are really there, beside what they do."""

import ipaddress
import json
import socket
import time

import pytest
from balancer import CtlError, wait_for
from frames import inside

PORTS = {4: range(30000, 30040), 6: range(31000, 31040)}


class Client:
    """HTTP connections from ports of their own that stay open; which backend each is on."""

    def __init__(self, site, version):
        self.site, self.version = site, version
        self.sockets, self.backend = {}, {}

    def open(self, ports):
        for port in ports:
            with inside(self.site.lab.netns("client")):
                one = socket.socket(socket.AF_INET6 if self.version == 6 else socket.AF_INET)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.settimeout(10)
            one.bind(("::" if self.version == 6 else "0.0.0.0", port))
            one.connect((self.site.lab.service(self.version), 80))
            self.sockets[port] = one
            self.ask(port)
        return self

    def ask(self, port):
        one, got = self.sockets[port], b""
        one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while not got.split(b"\r\n\r\n", 1)[1:] or not got.endswith(b"\n"):
            got += one.recv(4096)
        self.backend[port] = got.rsplit(b"\r\n", 1)[1].decode().strip()
        return self.backend[port]

    def show(self, port):
        address = self.sockets[port].getsockname()[0]
        return flow_show(self.site, f"[{address}]:{port}" if self.version == 6 else f"{address}:{port}", self.version)

    def close(self, port):
        self.sockets.pop(port).close()


def flow_show(site, source, version=4):
    service = site.lab.service(version)
    return site.shunt.ctl("flow", "show", "tcp", source, f"[{service}]:80" if version == 6 else f"{service}:80")


def flows(site, *options):
    return site.shunt.ctl("flow", "list", *options)


def pool(site):
    return site.shunt.ctl("pool", "show", "web")


@pytest.fixture(scope="module")
def site(sites):
    made = sites(backends=3)
    lab = made.lab
    shape = {"table": {"algorithm": "minimal", "size": 4099}, "settle": "10m", "learn": "1s"}
    backends = {b: (lab.address(b), 1) for b in lab.backends}
    made.shunt.write({"web": {**shape, "backends": backends}},
                     [{"name": f"www{ipaddress.ip_address(s).version}", "address": s, "protocol": "tcp", "ports": [80],
                       "pool": "web"} for s in lab.info["services"]])
    return made.start()


@pytest.fixture(scope="module", params=[4, 6])
def client(request, site):
    """Connections of before a drain of b1, and of after it."""
    version = request.param
    site.shunt.ctl("backend", "undrain", "web/b1")
    made = Client(site, version).open(PORTS[version][:30])
    if version == 4:
        assert flows(site) == {"flows": [], "matched": 0}
        assert {made.show(port)["tracked"] for port in PORTS[4][:30]} == {False}
    site.shunt.ctl("backend", "drain", "web/b1")
    return made.open(PORTS[version][30:])


def test_each_connection_of_a_slot_in_transition_is_shown_where_it_is(site, client):
    slots = pool(site)["slots"]
    owners = site.shunt.owners()
    tracked, unrecorded, before_all = 0, 0, pool(site)["base_packets"]
    for port, name in client.backend.items():
        before = client.show(port)
        assert client.ask(port) == name
        shown = client.show(port)
        address = client.sockets[port].getsockname()[0]
        assert shown["slot"] == site.shunt.slot(address, port, site.lab.service(client.version), 80, slots)
        assert shown["owner"] == f"web/{owners[shown['slot']]}"
        if not shown["tracked"]:
            assert not shown["recorded"] and shown["owner"] == f"web/{name}"
            continue
        tracked += 1
        unrecorded += not before["recorded"] and before["base"] != before["owner"]
        assert shown["recorded"] and shown["entry"]["backend"] == f"web/{name}"
        assert shown["entry"]["state"] == "live" and shown["entry"]["idle_ms"] < 20000
        assert shown["entry"]["bucket"] in shown["buckets"]
        assert 0 < shown["settles_in_ms"] <= 600000 and shown["left_rest_ms"] + shown["settles_in_ms"] <= 600001
        # The packet of before() left nothing else behind: whoever asks changes nothing.
        assert before["slot"] == shown["slot"] and before["owner"] == shown["owner"]
    assert tracked >= 5 and unrecorded >= 3
    # Of each connection one packet goes to base without an entry, and leaves one.
    assert pool(site)["base_packets"] - before_all == unrecorded


def test_nothing_is_recorded_of_a_silent_connection_or_of_none(site, client):
    """Of a slot in transition, none of whose connections is this one."""
    source = "203.0.113.99" if client.version == 4 else "[2001:db8:c::99]"
    shown = [flow_show(site, f"{source}:{port}", client.version) for port in range(2000, 2040)]
    assert any(one["tracked"] for one in shown)
    assert not any(one["recorded"] for one in shown)
    assert {one["entry"] for one in shown} == {None}


def test_the_list_agrees_with_each_that_is_shown(site, client):
    wanted = [client.show(port) for port in client.sockets]
    wanted = {(one["entry"]["bucket"], one["entry"]["place"]): one for one in wanted if one["recorded"]}
    listed = {(row["bucket"], row["place"]): row for row in flows(site)["flows"]}
    assert set(wanted) <= set(listed)
    for place, one in wanted.items():
        row = listed[place]
        assert (row["slot"], row["fingerprint"], row["backend"]) == (one["slot"], one["fingerprint"],
                                                                     one["entry"]["backend"])


def test_the_list_is_filtered(site, client):
    everything = flows(site)
    assert everything["matched"] == len(everything["flows"]) > 5
    key = [(row["pool"], row["slot"], row["bucket"], row["place"]) for row in everything["flows"]]
    assert key == sorted(key)
    for options, wanted in [
            (["--pool", "web"], lambda row: True),
            (["--backend", "web/b1"], lambda row: row["backend"] == "web/b1"),
            (["--backend", "web/b2", "--state", "live"], lambda row: row["backend"] == "web/b2" and row["state"] == "live"),
            (["--state", "stale"], lambda row: row["state"] == "stale")]:
        got = flows(site, *options)
        rows = [row for row in everything["flows"] if wanted(row)]
        assert [(row["bucket"], row["place"]) for row in got["flows"]] == [(row["bucket"], row["place"]) for row in rows]
        assert got["matched"] == len(rows)
    cut = flows(site, "--limit", "3")
    assert len(cut["flows"]) == 3 and cut["matched"] == everything["matched"]
    text = site.shunt.ctl_text("flow", "list", "--limit", "3")
    assert f"{everything['matched'] - 3} more are not shown" in text


def test_pool_show_counts_what_is_there(site, client):
    """Against the list, the table and the packets themselves."""
    def same():
        row, rows = pool(site), flows(site)["flows"]
        counts = {state: sum(one["state"] == state for one in rows)
                  for state in ("half-open", "adopted", "live", "closing")}
        shown = {"half-open": row["entries_half"], "adopted": row["entries_adopted"], "live": row["entries_live"],
                 "closing": row["entries_closing"]}
        return counts == shown
    # It is what the last scan found, and while something drains there is one every five seconds.
    wait_for("pool show has the entries of the list", same, 15)
    row = pool(site)
    table = site.shunt.owners()
    assert row["tracked"] >= row["unsettled"] > 0 and row["tracked"] < len(table)
    assert row["refused"] == row["replaced"] == row["without_room"] == 0 and not row["settling_waits"]
    assert row["inserted"] >= len(flows(site)["flows"]) and row["settles_in"]
    status = site.shunt.ctl("status")["flow_table"]
    assert status["bytes"] == 64 * status["buckets"] and status["buckets"] == 500000
    assert row["range_buckets"] == status["used_buckets"] >= row["tracked"]
    assert row["range_bytes"] == 64 * row["range_buckets"]


def test_a_closed_connection_is_closing(site, client):
    port = next(port for port in client.sockets if client.show(port)["recorded"])
    slot = client.show(port)["entry"]
    client.close(port)
    wait_for("its entry is closing", lambda: any(
        (row["bucket"], row["place"], row["state"]) == (slot["bucket"], slot["place"], "closing")
        for row in flows(site, "--state", "closing")["flows"]), 5)


def test_without_a_daemon_there_are_numbers(site, client):
    named = flows(site)
    site.shunt.kill()
    try:
        began = time.monotonic()
        numbered = flows(site)
        assert time.monotonic() - began < 3
        assert [row["slot"] for row in numbered["flows"]] == [row["slot"] for row in named["flows"]]
        number = numbered["flows"][0]["pool"]
        assert number.isdigit() and numbered["flows"][0]["backend"].isdigit()
        assert flows(site, "--pool", number)["matched"] == named["matched"]
        assert client.show(next(iter(client.sockets)))["pool"] == number
        with pytest.raises(CtlError) as error:
            flows(site, "--pool", "web")
        assert "no shuntd answers" in str(error.value)
    finally:
        site.shunt.start()


def test_bad_input_is_one_sentence(site):
    for words, part in [
            (["list", "--pool", "nope"], "there is no pool nope"),
            (["list", "--backend", "web/nope"], "there is no backend web/nope"),
            (["show", "tcp", "203.0.113.7:1", "192.0.2.99:80"], "tcp 192.0.2.99:80 is no service")]:
        with pytest.raises(CtlError) as error:
            site.shunt.ctl("flow", *words)
        answer = json.loads(str(error.value).split(": ", 2)[2])
        assert error.value.code == 1 and part in answer["message"] and answer["error"] == "NotFound"
