# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs for the tests: each under a name of its own, gone when its module is done."""

import itertools
import os

import pytest
from balancer import Balancer
from http_server import start_http
from lab import Lab

numbers = itertools.count(1)


class Site:
    """A lab with nginx on its backends and an instance of shunt that is attached and running."""

    def __init__(self, backends=3, **options):
        self.lab = Lab(f"t{os.getpid()}-{next(numbers)}")
        self.shunt = None
        try:
            self.lab.up(backends=backends, **options)
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
        if self.shunt:
            self.shunt.stop()
        self.lab.down()


@pytest.fixture(scope="module")
def sites():
    """A maker of sites; all of them are taken down with the module."""
    made = []

    def make(**options):
        made.append(Site(**options))
        return made[-1]

    yield make
    for site in made:
        site.close()


@pytest.fixture(scope="module")
def web(sites):
    """Three backends of equal weight, reached over IPv4; port 80 of both service addresses."""
    site = sites()
    site.shunt.web()
    return site.start()
