from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.channel_harness import (
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)


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
    assert again.properties.user_properties[-1] == ("attempt", "2")
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


def test_a_consumer_can_take_more_time_or_give_back() -> None:
    harness = durable()
    first = consumer(harness, "a")
    publish(harness, "xy")
    second = consumer(harness, "b")
    harness.pass_time(TIMEOUT - 1)
    channel = channel_of(harness)
    assert channel.deliveries.touch("a", harness.now) == 2
    assert channel.deliveries.touch("b", harness.now) == 0
    harness.pass_time(TIMEOUT - 1)
    assert got(second) == ""
    first.send(PubAck(1))
    publish(harness, "vw")  # one for each
    assert channel.requeue("a") == 2
    harness.pass_time(0)
    assert sorted(got(second)) == [*"vwy"]
    assert channel.requeue("a") == 0


def test_what_is_put_off_comes_in_its_time_and_survives_a_crash() -> None:
    harness = durable()
    client = consumer(harness, "a", receive_maximum=2)
    publish(harness, "xyz")
    assert got(client, acknowledge=False) == "xy"
    channel = channel_of(harness)
    assert channel.requeue("a", harness.now + 5) == 2
    harness.pass_time(0)
    assert got(client) == "z"
    harness.pass_time(4)
    assert got(client) == ""
    publish(harness, "w")  # in flight meanwhile
    harness.pass_time(1)
    assert got(client, acknowledge=False) == "wx"
    channel.requeue("a", harness.now + 500)
    harness.broker.channels.empty(channel)
    assert channel.depth == 0
    publish(harness, "v")
    channel.requeue("a", harness.now + 500)
    harness.pass_time(2)
    harness.crash()
    assert got(consumer(harness, "b")) == "v"


def test_each_attempt_that_lasts_is_noted_once() -> None:
    harness = durable()
    client = consumer(harness, "c")
    for payload in "ab":
        publish(harness, payload)
        harness.pass_time(3)
    assert got(client, acknowledge=False) == "ab"
    read = "SELECT sequence, attempts FROM attempt ORDER BY sequence"
    assert harness.disk.connection.execute(read).fetchall() == [(1, 1), (2, 1)]
