"""The real MicroPython, for the tests that need it."""

import pytest

from tests.support.nodes.micropython import find


@pytest.fixture(scope="session")
def micropython() -> str:
    """Return the path of the interpreter; the marker `micropython` skips where there is none."""
    found = find()
    assert found is not None
    return found
