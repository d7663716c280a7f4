import pytest

from gateway.mqtt.packets import PubAck
from tests.support.broker.channel_harness import (
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)


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
    given = [dict(each.properties.user_properties)["attempt"] for each in found]
    assert given == [*"2111"]
    harness.pass_time(2)
    assert len(harness.disk.connection.execute(read).fetchall()) == 4
    harness.broker.channels.empty(channel)
    harness.pass_time(2)
    assert harness.disk.connection.execute(read).fetchall() == []
