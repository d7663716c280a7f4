"""UTF-8 strings wherever a packet has one (MQTT 5, section 1.5.4)."""

from collections.abc import Callable, Iterable

import pytest

from tests.conformance.support import wire
from tests.conformance.support.cases import BOTH, ONLY_5, Case, case_table
from tests.conformance.support.codes import MALFORMED
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps
from tests.conformance.support.texts import NOT_TEXT, NULL, TEXT

Place = Callable[[int, bytes], bytes]
"""Makes a packet of a protocol version with these bytes in the place of a text."""

BAD = "5:1.5.4-1 5:4.13.1-1 3.1.1:1.5.3-1"
HAS_NULL = "5:1.5.4-2 5:4.13.1-1 3.1.1:1.5.3-2"


def cases(name: str, place: Place, statements: str = "", topic: str = "") -> Iterable[Case]:
    """Return a case for each text that is none; `topic` is what is said of U+0000 in topics."""

    def packet(content: bytes) -> Callable[[int], bytes]:
        return lambda version: place(version, content)

    versions = ONLY_5 if "3.1.1" not in statements else BOTH
    for what, content in NOT_TEXT.items():
        data = packet(b"a" + content)
        yield Case(f"{BAD} {statements}", f"{what} in {name}", data, MALFORMED, versions)
    for what, content in NULL.items():
        data = packet(content)
        yield Case(f"{HAS_NULL} {topic}", f"{what} in {name}", data, MALFORMED, versions)


def in_will(properties: Callable[[bytes], bytes]) -> Place:
    return lambda version, content: wire.connect(
        version, "x", will=wire.Will("t", properties=properties(content))
    )


AT_CONNECT = [
    *cases("the client identifier", wire.connect, "5:3.1.3-4 3.1.1:3.1.3-4"),
    *cases(
        "the user name",
        lambda version, content: wire.connect(version, "x", username=content),
        "5:3.1.3-12 3.1.1:3.1.3-11",
    ),
    *cases(
        "the will's topic",
        lambda version, content: wire.packet(
            wire.CONNECT,
            wire.protocol(version),
            b"\x06\x00\x00",
            b"\x00" if version == wire.MQTT_5 else b"",
            wire.text("x"),
            b"\x00" if version == wire.MQTT_5 else b"",
            wire.text(content),
            wire.text(b""),
        ),
        "5:3.1.3-11 3.1.1:3.1.3-10",
        "5:4.7.3-2 3.1.1:4.7.3-2",
    ),
    *cases(
        "a user property of CONNECT",
        lambda version, content: wire.connect(
            version, "x", properties=wire.user_property("a", content)
        ),
        "5:1.5.7-1",
    ),
    *cases(
        "the authentication method",
        lambda version, content: wire.connect(
            version, "x", properties=wire.text_property(wire.AUTHENTICATION_METHOD, content)
        ),
    ),
    *cases(
        "a will's Content Type",
        in_will(lambda content: wire.text_property(wire.CONTENT_TYPE, content)),
        "5:3.3.2-19",
    ),
]


@case_table(*AT_CONNECT)
def test_connect_is_not_accepted(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.open(version)
    peer.send(data)
    peer.expect_no_acceptance(code)


def in_publish(properties: Callable[[bytes], bytes]) -> Place:
    return lambda version, content: wire.publish(version, "t", properties=properties(content))


AFTER_CONNECT = [
    *cases("the topic name", wire.publish, "5:3.3.2-1 3.1.1:3.3.2-1", "5:4.7.3-2 3.1.1:4.7.3-2"),
    *cases(
        "a topic filter",
        lambda version, content: wire.subscribe(version, 1, ("t", 0), (content, 0)),
        "5:3.8.3-1 3.1.1:3.8.3-1",
        "5:4.7.3-2 3.1.1:4.7.3-2",
    ),
    *cases(
        "a topic filter of UNSUBSCRIBE",
        lambda version, content: wire.unsubscribe(version, 1, "t", content),
        "5:3.10.3-1 3.1.1:3.10.3-1",
    ),
    *cases(
        "the Response Topic",
        in_publish(lambda content: wire.text_property(wire.RESPONSE_TOPIC, content)),
        "5:3.3.2-13",
    ),
    *cases(
        "the Content Type",
        in_publish(lambda content: wire.text_property(wire.CONTENT_TYPE, content)),
        "5:3.3.2-19",
    ),
    *cases(
        "the name of a user property",
        in_publish(lambda content: wire.user_property(content, "b")),
        "5:1.5.7-1",
    ),
    *cases(
        "the value of a user property",
        in_publish(lambda content: wire.user_property("a", content)),
        "5:1.5.7-1",
    ),
    *cases(
        "the Reason String of PUBACK",
        lambda _, content: wire.acknowledgement(
            wire.PUBACK, 1, 0, wire.text_property(wire.REASON_STRING, content)
        ),
    ),
    *cases(
        "the Reason String of DISCONNECT",
        lambda _, content: wire.disconnect(0, wire.text_property(wire.REASON_STRING, content)),
    ),
]


@case_table(*AFTER_CONNECT)
def test_ends_the_connection(peers: Peers, version: int, data: bytes, code: int) -> None:
    peer = peers.connect(version)
    peer.send(data)
    peer.expect_error(code)


@keeps("5:1.5.4-3", "5:4.7.3-4", "3.1.1:1.5.3-3", "3.1.1:4.7.3-4", "5:3.3.2-3", "3.1.1:3.3.2-3")
@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT.keys())
def test_a_topic_stays_as_it_is(peers: Peers, version: int, topic: str, text: str) -> None:
    peer = peers.connect(version).subscribe((f"{topic}/#", 0))
    peer.publish_unanswered(f"{topic}/{text}", b"1")
    peer.expect_publish(f"{topic}/{text}", b"1")


@keeps("5:4.7.3-4", "3.1.1:4.7.3-4", "3.1.1:1.5.3-3", "5:1.5.4-3")
@pytest.mark.parametrize(
    ("topic_filter", "other"),
    [
        ("\u00e9", "e\u0301"),
        ("a", "A"),
        ("\ufeffa", "a"),
        ("a", "a "),
        ("ß", "ss"),
        ("i", "\u0131"),
    ],
    ids=ascii,
)
def test_what_looks_alike_is_not_the_same(
    peers: Peers, version: int, topic: str, topic_filter: str, other: str
) -> None:
    peer = peers.connect(version).subscribe((f"{topic}/{topic_filter}", 0))
    peer.publish(f"{topic}/{other}", b"another")
    peer.publish_unanswered(f"{topic}/{topic_filter}", b"the same")
    peer.expect_publish(f"{topic}/{topic_filter}", b"the same")


@keeps("5:1.5.4-3", "5:3.3.2-20", "5:3.3.2-17")
def test_byte_order_marks_stay_in_properties(peers: Peers, topic: str) -> None:
    peer = peers.connect().subscribe((topic, 0))
    properties = wire.text_property(wire.CONTENT_TYPE, "\ufefftext") + wire.user_property(
        "\ufeffa", "b\ufeff"
    )
    peer.publish_unanswered(topic, properties=properties)
    peer.expect_publish(
        topic,
        properties=[
            (wire.CONTENT_TYPE, "\ufefftext".encode()),
            (wire.USER_PROPERTY, ("\ufeffa".encode(), "b\ufeff".encode())),
        ],
    )


@keeps("5:1.5.4-3", "5:3.1.3-2", "3.1.1:1.5.3-3", "3.1.1:3.1.3-2")
def test_a_byte_order_mark_makes_another_client(peers: Peers, version: int) -> None:
    first = peers.connect(version)
    second = peers.connect(version, "\ufeff" + first.client_id)
    first.expect_nothing()
    second.expect_nothing()
