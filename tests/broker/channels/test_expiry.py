"""What happens to messages that wait in a channel for too long."""

import pytest

from gateway.broker.publishing.expiry import SWEEP_INTERVAL
from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from tests.support.broker.channel_harness import (
    channel_of,
    consumer,
    durable,
    eight,
    got,
    messages,
    publish,
)

AGE = 100.0


def test_messages_that_are_too_old_are_dropped_with_and_without_consumers() -> None:
    harness = durable(maximum_age=AGE, memory_messages=3)
    publish(harness, "abcdefgh")
    harness.pass_time(AGE / 2)
    publish(harness, "xy")
    harness.pass_time(AGE / 2 + SWEEP_INTERVAL)
    channel = channel_of(harness)
    assert (channel.depth, channel.figures.expired) == (2, 8)
    harness.pass_time(2)
    harness.crash()
    assert got(consumer(harness, "c")) == "xy"


def test_a_consumer_that_comes_gets_nothing_that_is_too_old() -> None:
    harness = durable(maximum_age=AGE)
    publish(harness, "ab")
    harness.now += AGE  # and nothing was swept
    assert got(consumer(harness, "c")) == ""
    assert channel_of(harness).figures.expired == 2


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize(("age", "expiry"), [(AGE, None), (0.0, int(AGE))])
def test_messages_that_waited_too_long_may_be_dead_letters(
    swept: bool, age: float, expiry: int | None
) -> None:
    harness = durable(maximum_age=age, dead_letter_expired=True, dead_letter_topic="dead")
    dead, publisher = harness.connect("dead"), harness.connect("p")
    dead.subscribe("dead", 1)
    properties = Properties(message_expiry_interval=expiry)
    for each in eight():
        publisher.send(Publish(each.topic, each.payload, 1, packet_id=9, properties=properties))
    if swept:
        harness.pass_time(AGE + SWEEP_INTERVAL)
    else:
        harness.now += AGE
        consumer(harness, "c")
    harness.pass_time(0)
    letters = [*messages(dead)]
    assert [each.payload for each in letters] == [b"%d" % each for each in range(8)]
    assert {each.properties.message_expiry_interval for each in letters} == {None}
    figures = channel_of(harness).figures
    assert (figures.expired, figures.dead_lettered, channel_of(harness).depth) == (8, 8, 0)


def test_what_came_back_is_too_old_as_well() -> None:
    harness = durable(maximum_age=AGE)
    client = consumer(harness, "c")
    harness.connect("p").send(*eight())
    client.drop()
    harness.pass_time(AGE + SWEEP_INTERVAL)
    assert (channel_of(harness).depth, channel_of(harness).figures.expired) == (0, 8)
