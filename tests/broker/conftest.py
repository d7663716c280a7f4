import pytest

from tests.support.broker.broker_harness import Harness


@pytest.fixture
def harness() -> Harness:
    return Harness()
