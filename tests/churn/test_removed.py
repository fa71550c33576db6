# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A backend that is taken away at once, or that dies, breaks its own connections and no other: counted exactly."""

import pytest
from site_of_churn import wait_for


@pytest.fixture(scope="module")
def site(sites):
    return sites(backends=6, first=5, settle="4s")


def broken_of(client):
    return client.count()["broken"]


def held(client):
    """{node: connections}, none of which is being opened."""
    client.ask("hold")
    return client.count()["by"]


def judge(end, expected):
    """expected: {node: connections that had to break}"""
    broken = {}
    for _, _, backend, _, _ in end["broken"]:
        broken[f"b{backend}"] = broken.get(f"b{backend}", 0) + 1
    assert broken == expected, end["broken"]


def test_del_now_breaks_the_connections_of_that_backend(site):
    client = site.client(count=300, seed=3)
    client.warm(250)
    # A change before, so that there are slots in transition too.
    site.ctl("backend", "set", "web/b1", "--weight", "3")
    client.warm(290)
    count = held(client)["b2"]
    assert count > 10
    site.ctl("backend", "del", "web/b2", "--now", "--wait")
    wait_for("all of them are broken", lambda: broken_of(client) >= count, 30)
    client.ask("go")
    client.warm(290)
    end = client.stop()
    judge(end, {"b2": count})
    assert "b2" not in site.rows()


def test_a_dead_backend_breaks_its_connections(site):
    client = site.client(count=300, seed=4)
    client.warm(250)
    site.ctl("backend", "add", "web/b6", site.address("b6"), "--wait")
    client.warm(290)
    count = held(client)["b3"]
    assert count > 10
    site.stop_server("b3")
    wait_for("all of them are broken", lambda: broken_of(client) >= count, 30)
    site.ctl("backend", "del", "web/b3", "--now", "--wait")
    client.ask("go")
    client.warm(290)
    judge(client.stop(), {"b3": count})


def test_del_without_now_breaks_nothing(site):
    client = site.client(count=300, seed=5)
    client.warm(290)
    site.ctl("backend", "del", "web/b4")
    row = site.rows()["b4"]
    assert row["state"] == "leaving" and row["slots"] == 0
    client.leave("b4")
    wait_for("b4 is deleted", lambda: "b4" not in site.rows(), 60)
    judge(client.stop(), {})
