# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Weights, backends and the daemon itself change under load: nothing breaks but what the change allows."""

import time

import pytest
from balancer import Load
from change import Change


@pytest.fixture(scope="module")
def site(sites):
    made = sites(backends=4)
    made.shunt.web({"b1": 1, "b3": 2, "b4": 4})
    return made.start()


def test_an_added_backend_breaks_no_connection(site):
    address = site.lab.address("b2")
    change = Change(site.shunt).run(lambda: site.shunt.ctl("backend", "add", "web/b2", address, "--weight", "1",
                                                           "--wait"))
    assert change.errors == []
    assert "b2" not in change.before and "b2" in change.after


def test_a_weight_change_breaks_no_connection(site):
    change = Change(site.shunt).run(lambda: site.shunt.ctl("backend", "set", "web/b1", "--weight", "2", "--wait"))
    assert change.errors == []
    assert change.requests > 1000 and change.allowed > 0
    # Quotas of 1:1:2:4 and 2:1:2:4 differ by 1/9 - 1/8 + ...: b1 gains 0.0972 of the slots, and little more may move.
    assert 0.097 < len(change.moved) / len(change.before) < 0.13


def test_a_removed_backend_drains_first_and_breaks_no_connection(site):
    change = Change(site.shunt).run(lambda: site.shunt.ctl("backend", "del", "web/b2"))
    assert change.errors == []
    assert change.requests > 1000 and change.allowed > 0
    assert "b2" in change.before and "b2" not in change.after
    row = next(row for row in site.shunt.ctl("backend", "list")["backends"] if row["name"] == "b2")
    assert row["state"] == "leaving" and row["slots"] == 0 and row["entries"] > 0


def test_one_that_is_drained_gets_its_connections_back(site):
    change = Change(site.shunt).run(lambda: site.shunt.ctl("backend", "undrain", "web/b2", "--wait"))
    assert change.errors == []
    assert "b2" not in change.before and "b2" in change.after


def test_one_that_is_removed_now_breaks_its_connections_alone(site):
    change = Change(site.shunt, gone=("b2",)).run(lambda: site.shunt.ctl("backend", "del", "web/b2", "--now",
                                                                         "--wait"))
    assert change.foreign == []
    assert change.requests > 1000 and change.failed > 0
    assert "b2" in change.before and "b2" not in change.after
    assert "b2" not in [row["name"] for row in site.shunt.ctl("backend", "list")["backends"]]


def test_20_kills_of_the_daemon_under_load_lose_no_request(site):
    """Forwarding needs no daemon, and a daemon that comes back adopts what is pinned."""
    first = site.shunt.pool()
    owners = site.shunt.owners()
    loads = [Load(site.lab, site.lab.service(v), "--hold", "50", "--concurrency", "4") for v in (4, 6)]
    epochs = []
    try:
        for turn in range(20):
            site.shunt.kill(9)
            # At different points of the daemon's start, not only when it is idle.
            site.shunt.start(wait=turn % 2 == 0)
            time.sleep(0.01 * turn)
            if turn % 2 == 0:
                epochs.append(site.shunt.pool()["epoch"])
        site.shunt.wait_ready()
        results = [load.finish() for load in loads]
    finally:
        for load in loads:
            load.close()
    for result in results:
        assert [r[2] for r in result["requests"] if r[2]] == []
        assert [h["error"] for h in result["held"] if h["error"]] == []
        assert len(result["requests"]) > 500 and all(h["requests"] > 5 for h in result["held"])
    last = site.shunt.pool()
    assert epochs == sorted(epochs) and epochs[0] >= first["epoch"] and last["epoch"] >= epochs[-1]
    assert last["digest"] == first["digest"]
    assert site.shunt.owners() == owners
