# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Much data through the balancer, both ways, with every byte intact; at jumbo MTU too."""

import hashlib
import json
import os
import subprocess

import pytest
from balancer import wait_for
from frames import Wire

SIZE = 50_000_000
IPERF, SINK = 5201, 5000
FAMILIES = pytest.mark.parametrize("version", (4, 6))

# Answers the digest of what it was sent.  (iperf3's own -F loses bytes, without any balancer too.)
SINK_SERVER = f"""
import hashlib, socket
server = socket.create_server(("::", {SINK}), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    client, _ = server.accept()
    digest = hashlib.sha256()
    while data := client.recv(1 << 18):
        digest.update(data)
    client.sendall(digest.hexdigest().encode())
    client.close()
"""
SINK_CLIENT = f"""
import socket, sys
server = socket.create_connection((sys.argv[1], {SINK}), timeout=30)
server.sendfile(open(sys.argv[2], "rb"))
server.shutdown(socket.SHUT_WR)
print(server.makefile().read())
"""


# MTU of the client's link, encapsulation, the least that it adds.
LABS = {"mtu1500": (1500, "ipip", 20), "mtu9000": (9000, "ipip", 20), "gue": (1500, "gue", 32), "gue9000": (9000, "gue", 32),
        "l2": (1500, "l2", 0)}


@pytest.fixture(scope="module", params=LABS)
def bulk(request, sites):
    """One backend over IPv4, one over IPv6, and what they serve: nginx, the sink, and iperf3.

    iperf3's control and data connections have to reach one backend: its service hashes the source address alone.
    """
    mtu, encapsulation, added = LABS[request.param]
    site = sites(backends=2, mtu=mtu, encapsulation=encapsulation, arms=2 if encapsulation == "l2" else 1)
    lab = site.lab
    lab.info["added"] = added
    rows = [{"name": f"bulk{v}", "address": lab.service(v), "protocol": "tcp", "ports": [80, IPERF, SINK],
             "hash": "source", "pool": "web"} for v in (4, 6)]
    site.shunt.write({"web": {b: (lab.address(b, v), 1) for b, v in zip(lab.backends, (4, 6))}}, rows)
    site.start()
    for backend in lab.backends:
        lab.popen(backend, "/usr/bin/python3", "-c", SINK_SERVER)
        lab.popen(backend, "iperf3", "-s", stdout=subprocess.DEVNULL)
    wait_for("sink and iperf3 listen", lambda: all(
        f":{port} " in lab.run(b, "ss", "-Hltn") for b in lab.backends for port in (IPERF, SINK)))
    return site


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(SIZE))
    yield path
    path.unlink()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@FAMILIES
def test_an_upload_arrives_byte_for_byte(bulk, data, version):
    lab = bulk.lab
    with Wire(lab, "router", "b1") as b1, Wire(lab, "router", "b2") as b2:
        got = lab.run("client", "/usr/bin/python3", "-c", SINK_CLIENT, lab.service(version), data)
        largest = max(len(f) for wire in (b1, b2) for f in wire.frames(0.2, outgoing=True))
    assert got.strip() == digest(data)
    # Frames of the client's full size went through.
    assert largest >= lab.info["mtu"] + lab.info["added"]


@FAMILIES
def test_a_download_arrives_byte_for_byte(bulk, data, tmp_path, version):
    lab = bulk.lab
    for backend in lab.backends:
        (lab.dir / backend / "files/data").write_bytes(data.read_bytes())
    host = lab.service(version) if version == 4 else f"[{lab.service(version)}]"
    lab.run("client", "curl", "-sS", "--fail", "--max-time", 60, "-o", tmp_path / "got", f"http://{host}/files/data")
    assert digest(tmp_path / "got") == digest(data)


@FAMILIES
@pytest.mark.parametrize("options, streams", (((), 1), (("-R",), 1), (("-P", "4"), 4)), ids=("up", "down", "4 streams"))
def test_iperf3_gets_all_that_it_sends(bulk, options, streams, version):
    report = json.loads(bulk.lab.run("client", "iperf3", "-c", bulk.lab.service(version), "-J", "-n", SIZE, "-w", "256K",
                                     *options, timeout=60))
    sent, received = report["end"]["sum_sent"]["bytes"], report["end"]["sum_received"]["bytes"]
    assert sent >= SIZE
    # The server stops counting when the client says that it is done: what is in the sockets' buffers then is missing.
    assert received >= sent - streams * (1 << 21)


def test_no_packet_was_dropped_for_its_size_or_its_header(bulk):
    counted = bulk.shunt.counters()
    assert counted["forward_tx"] + counted["forward_redirect"] > 10000
    assert {n: v for n, v in counted.items() if v and n.startswith(("drop_", "bug_"))} == {}
