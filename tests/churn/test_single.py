# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Single connections whose course a change crosses, and the packet path's program replaced under load."""

import json
import os
import shutil
import socket
import subprocess
import time

import pytest
from frames import inside
from http_server import start_http
from lab import BUILD, TOP
from site_of_churn import HTTP_PORT, SLOW_PORT, wait_for

DOWNLOAD = int(os.environ.get("CHURN_DOWNLOAD", "20"))


@pytest.fixture(scope="module")
def site(sites):
    made = sites(backends=4, first=4, settle="5s", **{"drain-timeout": "10m"})
    start_http(made.lab)
    for node in made.lab.backends:
        made.lab.popen(node, "/usr/bin/python3", TOP / "tests/churn/slow_server.py", SLOW_PORT, DOWNLOAD,
                       *made.lab.info["services"], stdin=subprocess.DEVNULL)
    return made


@pytest.fixture
def rested(site):
    """All backends active and no slot in transition."""
    for name, row in site.rows().items():
        if row["state"] != "active":
            site.ctl("backend", "undrain", f"web/{name}")
    wait_for("all slots are at rest", lambda: site.pool()["tracked"] == 0, 60)
    return site


def names(site, state):
    return {name for name, row in site.rows().items() if row["state"] == state}


# ---- source ports that are used again ----


class Kept:
    """An HTTP connection from a port of its own that stays open."""

    def __init__(self, site, version, port):
        self.port = port
        with inside(site.lab.netns("client")):
            self.socket = socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.settimeout(10)
        self.socket.bind(("::" if version == 6 else "0.0.0.0", port))
        self.socket.connect((site.lab.service(version), HTTP_PORT))
        self.backend = self.ask("keep-alive")

    def ask(self, connection):
        """The name of the backend; with "close" it ends the connection."""
        self.socket.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\n\r\n".encode())
        got = b""
        while not got.split(b"\r\n\r\n", 1)[1:] or not got.endswith(b"\n"):
            piece = self.socket.recv(4096)
            assert piece, got
            got += piece
        if connection == "close":
            assert self.socket.recv(1) == b""
            self.socket.close()
        return got.rsplit(b"\r\n", 1)[1].decode().strip()


def fetch(site, version, port):
    """(the backend's name, seconds until it answered) on a connection that the server ends, as curl --local-port makes it.

    The client closes second, so that the port is free at once and TIME_WAIT is the backend's.
    """
    began = time.monotonic()
    one = Kept(site, version, port)
    seconds = time.monotonic() - began
    one.ask("close")
    return one.backend, seconds


@pytest.mark.parametrize("version", [4, 6])
def test_a_source_port_used_again_towards_a_draining_backend(rested, version):
    """Its old connection was recorded on the draining backend, which has the port in TIME_WAIT: the new one goes elsewhere."""
    site = rested
    kept = [Kept(site, version, port) for port in range(20000 + 100 * version, 20000 + 100 * version + 40)]
    drained = max(site.rows(), key=[one.backend for one in kept].count)
    mine = [one for one in kept if one.backend == drained][:8]
    site.ctl("backend", "drain", f"web/{drained}")
    again = []
    for one in mine:
        assert one.ask("keep-alive") == drained
        assert one.ask("close") == drained
        began = time.monotonic()
        again += [fetch(site, version, one.port), fetch(site, version, one.port)]
        assert time.monotonic() - began < 1
    assert len(mine) >= 4
    assert all(seconds < 0.5 for _, seconds in again), again
    # An entry that no SYN made matches one initial sequence number in 256.
    assert [name for name, _ in again].count(drained) <= 1, again
    for one in kept:
        one.socket.close()


# ---- half-closed ----


def test_half_closed_downloads_survive_a_drain(rested):
    site = rested
    loads = [site.lab.popen("client", "/usr/bin/python3", TOP / "tests/churn/slow_client.py", SLOW_PORT,
                            site.lab.service(version), 16, stdout=subprocess.PIPE, text=True) for version in (4, 6)]
    time.sleep(2)
    # All but one, one after the other: whatever backend a download is on, it is drained, or takes what the others had.
    for name in sorted(names(site, "active"))[:-1]:
        site.ctl("backend", "drain", f"web/{name}")
        time.sleep(0.5)
    results = [json.loads(load.communicate(timeout=DOWNLOAD + 60)[0]) for load in loads]
    assert results == [[5 * 1024 * DOWNLOAD] * 16] * 2


# ---- the program is replaced ----


def test_upgrades_to_an_old_program_and_back_break_nothing(rested):
    """The old one is a copy, with another name of the file: it is loaded and put in place as any other version would be."""
    site = rested
    client = site.client(count=300, seed=9)
    client.warm(280)
    old = site.lab.dir / "old"
    old.mkdir(exist_ok=True)
    for program in BUILD.glob("*.bpf.o"):
        shutil.copy(program, old)
    site.ctl("backend", "drain", "web/b1")
    before = site.pool()
    for folder in (old, BUILD, old, BUILD):
        site.lab.run("lb", BUILD / "shunt-loader", "upgrade", "--instance", site.shunt.instance,
                     env={**os.environ, "SHUNT_OBJECT_DIR": str(folder)})
        time.sleep(0.5)
    client.leave("b1")
    after = site.pool()
    assert (after["epoch"], after["digest"]) == (before["epoch"], before["digest"])
    end = client.stop()
    assert end["broken"] == [] and site.server_logs() == ""
