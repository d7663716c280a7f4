from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mosquitto import Mosquitto


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Mosquitto]:
    """Give a running Mosquitto that stands for the fleet's broker."""
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.kill()
