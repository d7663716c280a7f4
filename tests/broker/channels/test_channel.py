from gateway.broker.channels.channel import AT_ONCE
from gateway.mqtt.packets import PubAck, Publish, Subscribe
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.subscribing import request


def test_messages_wait_without_a_consumer_and_come_in_order() -> None:
    harness = durable()
    publish(harness, "abc")
    assert channel_of(harness).depth == 3
    assert got(consumer(harness, "c")) == "abc"
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (0, 0)
    publish(harness, "d")
    assert got(harness.clients[-1]) == "d"


def test_what_waits_and_what_is_in_flight_survives_a_crash() -> None:
    harness = durable()
    publish(harness, "abcd")
    first = consumer(harness, "c", receive_maximum=2)
    assert got(first, acknowledge=False) == "ab"
    first.send(PubAck(1))
    harness.pass_time(2)  # the deletion is on disk
    harness.crash()
    assert channel_of(harness).depth == 3
    assert got(consumer(harness, "d")) == "bcd"


def test_a_message_on_disk_alone_comes_in_its_turn() -> None:
    harness = durable(memory_messages=2)
    publish(harness, "abcdefghij")
    assert channel_of(harness).queue.paged > 0
    assert got(consumer(harness, "c", receive_maximum=1)) == "abcdefghij"


def test_each_channel_and_each_subscription_gets_every_message() -> None:
    harness = DurableHarness(
        BrokerSettings(channels=(ChannelSettings("a", "t/#"), ChannelSettings("b", "+/a")))
    )
    plain, shared = harness.connect("plain"), harness.connect("shared")
    plain.subscribe("t/a", 1)
    shared.subscribe("$share/c/t/a", 1)
    publish(harness, "x")
    assert (got(plain), got(shared)) == ("x", "x")
    for name, topic_filter in (("a", "$share/a/t/#"), ("b", "$share/b/+/a")):
        client = harness.connect(name)
        client.subscribe(topic_filter, 1)
        assert got(client) == "x"


def test_messages_keep_their_qos_retain_and_identifier() -> None:
    harness = durable()
    for qos in (0, 1, 2):
        harness.publish("t/a", b"%d" % qos, qos, retain=True)
    client = harness.connect("c")
    properties = Properties(subscription_identifiers=(7,))
    client.send(Subscribe(5, [request(SHARED, 1, retain_as_published=True)], properties))
    found = [*messages(client)]
    assert [each.qos for each in found] == [0, 1, 1]
    assert [each.retain for each in found] == [True] * 3
    assert {each.properties.subscription_identifiers for each in found} == {(7,)}


def test_a_full_channel_refuses_the_publisher() -> None:
    harness = durable(maximum_messages=2)
    publisher = harness.connect("p")
    codes = []
    for number in (1, 2, 3):
        publisher.send(Publish("t/a", b"x", 1, packet_id=number))
        answer = publisher.take_only(PubAck)
        codes.append(answer.reason_code)
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]


def test_a_full_channel_may_give_up_the_oldest_instead() -> None:
    harness = durable(maximum_messages=2, when_full=WhenFull.DROP_OLDEST)
    publish(harness, "abcd")
    assert channel_of(harness).figures.dropped == 2
    assert got(consumer(harness, "c")) == "cd"


def test_messages_outside_the_bounds_of_size_are_not_for_the_channel() -> None:
    harness = durable(minimum_message_size=2, maximum_message_size=3, maximum_messages=2)
    plain = harness.connect("plain")
    plain.subscribe("t/#", 1)
    publisher, sizes = harness.connect("publisher"), (1, 2, 4, 5, 3)
    packets = [Publish("t/a", b"x" * size, 1, packet_id=size) for size in sizes]
    publisher.send(*packets)
    harness.commit()
    answers = [each for each in publisher.take() if isinstance(each, PubAck)]
    assert [each.reason_code for each in answers] == [ReasonCode.SUCCESS] * 5
    assert len([*messages(plain)]) == 5
    assert (channel_of(harness).depth, channel_of(harness).figures.outside_size) == (2, 3)
    assert harness.publish("t/a", b"xx", 1) == ReasonCode.QUOTA_EXCEEDED
    assert harness.publish("t/a", b"x", 1) == ReasonCode.SUCCESS  # it needs no room
    assert [each.payload for each in messages(consumer(harness, "c"))] == [b"xx", b"xxx"]


def test_what_is_given_out_at_once_times_out() -> None:
    harness = durable(inflight_timeout=5.0)
    slow, other = consumer(harness, "slow"), consumer(harness, "other", receive_maximum=1)
    publish(harness, "ab")
    assert (got(slow, acknowledge=False), got(other)) == ("a", "b")
    harness.pass_time(5)
    assert got(other) == "a"
    assert channel_of(harness).figures.timed_out == 1


def test_a_long_queue_is_given_out_in_several_turns() -> None:
    harness = durable()
    consumer(harness, "c")
    channel = channel_of(harness)
    harness.broker.channels.pause(channel)
    publish(harness, "a" * (2 * AT_ONCE + 1))
    channel.waiting.paused = False
    channel.pump(harness.now)
    assert (channel.depth, channel.in_flight) == (AT_ONCE + 1, AT_ONCE)
    assert harness.now < channel.alarm.second < harness.now + 0.001
    harness.pass_time(0.001)
    assert channel.depth == 0
