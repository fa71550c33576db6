# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Payloads of every length through a way with an MTU of 1500: what fits arrives as it was, of what does not fit the sender
is told, and its stack adapts."""

import json
from contextlib import ExitStack

import pytest
from balancer import wait_for
from tshark import captured, judged

MTU = 1500
SIZES = range(1, MTU + 101)
PORT = 5000
# Type, family outside, bytes that count against the path's MTU: with GUE the longest header that it may ever need.
ENCAPSULATIONS = {"ipip-4": ("ipip", 4, 20), "ipip-6": ("ipip", 6, 40), "gue-4": ("gue", 4, 52), "gue-6": ("gue", 6, 72),
                  "l2": ("l2", 4, 0)}
KINDS = {4: "ip", 6: "ipv6"}  # as tshark calls them
L2_MTU = 1400  # behind the balancer, where nothing is put in front

# Answers each datagram, and each message of a connection (its length in 4 bytes first), with its digest.
SERVER = f"""
import hashlib, socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
udp = socket.socket(family, socket.SOCK_DGRAM)
udp.bind((sys.argv[1], {PORT}))
tcp = socket.create_server((sys.argv[1], {PORT}), family=family)
def serve():
    while True:
        connection, _ = tcp.accept()
        stream = connection.makefile("rb")
        while head := stream.read(4):
            connection.sendall(hashlib.sha256(stream.read(int.from_bytes(head, "big"))).digest())
threading.Thread(target=serve, daemon=True).start()
while True:
    data, client = udp.recvfrom(65536)
    udp.sendto(hashlib.sha256(data).digest(), client)
"""
# Sends one of each size; prints what came of them.  The kernel's own words for "do not fragment" and the known path MTU.
UDP_CLIENT = f"""
import errno, hashlib, json, os, socket, sys
six = ":" in sys.argv[1]
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
level, discover, mtu = (socket.IPPROTO_IPV6, 23, 24) if six else (socket.IPPROTO_IP, 10, 14)
s.setsockopt(level, discover, 2)
s.connect((sys.argv[1], {PORT}))
s.settimeout(5)
out = {{"arrived": [], "told": [], "refused": [], "lost": []}}
for size in range({SIZES.start}, {SIZES.stop}):
    data = os.urandom(size)
    try:
        s.send(data)
    except OSError as error:
        assert error.errno == errno.EMSGSIZE, error
        out["refused"].append(size)
        continue
    try:
        out["arrived" if s.recv(64) == hashlib.sha256(data).digest() else "lost"].append(size)
    except TimeoutError:
        out["lost"].append(size)
    except OSError as error:
        assert error.errno == errno.EMSGSIZE, error
        out["told"].append(size)
print(json.dumps({{**out, "mtu": s.getsockopt(level, mtu)}}))
"""
TCP_CLIENT = f"""
import hashlib, os, socket, sys
s = socket.create_connection((sys.argv[1], {PORT}), timeout=20)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
replies = s.makefile("rb")
wrong = []
for size in map(int, sys.argv[2:]):
    data = os.urandom(size)
    s.sendall(size.to_bytes(4, "big") + data)
    if replies.read(32) != hashlib.sha256(data).digest():
        wrong.append(size)
print(wrong)
"""


def set_mtu(lab, node, mtu):
    for link in json.loads(lab.run(node, "ip", "-j", "link")):
        if link["ifname"] != "lo":
            lab.run(node, "ip", "link", "set", link["ifname"], "mtu", mtu)


@pytest.fixture(scope="module", params=ENCAPSULATIONS)
def narrow(request, sites, tmp_path_factory):
    """One backend; no link takes more than the client's, and what goes in and out of the balancer is captured."""
    encapsulation, outer, overhead = ENCAPSULATIONS[request.param]
    l2 = encapsulation == "l2"
    site = sites(backends=1, mtu=MTU, encapsulation=encapsulation, arms=2 if l2 else 1)
    lab = site.lab
    for node in lab.nodes:
        set_mtu(lab, node, MTU)
    if l2:
        lab.run("lb", "ip", "link", "set", "lb1", "mtu", L2_MTU)
    rows = [{"name": f"sweep{v}-{protocol}", "address": lab.service(v), "protocol": protocol, "ports": [PORT], "pool": "web"}
            for v in (4, 6) for protocol in ("tcp", "udp")]
    site.shunt.write({"web": {"b1": (lab.address("b1", outer), 1)}}, rows)
    site.start()
    for version in (4, 6):
        lab.popen("b1", "/usr/bin/python3", "-c", SERVER, lab.service(version))
    wait_for("the servers listen", lambda: lab.run("b1", "ss", "-Hltn").count(f":{PORT} ") == 2)
    site.path_mtu = L2_MTU if l2 else MTU - overhead
    site.front = {"ipip": f"{KINDS[outer]}:", "gue": f"{KINDS[outer]}:udp:gue:", "l2": ""}[encapsulation]
    site.pcap = tmp_path_factory.mktemp("sweep") / "all.pcapng"
    with ExitStack() as site.capture:
        site.capture.enter_context(captured(lab, "router", ("lb0", "lb1"), site.pcap))
        yield site


@pytest.mark.parametrize("version", (4, 6))
def test_datagrams_of_every_length(narrow, version):
    before = narrow.shunt.counters()
    got = json.loads(narrow.lab.run("client", "/usr/bin/python3", "-c", UDP_CLIENT, narrow.lab.service(version), timeout=120))
    mtu = narrow.path_mtu
    largest = mtu - (28 if version == 4 else 48)
    assert got == {"arrived": list(range(1, largest + 1)), "told": [largest + 1], "refused": list(range(largest + 2, SIZES.stop)),
                   "lost": [], "mtu": mtu}
    assert narrow.shunt.counters()["answer_too_big"] == before["answer_too_big"] + 1


def wrong_messages(site, version, sizes):
    """Of one connection; the client's stack forgets first what it was told before."""
    site.lab.run("client", "ip", "-4" if version == 4 else "-6", "route", "flush", "cache")
    return json.loads(site.lab.run("client", "/usr/bin/python3", "-c", TCP_CLIENT, site.lab.service(version), *sizes,
                                   timeout=120))


@pytest.mark.parametrize("version", (4, 6))
def test_segments_of_every_length(narrow, version):
    assert wrong_messages(narrow, version, SIZES) == []


@pytest.mark.parametrize("version", (4, 6))
def test_an_upload_completes_without_help(narrow, version):
    before = narrow.shunt.counters()["answer_too_big"]
    assert wrong_messages(narrow, version, [10_000_000]) == []
    assert narrow.shunt.counters()["answer_too_big"] > before


def test_nothing_was_dropped(narrow):
    assert {n: v for n, v in narrow.shunt.counters().items() if v and n.startswith(("drop_", "bug_"))} == {}


def test_tshark_finds_nothing_wrong(narrow):
    narrow.capture.close()
    wrong, stacks = judged(narrow.pcap)
    assert wrong == {}
    # As the client sent them and as the balancer passed them on, nearly all; with l2 both look alike.
    ways = {"": 2} if narrow.front == "" else {"": 1, narrow.front: 1}
    for inner, errors in (("ip", "icmp"), ("ipv6", "icmpv6")):
        for protocol in ("tcp", "udp"):
            assert of(stacks, f"{inner}:{errors}:{inner}:{protocol}") >= 1
            for front, times in ways.items():
                assert of(stacks, f"{front}{inner}:{protocol}") > times * (narrow.path_mtu - 100)


def of(stacks, beginning):
    return sum(count for stack, count in stacks.items() if f"{stack}:".startswith(f"eth:ethertype:{beginning}:"))
