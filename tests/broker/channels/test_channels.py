import pytest

from gateway.broker.own_names import PREFIX
from gateway.mqtt.packets import MQTT_3_1_1, ConnAck, Connect, PubAck, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings, Unconfigured
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    got,
    publish,
    settings,
)
from tests.support.broker.durable_broker import DurableHarness


def test_an_empty_channel_goes_on() -> None:
    harness = durable(memory_messages=2, max_attempts=9)
    client = consumer(harness, "c", receive_maximum=2)
    publish(harness, "abcdefgh")
    client.take()
    client.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))
    channel = channel_of(harness)
    harness.broker.channels.empty(channel)
    assert (channel.depth, channel.in_flight, channel.figures.dropped) == (0, 0, 8)
    publish(harness, "z")
    assert "z" in got(client)
    publish(harness, "y")
    harness.pass_time(2)
    harness.crash()
    assert got(consumer(harness, "d")) in ("", "y")


def test_a_deleted_channel_is_gone_with_its_messages() -> None:
    harness = durable()
    client = consumer(harness, "c")
    harness.broker.channels.pause(channel_of(harness))
    publish(harness, "ab")
    harness.broker.channels.delete(channel_of(harness))
    assert not harness.broker.channels.named("jobs")
    publish(harness, "c")  # a shared subscription, as any other
    assert got(client) == "c"
    harness.settings = BrokerSettings()
    harness.pass_time(2)
    harness.crash()
    assert not len(harness.broker.channels)


def test_a_temporary_channel_begins_and_ends_with_its_consumers() -> None:
    harness = durable(temporary=True, memory_messages=3)
    publish(harness, "a")
    assert not len(harness.broker.channels)
    first, second = consumer(harness, "a", receive_maximum=1), consumer(harness, "b")
    second.send(Unsubscribe(5, [SHARED]))
    second.take()
    publish(harness, "bcdef")
    assert channel_of(harness).figures.dropped == 1
    assert got(first) == "bcde"
    first.drop()
    harness.pass_time(0)
    assert not len(harness.broker.channels)
    publish(harness, "x")
    assert got(consumer(harness, "c")) == ""
    harness.crash()
    assert not len(harness.broker.channels)


def test_a_temporary_channel_can_be_emptied_and_subscribed_to_again() -> None:
    harness = durable(temporary=True)
    client = consumer(harness, "a", receive_maximum=1)
    publish(harness, "bc")
    harness.broker.channels.empty(channel_of(harness))
    client.subscribe(SHARED, 1)
    harness.pass_time(0)
    client.send(PubAck(1))
    publish(harness, "d")
    assert got(client)[-1] == "d"


def test_a_channel_that_becomes_temporary_loses_what_was_kept() -> None:
    harness = durable()
    publish(harness, "a")
    harness.settings = settings(temporary=True)
    harness.crash()
    assert got(consumer(harness, "c")) == ""
    harness.settings = settings()
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_a_channel_that_is_not_configured_any_more_stays() -> None:
    harness = durable()
    publish(harness, "a")
    harness.settings = BrokerSettings()
    harness.crash()
    assert got(consumer(harness, "c")) == "a"


def test_a_channel_that_began_with_its_consumers_comes_back_before_them() -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=Unconfigured.DURABLE))
    harness.persistent("c").subscribe(SHARED, 1)
    harness.clients[-1].drop()
    publish(harness, "ab")
    for _ in range(2):
        harness.pass_time(2)
        harness.crash()
        assert (channel_of(harness).depth, len(channel_of(harness).consumers)) == (2, 1)
    assert got(harness.persistent("c")) == "ab"


@pytest.mark.parametrize("kind", [Unconfigured.TEMPORARY, Unconfigured.DURABLE])
def test_any_shared_subscription_can_be_a_channel(kind: Unconfigured) -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=kind, maximum_channels=1))
    client = consumer(harness, "c")
    other = harness.connect("d")
    other.subscribe("$share/other/t/#", 1)
    assert harness.broker.channels.refused == 1
    client.drop()
    harness.pass_time(0)
    publish(harness, "ab")
    assert got(other) == "ab"
    expected = "ab" if kind is Unconfigured.DURABLE else ""
    assert got(consumer(harness, "e")) == expected


def test_no_client_may_have_the_name_of_a_channel() -> None:
    harness = durable()
    client = harness.open(MQTT_3_1_1)
    client.send(Connect(f"{PREFIX}jobs/t/#", MQTT_3_1_1))
    connack = client.take_only(ConnAck)
    assert connack.reason_code != ReasonCode.SUCCESS


def test_a_channel_that_a_client_makes_and_leaves_stops_no_publisher() -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=Unconfigured.DURABLE))
    maker = harness.persistent("maker")
    maker.subscribe("$share/mine/#", 1)
    maker.drop()
    for _ in range(2):
        (channel,) = harness.broker.channels
        channel.queue.maximum_messages = 2
        assert [harness.publish("t", qos=1) for _ in range(4)] == [0] * 4
        assert channel.depth == 2
        harness.crash()
