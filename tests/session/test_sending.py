"""What a session sends, however many messages it is given at one time, and in which order."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import Publication
from gateway.session.inflight import MAXIMUM_BYTES
from gateway.session.limits import SessionLimits
from gateway.session.sending import LARGE
from gateway.session.session import Session
from tests.support.broker.publications import publish
from tests.support.broker.sessions import (
    acknowledge,
    deliver,
    open_connection,
    packets,
    payloads,
    persistent,
    sent,
)
from tests.support.table import table

Given = tuple[Publication, int, tuple[int, ...]]
"""Messages, the QoS that they are granted, and subscription identifiers."""


def many(count: int, qos: int = 1, size: int = 10, **fields: object) -> Given:
    contents = [b"%03d" % n + b"x" * (size * (n % 3)) for n in range(count)]
    return publish(contents, qos, **fields), qos, ()


TEXT = Properties(content_type="text/plain")
GIVEN: dict[str, list[Given]] = {
    "one": [many(1)],
    "as many as the window holds": [many(50)],
    "more": [many(70)],
    "large": [many(20, size=MAXIMUM_BYTES // 10)],
    "QoS 2": [many(70, 2)],
    "QoS 0": [many(100, 0)],
    "all kinds": [
        many(3),
        many(2, 0),
        (publish([b"granted", b"less"], 2), 1, ()),
        many(2, 2, retain=True),
        many(2, properties=Properties(message_expiry_interval=3)),
        many(2, properties=Properties(message_expiry_interval=9)),
        many(40, topic="a/longer/topic", properties=TEXT),
        (publish([b"named", b"too"]), 1, (3, 300)),
        many(3, size=600),
        many(3, version=MQTT_3_1_1, topic="a/longer/topic"),
    ],
}


def nothing(_connection: Connection) -> None:
    """Change nothing."""


def small_packets(connection: Connection) -> None:
    connection.maximum_packet_size = 500


def aliases(connection: Connection) -> None:
    if connection.version == MQTT_5:
        connection.outbound_aliases = OutboundAliases(2, AliasBudget(1000, 1000, 1000))


def client(session: Session, connection: Connection, now: float) -> list[Publish]:
    """Return what a client gets that acknowledges all that comes, one window after the other."""
    found: list[Publish] = []
    topics: dict[int | None, str] = {}
    while came := packets(connection):
        identifiers = []
        for packet in came:
            assert isinstance(packet, Publish)
            alias = packet.properties.topic_alias
            topics[alias] = packet.topic or topics[alias]
            packet.topic = topics[alias]
            packet.properties = replace(packet.properties, topic_alias=None)
            identifiers += [packet.packet_id] if packet.qos else []
            found.append(packet)
        place = 0
        while place < len(identifiers):
            place += session.finish(identifiers, place)
        session.pump(now)
    return found


def expected(given: list[Given], connection: Connection, now: float) -> list[Publish]:
    """Return what each message comes as, but for its packet identifier."""
    found = []
    for publication, qos, identifiers in given:
        if publication.expired(now):
            continue
        properties = NO_PROPERTIES
        if connection.version == MQTT_5:
            fields = publication.properties.fields
            left = fields.message_expiry_interval
            properties = replace(
                fields,
                subscription_identifiers=identifiers,
                message_expiry_interval=None if left is None else left - int(now),
            )
        for number in range(publication.count):
            size = len(publication.packets.slice(number, 1))
            if size <= connection.maximum_packet_size:
                payload = publication.packets.one(number)
                retain = publication.retain
                found.append(Publish(publication.topic, payload, qos, retain, False, 0, properties))
    return found


@pytest.mark.uncovered
@table("given", GIVEN.values(), ids=GIVEN)
@table("version", [MQTT_3_1_1, MQTT_5])
@table("change", [nothing, small_packets, aliases])
@table("away", [False, True])
def test_everything_comes_in_order(
    given: list[Given], version: int, change: Callable[[Connection], None], away: bool
) -> None:
    session = persistent(SessionLimits(maximum_inflight=50))
    connection = open_connection(version)
    change(connection)
    if away:
        given = [each for each in given if each[1]]
    else:
        session.attach(connection, 65_535)
    for publication, qos, identifiers in given:
        session.accept(publication, 0, publication.count, qos, publication.retain, identifiers, 0.0)
        assert len(session.inflight) <= 50
        publication.forms = publication.messages = None
    now = 5.0 if away else 0.0
    if away:
        session.attach(connection, 65_535)
        session.pump(now)
    found, wanted = client(session, connection, now), expected(given, connection, now)
    assert [replace(each, packet_id=0) for each in found] == wanted
    assert (len(session.queue), len(session.inflight), session.limits.memory.bytes) == (0, 0, 0)
    total = sum(publication.count for publication, _, _ in given)
    dropped = session.counters.count("publish/messages/dropped")
    gone = session.counters.count("publish/messages/expired")
    assert session.traffic.messages_sent + dropped + gone == total
    assert len(found) == session.traffic.messages_sent


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_many_receivers_get_unchanged_is_not_copied_for_each(qos: int) -> None:
    session = persistent()
    session.attach(connection := open_connection(), 1_000)
    publication = publish([b"1", b"2"], qos)
    session.accept(publication, 0, 2, qos)
    left = connection.data_to_send(0)
    assert left == publication.packets.data
    assert (left is publication.packets.data) == (qos == 0)
    session.accept(publication, 1, 1, qos)
    assert payloads(connection) == [b"2"]


@pytest.mark.parametrize("aliased", [False, True])
@pytest.mark.parametrize("size", [LARGE - 100, LARGE])
def test_what_is_large_and_encoded_for_one_output_is_its_own(aliased: bool, size: int) -> None:
    session = persistent()
    session.attach(connection := open_connection(), 1_000)
    if aliased:
        aliases(connection)
    deliver(session, b"x" * size, qos=0, identifiers=(7,))
    data = connection.data_to_send(0)
    assert data is not None
    assert isinstance(data, bytearray) == (size == LARGE)  # gives back what the kernel took
    connection.send_encoded(data, 1)
    assert payloads(connection) == [b"x" * size]


def test_a_message_too_large_for_the_client_is_dropped_for_it() -> None:
    session = persistent()
    session.attach(connection := open_connection(), 2)
    connection.maximum_packet_size = 20
    deliver(session, *(b"x" * size for size in (13, 12, 13, 11, 14)))
    seen: list[int] = []
    while came := sent(connection):
        seen += [len(packet.payload) for packet in came]
        acknowledge(session, *(packet.packet_id for packet in came))
    assert seen == [12, 11]
    assert session.counters.count("publish/messages/dropped") == 3
    assert (len(session.inflight), len(session.queue)) == (0, 0)
    deliver(session, b"x" * 14, b"x" * 15, qos=0)
    assert session.counters.count("publish/messages/dropped") == 4


def test_the_expiry_interval_counts_down() -> None:
    session = persistent()
    session.attach(connection := open_connection(), 100)
    for now in (100.0, 100.9, 130.5, 200.0):
        deliver(session, b"1", b"2", expiry=60, arrived=100.0, now=now)
    left = [packet.properties.message_expiry_interval for packet in sent(connection)]
    assert left == [60, 60, 60, 60, 30, 30, 0, 0]


def test_who_reads_slowly_gets_the_rest_later() -> None:
    session = persistent()
    session.attach(connection := open_connection(), 10)
    size = 100_000
    contents = [b"%d" % n + b"x" * (size * (n % 2)) for n in range(40)]
    for first in range(0, 40, 8):
        deliver(session, *contents[first : first + 8], qos=0)
    assert connection.congested
    assert len(session.queue) == 40 - connection.packets_sent > 0
    found = []
    while came := payloads(connection):
        found += came
        session.pump(0.0)
    assert found == contents
