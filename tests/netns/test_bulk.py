# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Much data through the balancer, both ways, with every byte intact; at jumbo MTU too."""

import hashlib
import json
import os

import pytest
from balancer import wait_for
from frames import Wire

SIZE = 50_000_000
PORT = 5201


@pytest.fixture(scope="module", params=(1500, 9000), ids=("mtu1500", "mtu9000"))
def bulk(request, sites):
    """iperf3's control and data connections have to reach one backend: the service hashes the source address alone."""
    site = sites(backends=2, mtu=request.param)
    rows = [{"name": f"iperf{v}", "address": site.lab.service(v), "protocol": "tcp", "ports": [80, PORT],
             "hash": "source", "pool": "web"} for v in (4, 6)]
    site.shunt.write({"web": {b: (site.lab.address(b, v), 1) for b, v in zip(site.lab.backends, (4, 6))}}, rows)
    return site.start()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def listening(site):
    return all(f":{PORT} " in site.lab.run(b, "ss", "-Hltn") for b in site.lab.backends)


@pytest.fixture
def server(bulk, tmp_path):
    """iperf3 on each backend, which writes what it gets to <backend>.got: the table decides which one is asked."""
    started = [bulk.lab.popen(b, "iperf3", "-s", "-F", tmp_path / f"{b}.got", stdout=open(os.devnull, "w"))
               for b in bulk.lab.backends]
    wait_for("iperf3 listens", lambda: listening(bulk))
    yield
    for process in started:
        process.terminate()
        process.wait(5)


@pytest.mark.parametrize("version", (4, 6))
def test_an_upload_by_iperf3_arrives_byte_for_byte(bulk, server, tmp_path, version):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(SIZE))
    with Wire(bulk.lab, "router", "b1") as b1, Wire(bulk.lab, "router", "b2") as b2:
        report = json.loads(bulk.lab.run("client", "iperf3", "-c", bulk.lab.service(version), "-J", "-F", data,
                                         timeout=60))
        largest = max(len(f) for wire in (b1, b2) for f in wire.frames(0.2, outgoing=True))
    assert report["end"]["sum_sent"]["bytes"] == SIZE
    got = [p for p in tmp_path.glob("b*.got") if p.stat().st_size]
    assert [digest(p) for p in got] == [digest(data)]
    # The outer header is 20 or 40 bytes; frames of the client's full size went through.
    assert largest >= bulk.lab.info["mtu"] + 20


@pytest.mark.parametrize("version", (4, 6))
def test_iperf3_gets_what_the_backend_sends(bulk, tmp_path, version):
    servers = [bulk.lab.popen(b, "iperf3", "-s", "-1", stdout=open(os.devnull, "w")) for b in bulk.lab.backends]
    try:
        wait_for("iperf3 listens", lambda: listening(bulk))
        report = json.loads(bulk.lab.run("client", "iperf3", "-c", bulk.lab.service(version), "-J", "-R", "-n", SIZE,
                                         timeout=60))
    finally:
        for server in servers:
            server.terminate()
            server.wait(5)
    assert report["end"]["sum_received"]["bytes"] >= SIZE


@pytest.mark.parametrize("version", (4, 6))
def test_a_download_arrives_byte_for_byte(bulk, tmp_path, version):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(SIZE))
    for backend in bulk.lab.backends:
        (bulk.lab.dir / backend / "files/data").write_bytes(data.read_bytes())
    address = bulk.lab.service(version)
    bulk.lab.run("client", "curl", "-sS", "--fail", "--max-time", "60", "-o", tmp_path / "got",
                 f"http://{address if version == 4 else f'[{address}]'}/files/data")
    assert digest(tmp_path / "got") == digest(data)
