"""SUBSCRIBE, UNSUBSCRIBE and their answers (MQTT 5, sections 3.8 to 3.11)."""

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import ONLY_3, ONLY_5, Case, case_table
from tests.conformance.support.codes import (
    MALFORMED,
    NO_SUBSCRIPTION_EXISTED,
    PROTOCOL_ERROR,
    TOPIC_FILTER_INVALID,
)
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.support.table import table

REFUSED_3 = 0x80
"""The one failure code of SUBACK before MQTT 5."""

ERROR = "5:4.13.1-1 3.1.1:4.8.0-1"
NONE = {wire.MQTT_3_1_1: b"", wire.MQTT_5: b"\x00"}


def options(bits: int, code: int, statements: str, versions: tuple[int, ...]) -> Case:
    return Case(
        f"{ERROR} {statements}",
        f"subscription options {bits:08b}",
        lambda version: wire.subscribe(version, 1, ("t", bits)),
        code,
        versions,
    )


CASES = [
    Case(ERROR, "an empty SUBSCRIBE", b"\x82\x00"),
    Case(
        f"{ERROR} 5:3.8.3-2 3.1.1:3.8.3-3",
        "SUBSCRIBE without a topic filter",
        lambda version: wire.subscribe(version, 1),
        PROTOCOL_ERROR,
    ),
    Case(
        f"{ERROR} 5:2.2.1-3 3.1.1:2.3.1-1",
        "SUBSCRIBE of identifier 0",
        lambda version: wire.subscribe(version, 0, ("t", 0)),
        PROTOCOL_ERROR,
    ),
    Case(
        ERROR,
        "SUBSCRIBE without options",
        lambda version: wire.packet(0x82, b"\x00\x01", NONE[version], wire.text("t")),
    ),
    Case(
        ERROR,
        "SUBSCRIBE with half a filter behind a whole one",
        lambda version: wire.packet(
            0x82, b"\x00\x01", NONE[version], wire.text("t"), b"\x00", b"\x00\x04t"
        ),
    ),
    Case(ERROR, "an empty UNSUBSCRIBE", b"\xa2\x00"),
    Case(
        f"{ERROR} 5:3.10.3-2 3.1.1:3.10.3-2",
        "UNSUBSCRIBE without a topic filter",
        lambda version: wire.unsubscribe(version, 1),
        PROTOCOL_ERROR,
    ),
    Case(
        f"{ERROR} 5:2.2.1-3 3.1.1:2.3.1-1",
        "UNSUBSCRIBE of identifier 0",
        lambda version: wire.unsubscribe(version, 0, "t"),
        PROTOCOL_ERROR,
    ),
    Case(
        ERROR,
        "UNSUBSCRIBE with half a filter",
        lambda version: wire.packet(0xA2, b"\x00\x01", NONE[version], b"\x00\x04t"),
    ),
    options(0x03, PROTOCOL_ERROR, "5:3.8.3.1", ONLY_5),
    options(0x30, PROTOCOL_ERROR, "5:3.8.3.1", ONLY_5),
    options(0x40, MALFORMED, "5:3.8.3-5", ONLY_5),
    options(0x80, MALFORMED, "5:3.8.3-5", ONLY_5),
    options(0xC1, MALFORMED, "5:3.8.3-5", ONLY_5),
    *(options(bits, MALFORMED, "3.1.1:3.8.3-4", ONLY_3) for bits in (3, 4, 8, 16, 32, 64, 128)),
    Case(
        "5:3.8.3-4",
        "No Local on a shared subscription",
        wire.subscribe(wire.MQTT_5, 1, ("$share/g/t", wire.NO_LOCAL)),
        PROTOCOL_ERROR,
        ONLY_5,
    ),
    Case(
        "5:3.8.3-4",
        "No Local on a shared subscription behind another",
        wire.subscribe(wire.MQTT_5, 1, ("t", wire.NO_LOCAL), ("$share/g/t", wire.NO_LOCAL | 1)),
        PROTOCOL_ERROR,
        ONLY_5,
    ),
]


@case_table(*CASES)
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:3.8.4-1", "5:3.8.4-2", "5:2.2.1-6", "3.1.1:3.8.4-1", "3.1.1:3.8.4-2", "3.1.1:2.3.1-7")
@pytest.mark.parametrize("packet_id", [1, 256, 65_535])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_subscribe_is_answered(
    peers: Peers, version: int, topic: str, packet_id: int, qos: int
) -> None:
    peer = peers.connect(version)
    peer.send(wire.subscribe(version, packet_id, (topic, qos)))
    peer.expect(wire.suback(version, packet_id, qos))


TOO_DEEP = "/" * 256
"""A valid topic filter of more levels than the gateway allows."""

INVALID_FILTERS = {
    "": "5:4.7.3-1 3.1.1:4.7.3-1",
    "a/#/b": "5:4.7.1-1 3.1.1:4.7.1-2",
    "a#": "5:4.7.1-1 3.1.1:4.7.1-2",
    "#/a": "5:4.7.1-1 3.1.1:4.7.1-2",
    "##": "5:4.7.1-1 3.1.1:4.7.1-2",
    "a/b#": "5:4.7.1-1 3.1.1:4.7.1-2",
    "#a": "5:4.7.1-1 3.1.1:4.7.1-2",
    "a+": "5:4.7.1-2 3.1.1:4.7.1-3",
    "+a": "5:4.7.1-2 3.1.1:4.7.1-3",
    "a/+b/c": "5:4.7.1-2 3.1.1:4.7.1-3",
    "++": "5:4.7.1-2 3.1.1:4.7.1-3",
    "+#": "5:4.7.1-1 3.1.1:4.7.1-2",
    "$share": "5:4.8.2-1",
    "$share/": "5:4.8.2-1",
    "$share//a": "5:4.8.2-1",
    "$share/g": "5:4.8.2-2",
    "$share/g/": "5:4.8.2-2",
    "$share/+/a": "5:4.8.2-2",
    "$share/g#/a": "5:4.8.2-2",
    "$share/#": "5:4.8.2-2",
    "$share/#/a": "5:4.8.2-2",
    "$share/g/a#": "5:4.7.1-1 5:4.8.2-2",
    "$share/g/#/a": "5:4.7.1-1 5:4.8.2-2",
}


@keeps("5:4.13.1-1", "3.1.1:4.8.0-1")
@table("place", ["alone", "first", "last", "between"])
@table(
    "topic_filter",
    [
        pytest.param(topic_filter, id=f"{names} {topic_filter!r}")
        for topic_filter, names in INVALID_FILTERS.items()
    ],
)
def test_an_invalid_filter_makes_the_packet_malformed(
    peers: Peers, version: int, topic: str, topic_filter: str, place: str
) -> None:
    filters = beside(topic_filter, topic, place)
    peer = peers.persistent(version)
    peer.send(wire.subscribe(version, 5, *((each, 1) for each in filters)))
    peer.expect_error(MALFORMED)
    peers.connect(version).publish(topic, b"x", 1)
    again = peers.persistent(version, peer.client_id)
    again.expect_nothing()  # no filter of that packet took effect
    again.subscribe((topic, 1))
    again.send(wire.unsubscribe(version, 6, *filters))
    again.expect_error(MALFORMED)
    peers.connect(version).publish(topic, b"y", 1)
    peers.persistent(version, peer.client_id).expect_publish(topic, b"y", qos=1)


def beside(topic_filter: str, topic: str, place: str) -> list[str]:
    """Return a filter with `topic` before it, behind it or both, if it does not stand alone."""
    before = [topic] if place in ("last", "between") else []
    behind = [topic] if place in ("first", "between") else []
    return [*before, topic_filter, *behind]


@keeps("5:3.9.3-1", "5:3.8.4-5", "5:3.8.4-6", "5:3.8.4-7", "5:3.9.3-2")
@keeps("3.1.1:3.9.3-1", "3.1.1:3.8.4-4", "3.1.1:3.8.4-5", "3.1.1:3.9.3-2")
def test_the_codes_are_in_the_order_of_the_filters(peers: Peers, version: int, topic: str) -> None:
    peer = peers.connect(version)
    bad = TOPIC_FILTER_INVALID if version == wire.MQTT_5 else REFUSED_3
    requests = [(f"{topic}/{number}", number % 3) for number in range(300)]
    requests[7:7] = [(TOO_DEEP, 2)]
    codes = [bad if topic_filter == TOO_DEEP else qos for topic_filter, qos in requests]
    peer.send(wire.subscribe(version, 1, *requests))
    peer.expect(wire.suback(version, 1, *codes))
    peer.send(wire.unsubscribe(version, 2, *(topic_filter for topic_filter, _ in requests)))
    codes = [NO_SUBSCRIPTION_EXISTED if code == bad else 0 for code in codes]
    peer.expect(wire.unsuback(version, 2, *codes))


@keeps("5:3.8.4-5", "3.1.1:3.8.4-4")
def test_the_last_of_equal_filters_in_a_subscribe_counts(
    peers: Peers, version: int, topic: str
) -> None:
    peer = peers.connect(version)
    peer.send(wire.subscribe(version, 1, (topic, 2), (topic, 0)))
    peer.expect(wire.suback(version, 1, 2, 0))
    peers.connect(version).publish(topic, b"x", 2)
    peer.expect_publish(topic, b"x", qos=0)
    peer.expect_nothing()


@keeps("5:3.8.4-3", "3.1.1:3.8.4-3")
@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (1, 1)])
def test_the_same_filter_again_replaces_the_subscription(
    peers: Peers, version: int, topic: str, before: int, after: int
) -> None:
    peer = peers.connect(version).subscribe((topic, before)).subscribe((topic, after))
    peers.connect(version).publish(topic, b"x", 2)
    peer.expect_publish(topic, b"x", qos=after)
    peer.expect_nothing()
    peer.send(wire.unsubscribe(version, 2, topic))
    peer.expect(wire.unsuback(version, 2, 0))
    peers.connect(version).publish(topic, b"x", 2)
    peer.expect_nothing()


@keeps("5:3.8.4-4", "5:3.8.4-3", "3.1.1:3.8.4-3")
def test_nothing_is_lost_by_replacing(peers: Peers, version: int, topic: str) -> None:
    peer = peers.connect(version).subscribe((topic, 1))
    for number in range(50):
        peer.send(
            wire.publish(version, topic, b"%d" % number, 1, number + 1),
            wire.subscribe(version, 1000 + number, (topic, 1)),
        )
    heard = []
    for _ in range(150):
        raw = peer.receive()
        if raw[0] & 0xF0 == wire.PUBLISH:
            heard.append(raw)
    assert len(heard) == 50


@keeps("5:3.8.4-3")
def test_replacing_replaces_the_options_and_the_identifier(peers: Peers, topic: str) -> None:
    identifier = wire.subscription_identifier
    peer = peers.connect()
    peer.subscribe((topic, wire.RETAIN_AS_PUBLISHED), properties=identifier(7))
    peer.publish_unanswered(topic, b"1", retain=True)
    properties = [(wire.SUBSCRIPTION_IDENTIFIER, 7)]
    peer.expect_publish(topic, b"1", retain=True, properties=properties)
    peer.subscribe((topic, wire.NO_RETAINED | wire.NO_LOCAL))
    peer.publish(topic, b"2", 1, retain=True)
    peers.connect().publish(topic, b"3", 1, retain=True)
    peer.expect_publish(topic, b"3")


@keeps("5:3.8.2.1.2", "5:3.8.4-1")
def test_a_subscribe_with_user_properties(peers: Peers, topic: str) -> None:
    peer = peers.connect()
    peer.subscribe((topic, 0), properties=wire.user_property("a", "b") * 2)
