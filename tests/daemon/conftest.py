# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import pytest

from shuntlab import Shunt, web


@pytest.fixture
def shunt():
    """An instance with a document of two backends, not started."""
    with Shunt() as made:
        made.write(web(2))
        yield made


@pytest.fixture
def running(shunt):
    yield shunt.start()
    assert shunt.process.poll() is None, f"shuntd ended by itself:\n{shunt.log_tail()}"
    assert shunt.stop() == 0, shunt.log_tail()


@pytest.fixture(scope="module")
def standing():
    """One running instance for many tests that must leave it as it is."""
    with Shunt() as made:
        made.write(web(2))
        made.start()
        yield made
        assert made.process.poll() is None, f"shuntd ended by itself:\n{made.log_tail()}"
