# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Upgrades of an instance with services, under HTTP load, with the daemon running and without."""

import json
import os
import time

import pytest
from balancer import Balancer, Load
from http_server import start_http
from lab import Lab, LabError


@pytest.fixture(scope="module")
def shunt():
    lab = Lab(f"ldr{os.getpid()}")
    balancer = None
    try:
        lab.up(backends=3)
        start_http(lab)
        balancer = Balancer(lab)
        balancer.web({"b1": 1, "b2": 1, "b3": 2}, ports=(80, 443))
        balancer.attach("lb0")
        balancer.start()
        yield balancer
    finally:
        if balancer:
            balancer.stop()
        lab.down()


def lb(shunt):
    return json.loads(shunt.loader("status", "-j"))["instances"][0]["lb"]


def under_load(shunt, change):
    """Requests by both families, and connections held open, while `change` runs: all of them answered."""
    loads = [Load(shunt.lab, shunt.lab.service(v), "--hold", "20", "--concurrency", "4") for v in (4, 6)]
    try:
        time.sleep(0.5)
        change()
        time.sleep(0.5)
        results = [load.finish() for load in loads]
    finally:
        for load in loads:
            load.close()
    for result in results:
        assert [r[2] for r in result["requests"] if r[2]] == []
        assert [h["error"] for h in result["held"] if h["error"]] == []
        assert len(result["requests"]) > 100


def test_programs_and_capacities_change_under_load(shunt):
    before, owners = shunt.pool(), shunt.owners()
    packets = sum(lb(shunt)["counters"].values())

    def change():
        shunt.loader("upgrade")
        assert "the daemon has opened the new maps" in shunt.loader("upgrade", "--backends", "20000", "--pools", "99")
        shunt.loader("upgrade", "--services", "500", "--addresses", "17")
    under_load(shunt, change)
    after = shunt.pool()
    assert (after["digest"], after["epoch"]) == (before["digest"], before["epoch"])
    assert shunt.owners() == owners
    now = lb(shunt)
    assert now["capacities"] == {"services": 500, "addresses": 17, "pools": 99, "backends": 20000, "flows": 1000000}
    assert (now["used"], now["published"]) == ({"services": 4, "addresses": 2, "pools": 1, "backends": 3}, True)
    assert sum(now["counters"].values()) > packets
    assert not [name for name in now["counters"] if name.startswith("bug_")]


def test_the_daemon_goes_on_with_the_new_maps(shunt):
    shunt.ctl("backend", "set", "web/b1", "--weight", "5", "--wait")
    shares = {row["backend"]: row["slots"] for row in shunt.ctl("pool", "table", "web")["rows"]}
    assert shares["b1"] > shares["b2"] * 4.9
    under_load(shunt, lambda: None)
    assert shunt.ctl("status")["capacities"]["backends"] == 20000


def test_what_is_in_use_must_fit(shunt):
    for words, least in ((("--services", "3"), 4), (("--addresses", "1"), 2)):
        with pytest.raises(LabError, match=f"at least {least}"):
            shunt.loader("upgrade", *words)
    assert lb(shunt)["capacities"]["services"] == 500
    under_load(shunt, lambda: None)


def test_without_the_daemon(shunt):
    owners = shunt.owners()
    shunt.kill(9)

    def change():
        assert "daemon" not in shunt.loader("upgrade", "--backends", "64")
    under_load(shunt, change)
    shunt.start()
    assert shunt.owners() == owners and lb(shunt)["capacities"]["backends"] == 64
    under_load(shunt, lambda: shunt.ctl("backend", "set", "web/b1", "--weight", "5", "--wait"))
