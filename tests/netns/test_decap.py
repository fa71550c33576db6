# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shunt_decap on backends: what its lists do not allow is dropped and counted there."""

import collections
import json

import pytest
from balancer import Load
from lab import BUILD


def decap_counters(site, backend):
    lab = site.lab
    status = json.loads(lab.run(backend, BUILD / "shunt-loader", "status", "-j", "--instance", lab.instance(backend)))
    return collections.Counter(status["instances"][0]["decap"]["counters"])


def unanswered(site, version, requests=3):
    with Load(site.lab, site.lab.service(version), "--requests", str(requests), "--timeout", "1") as load:
        return [r for r in load.finish()["requests"] if r[2]]


@pytest.mark.parametrize("lists, reason", (
    ({"sources": ["10.9.9.9", "fd00:9::9"]}, "decap_drop_source"),
    ({"destinations": ["192.0.2.99/32", "2001:db8::99/128"]}, "decap_drop_inner"),
), ids=("source", "destination"))
def test_what_the_lists_do_not_allow_is_counted_on_the_backend(sites, lists, reason):
    site = sites(backends=1, decap=False)
    site.lab.attach_decap("b1", **lists)
    site.shunt.web()
    site.start()
    for version in (4, 6):
        before = decap_counters(site, "b1")
        assert len(unanswered(site, version)) == 3
        after = decap_counters(site, "b1")
        assert after[reason] >= before[reason] + 3
        assert after["decap_unwrapped"] == 0
