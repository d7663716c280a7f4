"""A broker, somebody who publishes what a gateway would, and the dashboard between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.mosquitto import Mosquitto
from tests.support.processes.tui_publisher import TOPICS, Publisher
from tui.address import Address
from tui.app import TidegateApp


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto that lets anybody in."""
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def publisher(mosquitto: Mosquitto) -> Iterator[Publisher]:
    """A publisher at the fixture's Mosquitto."""
    opened = Publisher(mosquitto.port)
    yield opened
    opened.close()


@pytest.fixture
def application(mosquitto: Mosquitto) -> TidegateApp:
    return TidegateApp(Address("127.0.0.1", mosquitto.port), TOPICS)
