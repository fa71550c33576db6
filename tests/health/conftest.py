# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A lab of six backends whose health is checked, shared by the module's tests."""

import itertools
import os

import pytest
from balancer import Balancer, wait_for
from http_server import start_http
from lab import Lab

numbers = itertools.count(1)
INTERVAL, TIMEOUT, RISE, FALL = 0.4, 0.3, 2, 3
OUT_WITHIN = FALL * INTERVAL + TIMEOUT
BACK_WITHIN = RISE * INTERVAL
SLACK = 1.0  # to publish, to ask and for a busy machine


class Checked:
    def __init__(self, backends=6, outer=4, **lab):
        self.outer = outer
        self.lab = Lab(f"h{os.getpid()}-{next(numbers)}")
        try:
            self.lab.up(backends=backends, **lab)
            start_http(self.lab)
            self.shunt = Balancer(self.lab)
        except BaseException:
            self.lab.down()
            raise

    def write(self, backends=None, ports=(80,), **health):
        lab = self.lab
        health = {"type": "tcp", "interval": f"{int(INTERVAL * 1000)}ms", "timeout": f"{int(TIMEOUT * 1000)}ms",
                  "rise": RISE, "fall": FALL, "hold-down": "0s", **health}
        pool = {b: (lab.address(b, self.outer), 1) for b in backends or lab.backends}
        rows = [{"name": f"www{v}", "address": lab.service(v), "protocol": "tcp", "ports": list(ports), "pool": "web"}
                for v in (4, 6)]
        self.shunt.write({"web": {"table": {"algorithm": "minimal", "size": 4099}, "backends": pool,
                                  "health": health}}, rows)

    def apply(self, **health):
        self.write(**health)
        self.shunt.ctl("reload")
        self.all_up()

    def rows(self):
        return {r["name"]: r for r in self.shunt.ctl("backend", "list")["backends"]}

    def all_up(self):
        wait_for("all backends are up", lambda: all(r["health"] == "up" and r["slots"] for r in self.rows().values()),
                 15)

    def wait_out(self, name="b1", within=OUT_WITHIN + SLACK):
        return wait_for(f"{name} has no slots", lambda: (r := self.rows()[name])["slots"] == 0 and r, within)

    def wait_back(self, name="b1", within=BACK_WITHIN + SLACK):
        return wait_for(f"{name} has slots", lambda: (r := self.rows()[name])["slots"] > 0 and r, within)

    def close(self):
        if self.shunt:
            self.shunt.stop()
        self.lab.down()


@pytest.fixture(scope="module")
def checked():
    site = Checked()
    try:
        site.write()
        site.shunt.attach("lb0")
        site.shunt.start()
        site.all_up()
        yield site
    finally:
        site.close()
