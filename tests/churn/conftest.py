# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sites for the tests: each under a name of its own, gone when its module is done."""

import itertools
import os

import pytest
from site_of_churn import Site

numbers = itertools.count(1)


@pytest.fixture(scope="module")
def sites():
    made = []

    def make(**options):
        made.append(Site(f"c{os.getpid()}-{next(numbers)}", **options))
        return made[-1]

    yield make
    for site in made:
        site.close()
