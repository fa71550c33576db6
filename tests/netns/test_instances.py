# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two instances on one machine, each with its own lab, the same addresses and pool name, do not see each other."""

from balancer import Load


def answers(site, requests):
    with Load(site.lab, site.lab.service(4), "--requests", str(requests)) as load:
        return {r[1] or r[2] for r in load.finish()["requests"]}


def test_two_instances_do_not_see_each_other(sites):
    one, two = sites(backends=2), sites(backends=3)
    one.shunt.web({"b1": 1, "b2": 0})
    two.shunt.web({"b1": 0, "b2": 1, "b3": 1})
    one.start()
    two.start()
    assert answers(one, 200) == {"b1"}
    assert two.shunt.counters()["forward_tx"] == 0
    assert answers(two, 200) == {"b2", "b3"}
    assert [row["name"] for row in one.shunt.ctl("backend", "list")["backends"]] == ["b1", "b2"]
    assert len(two.shunt.ctl("backend", "list")["backends"]) == 3
    assert one.shunt.pool()["digest"] != two.shunt.pool()["digest"]

    before = one.shunt.pool(), one.shunt.counters()["forward_tx"]
    two.shunt.ctl("backend", "del", "web/b3", "--now", "--wait")
    two.shunt.kill(9)
    two.shunt.loader("detach", "lb0")
    assert (one.shunt.pool(), one.shunt.counters()["forward_tx"]) == before
    assert answers(one, 200) == {"b1"}
    assert two.close() == []
    assert answers(one, 200) == {"b1"}
