"""A real broker, a publisher and a patient look at conditions."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import cast

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from textual import events
from textual.app import App
from textual.pilot import Pilot

from tests.support.mosquitto import mosquitto_program
from tests.support.ports import free_port
from tui.address import Address
from tui.app import TidegateApp
from tui.topics import Topics

DEADLINE = 60.0
"""seconds in which a condition must come true"""
TOPICS = Topics("told", "sensors/#", "order/uplink")
"""Mosquitto keeps topics with `$` for itself"""
FIGURES = "told/broker/"


def eventually(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail at the deadline."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.01)


def listens(port: int) -> bool:
    """Return whether somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def rendered(app: App[None]) -> str:
    """Return the text on the screen, line by line, as a terminal would show it."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def until(
    condition: Callable[[], object], told: Callable[[], str] = str, deadline: float = DEADLINE
) -> None:
    """Return when the condition holds; fail at the deadline with what is `told`."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"not in time: {told()}"
        await asyncio.sleep(0.02)


async def shown(pilot: Pilot[None], *texts: str) -> str:
    """Return the screen's text once all of these are in it; fail at the deadline."""
    app = pilot.app
    await until(
        lambda: all(text in rendered(app) for text in texts), lambda: f"{texts}\n{rendered(app)}"
    )
    return rendered(app)


async def gone(pilot: Pilot[None], text: str) -> str:
    """Return the screen's text once this is no longer in it; fail at the deadline."""
    app = pilot.app
    await until(lambda: text not in rendered(app), lambda: f"{text} in\n{rendered(app)}")
    return rendered(app)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each after all widgets have seen the one before.

    Unlike Pilot.press this does not wait for an idle processor: a live dashboard has none.
    """
    for key in keys:
        pilot.app.post_message(events.Key(key, " " if key == "space" else None))
        await pilot._wait_for_screen()


class Mosquitto:
    """A Mosquitto on a port of its own that can be stopped and started again."""

    def __init__(self, folder: Path, settings: str = "allow_anonymous true\n") -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._file = folder / "mosquitto.conf"
        self._file.write_text(f"listener {self.port} 127.0.0.1\n{settings}")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [mosquitto_program(), "-c", str(self._file)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually(lambda: listens(self.port))

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(DEADLINE)
            self._process = None


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto that lets anybody in."""
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.stop()


class Publisher:
    """Publishes what a gateway and its sensors would, and hears orders."""

    def __init__(self, port: int) -> None:
        self.orders: list[str] = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = lambda _client, _userdata, message: self.orders.append(
            bytes(message.payload).decode()
        )
        subscribed = Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        eventually(self._client.is_connected)
        self._client.subscribe(TOPICS.uplink_order, 1)
        eventually(subscribed.is_set)

    def tell(self, **figures: object) -> None:
        """Publish retained figures; `__` in a name stands for `/`."""
        for name, value in figures.items():
            self.publish(FIGURES + name.replace("__", "/"), str(value).encode(), retain=True)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish, and return when the broker has it."""
        self._client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(DEADLINE)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def publisher(mosquitto: Mosquitto) -> Iterator[Publisher]:
    """A publisher at the fixture's Mosquitto."""
    opened = Publisher(mosquitto.port)
    yield opened
    opened.close()


@pytest.fixture
def application(mosquitto: Mosquitto) -> TidegateApp:
    return TidegateApp(Address("127.0.0.1", mosquitto.port), TOPICS)


async def connected(pilot: Pilot[None]) -> None:
    """Return when the retained figures can be told: the subscription is in place."""
    await shown(pilot, "● connected mqtt://")
    await until(lambda: cast("TidegateApp", pilot.app).client.hears)
