from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from gateway.session.queue.memory import HEAD_BYTES
from gateway.settings.channel import Choice
from tests.support.broker.channel_harness import (
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)


def test_a_paused_channel_queues_and_gives_out_nothing() -> None:
    harness = durable()
    client, channels = consumer(harness, "c"), harness.broker.channels
    channels.pause(channel_of(harness))
    publish(harness, "ab")
    assert got(client) == ""
    channels.resume(channel_of(harness))
    harness.pass_time(0)
    assert got(client) == "ab"


def test_a_paused_topic_filter_holds_its_messages_and_no_others() -> None:
    harness = durable(memory_messages=2, max_attempts=5)
    channels, channel = harness.broker.channels, channel_of(harness)
    client = consumer(harness, "c", receive_maximum=2)
    for topic in ("t/a", "t/b"):
        publish(harness, topic[-1], topic)
    channels.pause_filter("t/a/#")
    assert channels.pause_filter("t/b")
    assert [each.payload for each in messages(client)] == [b"a", b"b"]
    client.drop()
    harness.pass_time(0)
    client = consumer(harness, "d", receive_maximum=2)
    publish(harness, "x", "t/c")
    assert got(client) == "x", "what comes back waits, and others pass it"
    assert (channel.depth, channel.attempts) == (2, 1)
    assert channel.oldest(harness.now + 1) == 1
    publish(harness, "1", "t/a")
    publish(harness, "y", "t/c")
    assert got(client) == "", "as many are put aside as the channel keeps in memory"
    assert not channels.resume_filter("t/c")
    channels.resume_filter("t/b")
    harness.pass_time(0)
    assert got(client) == "by"
    harness.pass_time(2)
    harness.crash()
    channels, channel = harness.broker.channels, channel_of(harness)
    assert (channel.depth, [*channels.paused_filters]) == (2, [])
    channels.pause_filter("t/a")
    client = consumer(harness, "e")
    assert got(client) == ""
    channels.empty(channel)
    channels.resume_filter("t/a")
    harness.pass_time(0)
    assert (got(client), channel.depth) == ("", 0)


def test_what_was_put_aside_comes_back_in_its_order_and_large_messages_are_few() -> None:
    harness = durable(choice=Choice.STICKY)
    channels = harness.broker.channels
    client = consumer(harness, "c")
    assert all(channels.pause_filter(each) for each in ("t/a", "t/+", *map(str, range(98))))
    assert not channels.pause_filter("t/one/more")
    assert channels.pause_filter("t/a")
    publish(harness, "abc")
    harness.publish("t/a", bytes(HEAD_BYTES), 1)
    publish(harness, "d")
    assert not channel_of(harness).waiting.returned.holds_more
    assert channel_of(harness).queue.messages == 1
    channels.resume_filter("t/a")
    harness.pass_time(0)
    assert got(client) == ""
    channels.resume_filter("t/+")
    harness.pass_time(0)
    assert got(client).replace("\0", "") == "abcd"


def test_what_has_expired_is_given_up_although_its_topic_is_paused() -> None:
    harness = durable(memory_messages=1)
    harness.broker.channels.pause_filter("t/a")
    publish(harness, "x")  # is put aside, and no more fits there
    expiring = Properties(message_expiry_interval=5)
    publisher = harness.connect("p")
    publisher.send(Publish("t/a", b"a", 1, packet_id=1, properties=expiring))
    harness.now += 6  # before the sweep
    client = consumer(harness, "c")
    publish(harness, "b", "t/b")
    assert got(client) == "b"
    assert (channel_of(harness).depth, channel_of(harness).figures.expired) == (1, 1)


def test_all_that_waits_in_memory_is_listed_and_stays() -> None:
    harness = durable()
    client = consumer(harness, "c", receive_maximum=1)
    publish(harness, "ab")
    client.drop()
    harness.pass_time(0)
    waiting = channel_of(harness).waiting
    for _ in range(2):
        found = [(each.span.publication.packets.one(0), each.attempts) for each in waiting.offers()]
        assert found == [(b"a", 1), (b"b", 0)]
