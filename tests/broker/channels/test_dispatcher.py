import pytest

from gateway.broker.subscribing import subscribe
from gateway.mqtt.packets import Publish, Unsubscribe
from gateway.mqtt.properties import Properties
from gateway.session.restored import StoredSubscription
from gateway.settings.channel import Choice
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    eight,
    got,
    publish,
    settings,
)


def test_what_is_published_at_qos_0_is_acknowledged_by_nobody() -> None:
    harness = durable()
    client = consumer(harness, "c")
    publish(harness, "ab", qos=0)
    assert got(client) == "ab"
    figures = channel_of(harness).figures
    assert (figures.delivered, figures.acknowledged, figures.unacknowledged) == (2, 0, 2)


@pytest.mark.parametrize("choice", Choice)
def test_a_consumer_of_an_earlier_version_with_qos_0_gets_what_is_of_qos_0(choice: Choice) -> None:
    """What is to be acknowledged waits for somebody who does that."""
    harness = durable(choice=choice)
    old = harness.persistent("old")
    subscribe.route(
        harness.broker, harness.session("old"), StoredSubscription(SHARED, 0), where=None
    )
    publish(harness, "ab")
    publish(harness, "c", qos=0)
    assert got(old) == ""
    channel = channel_of(harness)
    assert (channel.depth, channel.figures.acknowledged) == (3, 0)
    new = got(consumer(harness, "new"))
    assert (new[:2], new[2:] + got(old)) == ("ab", "c")
    harness.broker.lost(harness.broker.clients["new"], harness.instant)
    publish(harness, "d", qos=0)
    assert got(old) == "d"


def test_a_temporary_channel_has_consumers_of_qos_0() -> None:
    harness = Harness(settings(temporary=True))
    client = consumer(harness, "c", 0)
    publish(harness, "ab")
    assert got(client) == "ab"
    figures = channel_of(harness).figures
    assert (figures.acknowledged, figures.unacknowledged) == (0, 2)


def test_what_expires_is_not_given_out() -> None:
    harness = durable()
    publisher = harness.connect("p")
    expiring = Properties(message_expiry_interval=5)
    publisher.send(Publish("t/a", b"a", 1, packet_id=1, properties=expiring))
    publish(harness, "b")
    harness.now += 6  # before the sweep
    client = consumer(harness, "c")
    assert got(client) == "b"
    assert channel_of(harness).figures.expired == 1
    client.send(Unsubscribe(5, [SHARED]))
    publisher.send(Publish("t/a", b"a", 1, packet_id=1, properties=expiring))
    harness.pass_time(60)
    assert channel_of(harness).depth == 0


def test_many_messages_of_one_read_are_shared_out() -> None:
    harness = durable()
    clients = [consumer(harness, name) for name in "xy"]
    publisher = harness.connect("p")
    publisher.send(
        *(Publish("t/a", b"%d" % number, 1, packet_id=number + 1) for number in range(8))
    )
    found = [got(each) for each in clients]
    assert sum(map(len, found)) == 8
    assert min(map(len, found)) >= 3
    assert channel_of(harness).in_flight == 0
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_many_messages_of_qos_0_are_shared_out_too() -> None:
    harness = durable()
    clients = [consumer(harness, name) for name in "xy"]
    publisher = harness.connect("p")
    publisher.send(*(Publish("t/a", b"%d" % number) for number in range(8)))
    found = [got(each) for each in clients]
    assert sum(map(len, found)) == 8
    assert min(map(len, found)) >= 3


def test_what_consumers_have_no_room_for_waits_behind_what_they_got() -> None:
    harness = durable()
    harness.persistent("away").subscribe(SHARED, 1)
    harness.clients[-1].drop()
    consumers = [consumer(harness, name, receive_maximum=3) for name in "ab"]
    harness.connect("publisher").send(*eight())
    harness.commit()
    assert (channel_of(harness).in_flight, channel_of(harness).depth) == (6, 2)
    first = "".join(got(each, acknowledge=False) for each in consumers)
    assert sorted(first) == [*"012345"]
    harness.pass_time(2)
    harness.crash()
    assert got(consumer(harness, "c")) == "01234567"


def test_qos_0_is_shared_out_by_a_temporary_channel_too() -> None:
    harness = Harness(settings(temporary=True))
    consumers = [consumer(harness, name, 0) for name in "ab"]
    packets = [Publish("t/a", b"%d" % number, 0) for number in range(8)]
    harness.connect("publisher").send(*packets)
    assert [got(each) for each in consumers] == ["0123", "4567"]


def test_a_temporary_channel_queues_what_its_consumers_have_no_room_for() -> None:
    harness = Harness(settings(temporary=True, memory_messages=4))
    client = consumer(harness, "c", receive_maximum=3)
    harness.connect("publisher").send(*eight())
    assert (channel_of(harness).depth, channel_of(harness).figures.dropped) == (4, 1)
    assert got(client) == "0123456"


def test_who_has_work_gets_what_comes_together() -> None:
    harness = durable()
    consumers = [consumer(harness, name) for name in "ab"]
    publish(harness, "xy")
    harness.connect("publisher").send(*eight())
    assert [got(each) for each in consumers] == ["x01234567", "y"]


def test_a_packet_that_no_consumer_can_take_is_given_up() -> None:
    harness = durable()
    client = consumer(harness, "c", maximum_packet_size=50)
    harness.publish("t/a", b"x" * 100, 1)
    publish(harness, "b")
    assert got(client) == "b"
    channel = channel_of(harness)
    harness.pass_time(0)
    assert (channel.depth, channel.in_flight) == (0, 0)
    figures = channel.figures
    assert (figures.too_large, figures.dropped, figures.filtered) == (1, 1, 0)
    assert (figures.delivered, figures.acknowledged) == (1, 1)
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


@pytest.mark.parametrize("choice", Choice)
def test_a_packet_goes_to_a_consumer_that_can_take_it(choice: Choice) -> None:
    harness = durable(choice=choice, max_attempts=1)
    small = [consumer(harness, name, maximum_packet_size=50) for name in "ab"]
    middle = consumer(harness, "c", maximum_packet_size=60)
    large = consumer(harness, "d")
    for _ in range(8):
        harness.publish("t/a", b"x" * 100, 1)
    harness.pass_time(0)
    assert "".join(map(got, (*small, middle))) == ""
    assert got(large) == "x" * 800
    figures = channel_of(harness).figures
    assert (figures.too_large, figures.delivered, figures.acknowledged) == (0, 8, 8)
    assert harness.counters.count("publish/messages/dropped") == 0


def test_of_messages_read_together_the_large_ones_go_to_another() -> None:
    harness = durable()
    small = consumer(harness, "a", maximum_packet_size=50)
    sizes = (1, 100, 1, 100)
    harness.connect("publisher").send(
        *(Publish("t/a", b"x" * size, 1, packet_id=n + 1) for n, size in enumerate(sizes))
    )
    large = consumer(harness, "b", receive_maximum=1)
    assert got(small) == "xx"
    publish(harness, "y")
    assert got(small) + got(large) == "y"
    assert channel_of(harness).figures.too_large == 2
    assert channel_of(harness).in_flight == 0


def test_a_packet_that_is_too_large_is_a_dead_letter() -> None:
    harness = durable(dead_letter_topic="dead", max_attempts=3)
    consumer(harness, "c", maximum_packet_size=50)
    dead = harness.connect("dead")
    dead.subscribe("dead", 1)
    harness.publish("t/a", b"x" * 100, 1)
    harness.pass_time(0)
    assert got(dead) == "x" * 100
    figures = channel_of(harness).figures
    assert (figures.too_large, figures.dead_lettered, figures.dropped) == (1, 1, 0)
