# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs for the tests: each under a name of its own, gone when its module is done."""

import itertools
import os

import pytest
from balancer import Balancer
from http_server import start_http
from lab import Lab
from tshark import Watch

numbers = itertools.count(1)


class Site:
    """A lab with nginx on its backends and an instance of shunt that is attached and running.  What passes the router is
    captured, for tshark to judge."""

    def __init__(self, backends=3, **options):
        self.lab = Lab(f"t{os.getpid()}-{next(numbers)}")
        self.shunt = self.watch = None
        try:
            self.lab.up(backends=backends, **options)
            self.watch = Watch(self.lab, "router", ("client", "lb0", "lb1"), self.lab.dir / "watch.pcapng")
            start_http(self.lab)
            self.shunt = Balancer(self.lab)
        except BaseException:
            self.close()
            raise

    def start(self, interfaces=("lb0",)):
        """After a document is written."""
        self.shunt.attach(*interfaces)
        self.shunt.start()
        return self

    def close(self):
        """What tshark has to say against the frames that it saw."""
        if self.shunt:
            self.shunt.stop()
        watch, self.watch = self.watch, None
        try:
            wrong, stacks = watch.end() if watch else ({}, {})
        finally:
            self.lab.down()
        return [f"{len(wrong)} of {sum(stacks.values())} frames, the first: {dict(list(wrong.items())[:5])}"] if wrong else []


@pytest.fixture(scope="module")
def sites():
    """A maker of sites; all of them are taken down with the module."""
    made = []

    def make(**options):
        made.append(Site(**options))
        return made[-1]

    yield make
    assert [text for site in made for text in site.close()] == []


@pytest.fixture(scope="module")
def web(sites):
    """Three backends of equal weight, reached over IPv4; port 80 of both service addresses."""
    site = sites()
    site.shunt.web()
    return site.start()
