"""Scenarios of messages that expire, and of what must not happen by and by."""

from tests.conformance.scenarios.scenarios import Since, scenario
from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.conformance.support.peer import Peers
from tests.conformance.support.wire import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    acknowledgement,
    message_expiry,
)


@scenario("5:3.3.2-5")
def a_message_that_expired_while_its_receiver_was_away(peers: Peers, _version: int) -> None:
    away = peers.persistent().subscribe((peers.topic, 2))
    away.disconnect()
    publisher = peers.connect()
    for qos in (1, 2):
        publisher.publish(peers.topic, b"old", qos, properties=message_expiry(1))
    publisher.publish(peers.topic, b"lasting", 1)
    Since().wait_until(1.5)
    again = peers.persistent(client_id=away.client_id)
    again.expect_publish(peers.topic, b"lasting", qos=1)
    again.expect_nothing()


@scenario("5:3.3.2-6")
def the_interval_is_less_by_the_time_spent_waiting(peers: Peers, _version: int) -> None:
    away = peers.persistent().subscribe((peers.topic, 1))
    away.disconnect()
    since = Since()
    peers.connect().publish(peers.topic, b"x", 1, properties=message_expiry(100))
    Since().wait_until(2)
    again = peers.persistent(client_id=away.client_id)
    ((identifier, left),) = read_publish(again.receive(), wire.MQTT_5).properties
    assert identifier == wire.MESSAGE_EXPIRY_INTERVAL
    assert isinstance(left, int)
    assert 100 - since.seconds - 1 <= left <= 98


@scenario("5:3.3.2-5", "5:3.3.1-5")
def a_retained_message_expires(peers: Peers, _version: int) -> None:
    publisher = peers.connect()
    publisher.publish(f"{peers.topic}/1", b"x", 1, retain=True, properties=message_expiry(8))
    publisher.publish(f"{peers.topic}/2", b"x", 1, retain=True)
    early = peers.connect().subscribe((f"{peers.topic}/1", 0))
    assert read_publish(early.receive(), wire.MQTT_5).retain
    Since().wait_until(8.5)
    late = peers.connect().subscribe((f"{peers.topic}/#", 0))
    late.expect_publish(f"{peers.topic}/2", b"x", retain=True)
    late.expect_nothing()


@scenario("5:3.3.2-6")
def the_interval_of_a_retained_message_goes_down(peers: Peers, _version: int) -> None:
    publisher = peers.connect()
    since = Since()
    publisher.publish(peers.topic, b"x", 1, retain=True, properties=message_expiry(100))
    Since().wait_until(2)
    later = peers.connect().subscribe((peers.topic, 0))
    ((_, left),) = read_publish(later.receive(), wire.MQTT_5).properties
    assert isinstance(left, int)
    assert 100 - since.seconds - 1 <= left <= 98


@scenario("5:3.3.2-5", "5:3.3.4-9")
def a_message_that_expired_behind_a_full_window(peers: Peers, _version: int) -> None:
    window = wire.two_property(wire.RECEIVE_MAXIMUM, 1)
    watcher = peers.connect(properties=window).subscribe((peers.topic, 1))
    publisher = peers.connect()
    publisher.publish(peers.topic, b"first", 1)
    publisher.publish(peers.topic, b"old", 1, properties=message_expiry(1))
    publisher.publish(peers.topic, b"lasting", 1)
    number = watcher.expect_publish(peers.topic, b"first", qos=1).packet_id
    Since().wait_until(1.5)
    watcher.send(acknowledgement(PUBACK, number))
    watcher.expect_publish(peers.topic, b"lasting", qos=1)


@scenario("5:4.3.3-7", "5:4.4.0-1")
def what_was_sent_does_not_expire(peers: Peers, _version: int) -> None:
    watcher = peers.persistent().subscribe((peers.topic, 2))
    publisher = peers.connect()
    publisher.publish(peers.topic, b"x", 2, properties=message_expiry(1))
    number = read_publish(watcher.receive(), wire.MQTT_5).packet_id
    watcher.close()
    Since().wait_until(1.5)
    again = peers.persistent(client_id=watcher.client_id)
    repeated = read_publish(again.receive(), wire.MQTT_5)
    assert (repeated.packet_id, repeated.dup, repeated.qos) == (number, True, 2)
    again.send(acknowledgement(PUBREC, number))
    again.expect(acknowledgement(PUBREL, number))


@scenario("5:4.3.3-13")
def the_handshake_of_a_message_goes_on_when_it_expired(peers: Peers, _version: int) -> None:
    away = peers.persistent().subscribe((peers.topic, 2))
    away.disconnect()
    publisher = peers.connect()
    data = wire.publish(wire.MQTT_5, peers.topic, b"x", 2, 7, properties=message_expiry(1))
    publisher.send(data)
    publisher.expect(acknowledgement(PUBREC, 7))
    Since().wait_until(1.5)
    publisher.send(data)
    publisher.expect(acknowledgement(PUBREC, 7))
    publisher.send(acknowledgement(PUBREL, 7))
    publisher.expect(acknowledgement(PUBCOMP, 7))
    peers.persistent(client_id=away.client_id).expect_nothing()


@scenario("5:4.4.0-1", "3.1.1:4.4.0-1", "5:4.3.2-3")
def nothing_is_sent_again_on_the_same_connection(peers: Peers, version: int) -> None:
    watcher = peers.connect(version).subscribe((peers.topic, 2))
    publisher = peers.connect(version)
    for qos in (1, 2):
        publisher.publish(peers.topic, b"x", qos)
        watcher.expect_publish(peers.topic, b"x", qos=qos)
    Since().wait_until(3)
    watcher.expect_nothing()


@scenario("5:4.7.2-1", "3.1.1:4.7.2-1")
def wildcards_hear_nothing_of_the_servers_topics(peers: Peers, version: int) -> None:
    wild = peers.connect(version).subscribe(("+/broker/#", 0), ("+/+/+", 0), ("+/#", 0), ("#", 0))
    tame = peers.connect(version).subscribe(("$SYS/broker/uptime", 0), ("$SYS/+/uptime", 0))
    for _ in range(2):  # the first is the retained one, or both are
        while read_publish(tame.receive(), version).retain:
            pass
    wild.send(wire.PINGREQ)
    while (raw := wild.receive()) != wire.PINGRESP:
        assert not read_publish(raw, version).topic.startswith(b"$")
