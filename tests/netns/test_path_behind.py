# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A router behind shunt that takes less than shunt knows of: its ICMP errors, about what shunt put in front, lower the
backends' path MTU, and the client is told the rest."""

import json
import time

import pytest
from balancer import wait_for
from test_bulk import SINK, SINK_CLIENT, SINK_SERVER, digest
from test_http import ask

MTU = 1500
NARROW = 1400  # of the router's link to the backends
SIZE = 10_000_000
PREFIX = "10.77.3.0/24"
# By name: encapsulation, family outside, bytes set aside.
WAYS = {"ipip-4": ({"type": "ipip"}, 4, 20), "ipip-6": ({"type": "ipip"}, 6, 40),
        "gue-4": ({"type": "gue"}, 4, 52),
        "prefix": ({"type": "ipip", "source": [PREFIX]}, 4, 20)}


@pytest.fixture(scope="module", params=WAYS)
def behind(request, sites):
    encapsulation, outer, overhead = WAYS[request.param]
    site = sites(backends=2, mtu=MTU, decap=False)
    lab = site.lab
    for backend in lab.backends:
        lab.attach_decap(backend, sources=[*lab.info["tunnel_sources"], PREFIX],
                         gue_port=6080 if encapsulation["type"] == "gue" else None)
    for interface in ("lb0", "lb1"):
        lab.run("lb", "ip", "link", "set", interface, "mtu", MTU)
    lab.run("router", "ip", "link", "set", "switch", "mtu", NARROW)
    lab.run("router", "ip", "route", "add", PREFIX, "via", lab.address("lb"))
    rows = [{"name": f"sink{v}", "address": lab.service(v), "protocol": "tcp", "ports": [80, SINK], "pool": "web"} for v in (4, 6)]
    site.shunt.write({"web": {"encapsulation": encapsulation,
                              "backends": {b: (lab.address(b, outer), 1) for b in lab.backends}}}, rows)
    site.start()
    for backend in lab.backends:
        lab.popen(backend, "/usr/bin/python3", "-c", SINK_SERVER)
    wait_for("the sinks listen", lambda: all(f":{SINK} " in lab.run(b, "ss", "-Hltn") for b in lab.backends))
    site.outer, site.overhead = outer, overhead
    return site


def backends(site):
    return {row["name"]: row for row in site.shunt.ctl("backend", "list")["backends"]}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(250)) * (SIZE // 250))
    yield path
    path.unlink()


def upload(site, data, version):
    got = site.lab.run("client", "/usr/bin/python3", "-c", SINK_CLIENT, site.lab.service(version), data, timeout=60)
    assert got.strip() == digest(data)


def known_mtu(site, version):
    """What the client's stack was told of the way to the service."""
    routes = json.loads(site.lab.run("client", "ip", "-j", "-4" if version == 4 else "-6", "route", "get", site.lab.service(version)))
    metrics = routes[0].get("metrics", [{}])[0]
    return metrics.get("mtu")


@pytest.mark.parametrize("version", (4, 6))
def test_an_upload_completes(behind, data, version):
    before, rows = behind.shunt.counters(), backends(behind)
    if version == 4:
        assert {(row["mtu"], row["mtu_lowered"], row["path_errors"]) for row in rows.values()} == {(MTU, False, 0)}
    upload(behind, data, version)
    assert known_mtu(behind, version) == NARROW - behind.overhead
    counted, rows = behind.shunt.counters(), backends(behind)
    lowered = [row for row in rows.values() if row["mtu_lowered"]]
    assert lowered and {row["mtu"] for row in lowered} == {NARROW}
    assert {(row["mss"], row["mss6"]) for row in lowered} == {(NARROW - behind.overhead - 40, NARROW - behind.overhead - 60)}
    assert sum(row["path_errors"] for row in rows.values()) == counted["drop_path_error"] > 0
    assert counted["answer_too_big"] > before["answer_too_big"]
    assert not [name for name, count in counted.items() if count and name.startswith("bug_")]


def test_it_is_shown(behind):
    name = next(name for name, row in backends(behind).items() if row["mtu_lowered"])
    shown = [line.split() for line in behind.shunt.ctl_text("backend", "show", f"web/{name}").splitlines()]
    assert ["path", "MTU", str(NARROW)] in shown and ["lowered", "by", "errors", "yes"] in shown
    metrics = behind.shunt.ctl_text("metrics")
    assert f'shunt_backend_path_mtu_lowered{{pool="web",backend="{name}"}} 1' in metrics
    assert f'shunt_backend_path_mtu_bytes{{pool="web",backend="{name}"}} {NARROW}' in metrics


def test_it_outlives_the_daemon_and_new_maps(behind, data):
    lowered = {name for name, row in backends(behind).items() if row["mtu_lowered"]}
    behind.shunt.kill()
    behind.shunt.start()
    time.sleep(0.5)  # the ways are looked up again
    rows = backends(behind)
    assert {name for name, row in rows.items() if row["mtu_lowered"]} == lowered
    assert {rows[name]["mtu"] for name in lowered} == {NARROW}
    behind.shunt.loader("upgrade", "--backends", "64")
    rows = backends(behind)
    assert {(rows[name]["mtu"], rows[name]["mtu_lowered"]) for name in lowered} == {(NARROW, True)}
    assert all(rows[name]["path_errors"] for name in lowered)
    ask(behind, 4, 20)
    upload(behind, data, 4)
