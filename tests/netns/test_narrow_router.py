# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A router between backends and clients that takes less than both: its ICMP errors, sent to the service address, reach the
backend that sent what was too big.  No client shares what another's error taught its backend: each has an address."""

import hashlib
import json
import os

import pytest

MTU = 1300  # of the router's link to the clients, whose own MSS says 1500
CLIENTS = 100
SIZE = 1_000_000

CLIENT = """
import hashlib, http.client, json, sys
from concurrent.futures import ThreadPoolExecutor
def download(source):
    connection = http.client.HTTPConnection(sys.argv[1], 80, timeout=30, source_address=(source, 0))
    connection.request("GET", "/files/data")
    return hashlib.sha256(connection.getresponse().read()).hexdigest()
sources = sys.argv[2:]
with ThreadPoolExecutor(len(sources)) as pool:
    print(json.dumps(list(pool.map(download, sources))))
"""


def sources(version):
    return [f"198.51.100.{100 + i}" if version == 4 else f"2001:db8:c::{100 + i}" for i in range(CLIENTS)]


@pytest.fixture(scope="module")
def narrow(sites):
    site = sites(backends=8)
    lab = site.lab
    site.shunt.web()
    data = os.urandom(SIZE)
    for backend in lab.backends:
        (lab.dir / backend / "files/data").write_bytes(data)
    lab.run("router", "ip", "link", "set", "client", "mtu", MTU)
    lab.sh("client", "".join(f"ip address add {source}/{length} dev eth0\n"
                             for version, length in ((4, 32), (6, 128)) for source in sources(version)))
    site.digest = hashlib.sha256(data).hexdigest()
    return site.start()


def heard(lab, backend, name):
    """A counter of a node's stack since it was made."""
    return int(lab.run(backend, "nstat", "-asz", name).split()[-2])


@pytest.mark.parametrize("version, too_big, errors", (
    (4, "IcmpInDestUnreachs", "IcmpInErrors"), (6, "Icmp6InPktTooBigs", "Icmp6InErrors")), ids=("IPv4", "IPv6"))
def test_downloads_complete(narrow, version, too_big, errors):
    lab = narrow.lab
    got = json.loads(lab.run("client", "/usr/bin/python3", "-c", CLIENT, lab.service(version), *sources(version), timeout=120))
    assert got == [narrow.digest] * CLIENTS
    told = {backend: heard(lab, backend, too_big) for backend in lab.backends}
    # Every backend was told, for each of its clients; none of a connection that it does not have.
    assert min(told.values()) > 0 and sum(told.values()) >= CLIENTS
    assert {backend: heard(lab, backend, errors) for backend in lab.backends} == dict.fromkeys(lab.backends, 0)


def test_nothing_was_dropped(narrow):
    assert {n: v for n, v in narrow.shunt.counters().items() if v and n.startswith(("drop_", "bug_"))} == {}
