# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))

from shuntlab import Shunt  # noqa: E402  pylint: disable=wrong-import-position
from stream import document, first  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture
def shunt():
    """An instance with the stream's first document, not started."""
    with Shunt() as made:
        made.write(json.dumps(document(first(), made.dir / "hash.key")))
        yield made


@pytest.fixture
def full(shunt):
    """The same with its state on a file system of 2 MiB: a hundred former revisions, of two pages each, find room."""
    with shunt.small_disk("2m"):
        yield shunt
