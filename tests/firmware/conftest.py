"""The real MicroPython, for the tests that need it."""

import pytest

from tests.support import micropython as interpreter


@pytest.fixture(scope="session")
def micropython() -> str:
    """Return the path of the interpreter, or skip."""
    found = interpreter.find()
    if found is None:
        pytest.skip(interpreter.MISSING)
    return found
