from dataclasses import replace

import pytest

from gateway.mqtt.packets import PingReq, Subscribe
from gateway.mqtt.properties import Properties
from gateway.settings.channel import Choice
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    got,
    publish,
    settings,
)
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request
from tests.support.table import table


def holding(harness: Harness, deliver: str, **fields: object) -> MemoryClient:
    """A consumer that asks for a delivery policy."""
    client = harness.connect("c", **fields)  # type: ignore[arg-type]  # by name
    properties = Properties(user_properties=(("$deliver", deliver),))
    client.send(Subscribe(9, [request(SHARED, 1)], properties))
    client.take()
    return client


@pytest.mark.uncovered
@table("choice", [*Choice])
@table("qos", [0, 1])
def test_a_consumer_has_messages_held_as_its_subscription_asks(choice: Choice, qos: int) -> None:
    harness = durable(choice=choice)
    client = holding(harness, "n=3,ms=1000")
    publish(harness, "ab", qos=qos)
    assert got(client) == ""
    publish(harness, "c", qos=qos)
    assert got(client) == "abc"
    publish(harness, "d", qos=qos)
    assert got(client) == ""
    harness.pass_time(1)
    assert got(client) == "d"


def test_a_consumer_has_messages_held_as_its_class_says() -> None:
    buffered = DeliverySettings(device=DeliveryClassSettings("buffered", 3, 1000, 1000))
    harness = Harness(replace(settings(temporary=True), delivery=buffered))
    client = consumer(harness, "c")
    publish(harness, "ab")
    assert got(client) == ""
    client.send(PingReq())
    assert got(client) == "ab"


def test_nothing_is_held_until_it_times_out() -> None:
    harness = durable(inflight_timeout=1.0)
    client = holding(harness, "n=3,ms=9000")
    publish(harness, "a")
    harness.pass_time(0.4)
    assert got(client) == ""
    harness.pass_time(0.1)
    assert got(client) == "a"
    assert channel_of(harness).figures.timed_out == 0


def test_nothing_is_held_by_a_full_window() -> None:
    harness = durable()
    client = holding(harness, "n=3,ms=9000", receive_maximum=2)
    publish(harness, "ab")
    assert got(client) == "ab"
