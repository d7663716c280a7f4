from collections.abc import Iterator
from itertools import pairwise

import pytest

from gateway.broker.channels import coming_back
from gateway.broker.channels.channel import PREFIX, Channel
from gateway.broker.channels.settings import (
    ChannelSettings,
    ChannelsSettings,
    Choice,
    Unconfigured,
)
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    ConnAck,
    Connect,
    PubAck,
    Publish,
    Subscribe,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.limits import WhenFull
from gateway.session.queue.bounds import HEAD_BYTES
from tests.support.broker_harness import Harness
from tests.support.durable_broker import DurableHarness
from tests.support.memory_client import MemoryClient
from tests.support.subscribing import request

SHARED = "$share/jobs/t/#"
TIMEOUT = 10.0


def settings(**fields: object) -> BrokerSettings:
    found = ChannelSettings("jobs", "t/#", **{"inflight_timeout": TIMEOUT, **fields})  # type: ignore[arg-type]  # by name
    return BrokerSettings(channels=ChannelsSettings((found,)))


def durable(**fields: object) -> DurableHarness:
    return DurableHarness(settings(**fields))


def channel_of(harness: Harness, name: str = "jobs") -> Channel:
    (channel,) = harness.broker.channels.named(name)
    return channel


def publish(harness: Harness, payloads: str, topic: str = "t/a", qos: int = 1) -> None:
    for payload in payloads:
        harness.publish(topic, payload.encode(), qos)


def consumer(harness: Harness, name: str, qos: int = 1, **fields: object) -> MemoryClient:
    client = harness.connect(name, **fields)  # type: ignore[arg-type]  # by name
    client.subscribe(SHARED, qos)
    return client


def messages(client: MemoryClient) -> Iterator[Publish]:
    return (each for each in client.take() if isinstance(each, Publish))


def eight() -> list[Publish]:
    """Messages of one read, which are one span."""
    return [Publish("t/a", b"%d" % number, 1, packet_id=number + 1) for number in range(8)]


def got(client: MemoryClient, *, acknowledge: bool = True) -> str:
    """What came, which is acknowledged until nothing more comes."""
    found = ""
    while some := [*messages(client)]:
        found += "".join(each.payload.decode() for each in some)
        if not acknowledge:
            break
        for each in some:
            if each.qos:
                client.send(PubAck(each.packet_id))
    return found


# --- the queue ------------------------------------------------------------------------------


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
        BrokerSettings(
            channels=ChannelsSettings((ChannelSettings("a", "t/#"), ChannelSettings("b", "+/a")))
        )
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


def test_a_consumer_of_qos_0_acknowledges_by_having_it_sent() -> None:
    harness = durable()
    client = consumer(harness, "c", 0)
    publish(harness, "ab")
    assert got(client) == "ab"
    assert channel_of(harness).figures.acknowledged == 2
    harness.crash()
    assert channel_of(harness).depth == 0


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


def test_a_full_channel_refuses_the_publisher() -> None:
    harness = durable(maximum_messages=2)
    publisher = harness.connect("p")
    codes = []
    for number in (1, 2, 3):
        publisher.send(Publish("t/a", b"x", 1, packet_id=number))
        (answer,) = publisher.take()
        assert isinstance(answer, PubAck)
        codes.append(answer.reason_code)
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]


def test_a_full_channel_may_give_up_the_oldest_instead() -> None:
    harness = durable(maximum_messages=2, when_full=WhenFull.DROP_OLDEST)
    publish(harness, "abcd")
    assert channel_of(harness).figures.dropped == 2
    assert got(consumer(harness, "c")) == "cd"


# --- consumers ------------------------------------------------------------------------------


def test_consumers_take_turns() -> None:
    harness = durable()
    clients = [consumer(harness, name) for name in "xyz"]
    publish(harness, "abcdef")
    found = [got(each) for each in clients]
    assert sorted(map(len, found)) == [2, 2, 2]
    assert sorted("".join(found)) == list("abcdef")


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


def test_of_many_messages_some_can_be_acknowledged_and_the_others_come_back() -> None:
    harness = durable()
    client = consumer(harness, "x", receive_maximum=5)
    publisher = harness.connect("p")
    publisher.send(
        *(Publish("t/a", b"%d" % number, 1, packet_id=number + 1) for number in range(8))
    )
    assert got(client, acknowledge=False) == "01234"
    for packet_id in (2, 4):
        client.send(PubAck(packet_id))
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (1, 5)
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).figures.timed_out == 5
    harness.pass_time(2)
    harness.crash()
    assert sorted(got(consumer(harness, "y"))) == list("024567")


@pytest.mark.parametrize("choice", [*Choice])
def test_every_choice_gives_each_message_to_one(choice: Choice) -> None:
    harness = durable(choice=choice)
    clients = [consumer(harness, name) for name in "xyz"]
    for number in range(12):
        publish(harness, chr(97 + number), f"t/{number % 5}")
    assert sorted("".join(got(each) for each in clients)) == list("abcdefghijkl")


def test_random_consumers_are_drawn_and_not_in_turn() -> None:
    harness = durable(choice=Choice.RANDOM)
    clients = [consumer(harness, name) for name in "abc"]
    order = []
    for _ in range(60):
        publish(harness, "x")
        order += [place for place, each in enumerate(clients) if got(each)]
    assert min(order.count(place) for place in range(3)) > 8
    pairs = {*pairwise(order)}
    assert len(pairs) == 9, "after each of them comes any"


def test_who_has_the_fewest_in_flight_gets_the_next() -> None:
    harness = durable(choice=Choice.LEAST_INFLIGHT)
    busy, idle = consumer(harness, "busy"), consumer(harness, "idle")
    publish(harness, "ab")
    assert got(idle, acknowledge=True) in ("a", "b")
    publish(harness, "c")
    assert got(idle) == "c"
    assert len(got(busy)) == 1


def test_a_topic_sticks_to_its_consumer_and_waits_for_it() -> None:
    harness = durable(choice=Choice.STICKY)
    clients = [consumer(harness, name, receive_maximum=1) for name in "xyz"]
    for payload in "abc":
        publish(harness, payload, "t/1")
    found = [got(each) for each in clients]
    assert sorted(found) == ["", "", "abc"]


def test_a_full_window_waits() -> None:
    harness = durable()
    client = consumer(harness, "c", receive_maximum=1)
    publish(harness, "ab")
    assert got(client, acknowledge=False) == "a"
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (1, 1)


def test_filters_and_rights_of_consumers_are_asked() -> None:
    harness = durable()
    low, high = harness.connect("low"), harness.connect("high")
    for client, where in ((low, "payload < 5"), (high, "payload >= 5 AND payload < 9")):
        client.subscribe_all([request(SHARED, 1)], where=where)
    publish(harness, "1679")
    assert (got(low), got(high)) == ("1", "67")
    assert channel_of(harness).figures.filtered == 1


def test_a_channel_has_so_many_consumers_at_most() -> None:
    harness = durable(maximum_consumers=1)
    client = consumer(harness, "a")
    assert harness.connect("b").subscribe(SHARED, 1) == ReasonCode.QUOTA_EXCEEDED
    assert client.subscribe(SHARED, 1) == ReasonCode.GRANTED_QOS_1
    assert harness.counters.count("tidegate/refused/consumers") == 1


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


def test_a_packet_that_no_consumer_can_take_is_given_up() -> None:
    harness = durable()
    client = consumer(harness, "c", maximum_packet_size=50)
    harness.publish("t/a", b"x" * 100, 1)
    publish(harness, "b")
    assert got(client) == "b"
    assert channel_of(harness).in_flight == 0


# --- in flight ------------------------------------------------------------------------------


def test_a_message_that_is_not_acknowledged_in_time_goes_to_another() -> None:
    harness = durable()
    first = consumer(harness, "a")
    publish(harness, "x")
    second = consumer(harness, "b")
    assert got(first, acknowledge=False) == "x"
    harness.pass_time(TIMEOUT / 2)
    assert got(second) == ""
    harness.pass_time(TIMEOUT / 2)
    (again,) = messages(second)
    assert again.payload == b"x"
    assert again.properties.user_properties == (("attempt", "2"),)
    first.send(PubAck(1))  # too late
    assert channel_of(harness).in_flight == 1
    second.send(PubAck(again.packet_id))
    figures = channel_of(harness).figures
    assert (channel_of(harness).in_flight, figures.timed_out, figures.acknowledged) == (0, 1, 1)


def test_the_end_of_a_connection_gives_back_what_it_had() -> None:
    for session_expiry in (0, 60):
        harness = durable()
        first = consumer(harness, "a", session_expiry=session_expiry)
        first.subscribe("u", 1)
        publish(harness, "abc")
        publish(harness, "u", "u")
        first.send(PubAck(2))
        second = consumer(harness, "b")
        first.drop()
        harness.pass_time(0)
        assert got(second) == "ac"
        back = harness.connect("a", session_expiry=60, clean_start=False)
        assert got(back) == ("u" if session_expiry else "")  # that is its own


def test_what_has_timed_out_is_not_given_back_again() -> None:
    harness = durable()
    first = consumer(harness, "a")
    publish(harness, "x")
    second = consumer(harness, "b")
    harness.pass_time(TIMEOUT)
    first.drop()
    harness.pass_time(0)
    assert got(second) == "x"
    assert channel_of(harness).depth == 0


def test_a_refusal_gives_a_message_back_at_once() -> None:
    harness = durable()
    first = consumer(harness, "a")
    publish(harness, "x")
    second = consumer(harness, "b")
    first.take()
    first.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))
    harness.pass_time(0)
    assert got(second) == "x"
    publish(harness, "z")
    for client in (first, second):
        for each in messages(client):
            client.send(PubAck(each.packet_id, ReasonCode.NO_MATCHING_SUBSCRIBERS))  # no error
    assert channel_of(harness).in_flight == 0
    plain = harness.connect("plain")
    plain.subscribe("t/a", 1)
    publish(harness, "y")
    plain.take()
    plain.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))  # no channel's: as ever
    plain.send(PubAck(9, ReasonCode.UNSPECIFIED_ERROR))
    assert harness.session("plain").inflight.find(1) is None


def test_a_message_goes_to_the_dead_letters_after_its_last_attempt() -> None:
    harness = durable(max_attempts=2, dead_letter_topic="dead")
    dead = harness.connect("dead")
    dead.subscribe("dead", 1)
    client = consumer(harness, "a")
    publish(harness, "x")
    for _ in range(3):
        harness.pass_time(TIMEOUT)
    assert [each.payload for each in messages(client)] == [b"x", b"x"]
    (letter,) = messages(dead)
    assert letter.properties.user_properties == (
        ("topic", "t/a"),
        ("channel", "jobs"),
        ("attempt", "2"),
    )
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (0, 0)
    harness.pass_time(2)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_without_a_topic_for_them_dead_letters_are_given_up() -> None:
    harness = durable(max_attempts=1)
    consumer(harness, "a")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    assert (channel_of(harness).depth, channel_of(harness).figures.dropped) == (0, 1)


def test_a_dead_letter_that_is_refused_is_tried_again() -> None:
    harness = durable(max_attempts=1, dead_letter_topic="dead")
    full = harness.persistent("full")
    full.subscribe("dead", 1)
    full.drop()
    harness.session("full").queue.maximum_messages = 0
    client = consumer(harness, "a")
    publish(harness, "x")
    harness.pass_time(TIMEOUT)
    client.take()
    assert channel_of(harness).in_flight == 1
    harness.session("full").queue.maximum_messages = 10
    harness.pass_time(TIMEOUT)
    assert channel_of(harness).figures.dead_lettered == 1


@pytest.mark.parametrize("seconds", [0.0, 2.5])
def test_attempts_outlive_a_crash(seconds: float) -> None:
    """A message that ends consumer and gateway, at once or later, comes to the dead letters."""
    harness = durable(max_attempts=3, dead_letter_topic="dead")
    watcher = harness.persistent("watcher")
    watcher.subscribe("dead", 1)
    publish(harness, "xy")
    attempts = []
    while True:
        client = consumer(harness, "c", receive_maximum=1)
        (first,) = messages(client)
        if first.payload != b"x":
            break
        attempts.append(dict(first.properties.user_properties).get("attempt", "1"))
        harness.pass_time(seconds)
        harness.crash()
    # the first of all is on disk when it has lasted a second, the later ones are before they begin
    assert attempts == (["1", "2", "3"] if seconds else ["1", "1", "2", "3"])
    harness.pass_time(0)
    (dead,) = messages(harness.persistent("watcher"))
    assert dead.payload == b"x"
    assert dict(dead.properties.user_properties)["attempt"] == "3"
    client.send(PubAck(first.packet_id))
    harness.pass_time(2)
    assert harness.disk.connection.execute("SELECT * FROM attempt").fetchall() == []


def test_attempts_of_messages_that_are_gone_are_forgotten() -> None:
    harness = durable()
    publish(harness, "abcd")
    client = consumer(harness, "c", receive_maximum=2)
    assert got(client, acknowledge=False) == "ab"
    harness.pass_time(3)
    client.send(PubAck(1))  # and c is in flight
    harness.pass_time(0.5)
    publish(harness, "e")
    harness.pass_time(0.4)
    read = "SELECT sequence, attempts FROM attempt"
    assert harness.disk.connection.execute(read).fetchall() == [(2, 1)]
    harness.disk.connection.execute("INSERT INTO attempt VALUES (1, 1, 1), (1, 9, 1), (7, 1, 1)")
    harness.crash()
    channel = channel_of(harness)
    assert (channel.depth, channel.attempts) == (4, 0)
    harness.broker.channels.pause_filter("t/b")
    harness.broker.channels.pause_filter("t/a")
    client = consumer(harness, "d")
    assert channel.attempts == 1, "what is put aside keeps its attempts"
    harness.broker.channels.resume_filter("t/a")
    harness.pass_time(0)
    found = [*messages(client)]
    assert [each.payload for each in found] == [b"b", b"c", b"d", b"e"]
    given = [dict(each.properties.user_properties) for each in found]
    assert given == [{"attempt": "2"}, {}, {}, {}]
    harness.pass_time(2)
    assert len(harness.disk.connection.execute(read).fetchall()) == 4
    harness.broker.channels.empty(channel)
    harness.pass_time(2)
    assert harness.disk.connection.execute(read).fetchall() == []


def test_a_consumer_can_take_more_time_or_give_back() -> None:
    harness = durable()
    first = consumer(harness, "a")
    publish(harness, "xy")
    second = consumer(harness, "b")
    harness.pass_time(TIMEOUT - 1)
    channel = channel_of(harness)
    assert coming_back.touch(channel, "a", harness.now) == 2
    assert coming_back.touch(channel, "b", harness.now) == 0
    harness.pass_time(TIMEOUT - 1)
    assert got(second) == ""
    first.send(PubAck(1))
    publish(harness, "vw")  # one for each
    assert coming_back.requeue(channel, "a") == 2
    harness.pass_time(0)
    assert sorted(got(second)) == [*"vwy"]
    assert coming_back.requeue(channel, "a") == 0


# --- what can be done with a channel ----------------------------------------------------------


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
    assert not channel_of(harness).returned.holds_more
    assert channel_of(harness).queue.messages == 1
    channels.resume_filter("t/a")
    harness.pass_time(0)
    assert got(client) == ""
    channels.resume_filter("t/+")
    harness.pass_time(0)
    assert got(client).replace("\0", "") == "abcd"


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


def test_a_session_forgets_the_channels_that_have_ended() -> None:
    harness = durable(temporary=True)
    client = consumer(harness, "a")
    for _ in range(3):
        client.send(Unsubscribe(5, [SHARED]))
        client.take()
        harness.pass_time(0)
        client.subscribe(SHARED, 1)
    assert harness.session("a").consumes == (channel_of(harness),)


def test_what_is_put_off_comes_in_its_time_and_survives_a_crash() -> None:
    harness = durable()
    client = consumer(harness, "a", receive_maximum=2)
    publish(harness, "xyz")
    assert got(client, acknowledge=False) == "xy"
    channel = channel_of(harness)
    assert coming_back.requeue(channel, "a", harness.now + 5) == 2
    harness.pass_time(0)
    assert got(client) == "z"
    harness.pass_time(4)
    assert got(client) == ""
    publish(harness, "w")  # in flight meanwhile
    harness.pass_time(1)
    assert got(client, acknowledge=False) == "wx"
    coming_back.requeue(channel, "a", harness.now + 500)
    harness.broker.channels.empty(channel)
    assert channel.depth == 0
    publish(harness, "v")
    coming_back.requeue(channel, "a", harness.now + 500)
    harness.pass_time(2)
    harness.crash()
    assert got(consumer(harness, "b")) == "v"


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
    channels = ChannelsSettings(unconfigured=Unconfigured.DURABLE)
    harness = DurableHarness(BrokerSettings(channels=channels))
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
    harness = DurableHarness(
        BrokerSettings(channels=ChannelsSettings(unconfigured=kind, maximum=1))
    )
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
    (connack,) = client.take()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code != ReasonCode.SUCCESS


def test_figures_say_how_old_and_how_late() -> None:
    harness = durable()
    channel = channel_of(harness)
    assert channel.oldest(harness.now) == 0.0
    publish(harness, "ab")
    harness.pass_time(3)
    assert channel.oldest(harness.now) == 3.0
    client = consumer(harness, "c", receive_maximum=1)
    client.take()
    harness.pass_time(1)
    assert channel.oldest(harness.now) == 4.0
    client.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))
    assert channel.oldest(harness.now) == 4.0
    harness.pass_time(0)
    got(client)
    assert channel.figures.latency(50) == 4.0
