# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""UDP flows that are active within the learning window stay on their backend."""

import time

import pytest


@pytest.fixture(scope="module")
def site(sites):
    return sites(backends=6, first=4, settle="5s", learn="3s")


def test_no_datagram_of_an_active_flow_reaches_another_backend(site):
    client = site.client("udp", count=400, seed=6)
    client.warm(380)
    before = client.count()["by"]
    for change in (("add", "web/b5", site.address("b5")), ("drain", "web/b1"), ("set", "web/b2", "--weight", "4"),
                   ("add", "web/b6", site.address("b6")), ("undrain", "web/b1"), ("drain", "web/b3")):
        site.ctl("backend", *change)
        time.sleep(2)
    # Beyond the window and the settle time: what was recorded is still followed.
    time.sleep(8)
    reply = client.count()
    assert "b5" in reply["by"] and "b6" in reply["by"]
    # Half of the flows live as long as the client.
    assert reply["by"]["b3"] >= before["b3"] // 4
    end = client.stop()
    assert end["broken"] == [] and site.server_logs() == ""
    assert end["messages"] > 10000 and end["lost"] < end["messages"] / 1000


def test_new_flows_avoid_a_draining_backend_after_the_window(site):
    """Within it a datagram without an entry may be of an old flow."""
    site.ctl("backend", "drain", "web/b2")
    time.sleep(4)
    client = site.client("udp", count=200, seed=7)
    client.warm(190)
    time.sleep(1)
    assert "b2" not in client.count()["by"] and "b3" not in client.count()["by"]
    assert client.stop()["broken"] == []
