"""What a publication says of its messages."""

import sys
import tracemalloc
from collections.abc import Iterator
from itertools import count as counter
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.connection import NO_LIMIT, Connection
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MESSAGE_OVERHEAD, MQTT_3_1_1, MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import make_publication, publication_of
from tests.support.broker.outbound_aliases import DESCRIBED
from tests.support.broker.publications import packets, payloads, publish
from tests.support.table import table

SIZES = st.one_of(
    st.lists(st.sampled_from([0, 9, 1_000]), min_size=1, max_size=6),
    st.builds(lambda size, count: [size] * count, st.integers(0, 9), st.integers(1, 6)),
)


@given(SIZES, st.data())
def test_its_size_is_that_of_its_packets(sizes: list[int], data: st.DataObject) -> None:
    publication = publish([b"x" * size for size in sizes])
    each = [MESSAGE_OVERHEAD + len(publication.packets.slice(n, 1)) for n in range(len(sizes))]
    first = data.draw(st.integers(0, len(sizes)))
    most = data.draw(st.integers(0, len(sizes) - first))
    assert publication.size(first, most) == sum(each[first : first + most])
    room = data.draw(st.integers(-5, sum(each) + 5))
    fitting = publication.fitting(first, most, room)
    expected = 0
    while expected < most and room > sum(each[first : first + expected]):
        expected += 1
    assert fitting == expected


@pytest.mark.parametrize(
    ("interval", "now", "expired"),
    [
        (None, 1e9, False),
        (0, 100.0, True),
        (10, 109.999, False),
        (10, 110.0, True),
        (0xFFFFFFFF, 100.0 + 0xFFFFFFFE, False),
    ],
)
def test_expired(interval: int | None, now: float, expired: bool) -> None:
    publication = make_publication(
        "a", b"x", 1, False, Properties(message_expiry_interval=interval)
    )
    publication.arrived = 100.0
    assert publication.expired(now) == expired


def test_a_part_says_the_same_of_fewer_messages() -> None:
    whole = publish([b"1", b"22", b"333"], 2, retain=True, properties=DESCRIBED)
    whole.client_id, whole.username = "c", "u"
    whole.received_at, whole.arrived, whole.commit_within = 7, 5.0, None
    whole.stored_for = whole.holders = 3
    part, one = whole.part(1, 2), whole.one(2)
    assert (payloads(part), payloads(one)) == ([b"22", b"333"], [b"333"])
    assert payloads(whole.copy()) == payloads(whole)
    assert one.one(0) is one
    for each in (part, one, whole.copy()):
        assert (each.topic, each.qos, each.retain, each.mqtt5) == ("a/b", 2, True, True)
        assert (each.client_id, each.username) == ("c", "u")
        assert (each.received_at, each.arrived, each.commit_within) == (7, 5.0, None)
        assert each.properties is whole.properties
        assert (each.stored_for, each.holders) == (0, 0)


FIELDS: dict[str, object] = {
    "user_properties": (("a", "1"), ("a", "2")),
    "content_type": "text/plain",
    "payload_format": 1,
    "message_expiry": 60,
    "response_topic": "answers",
    "correlation_data": b"\xff",
}
EMPTY: dict[str, object] = {"content_type": "", "payload_format": 0, "message_expiry": 0}


@table(
    "fields",
    [{}, FIELDS, *({name: value} for name, value in [*FIELDS.items(), *EMPTY.items()])],
    ids=",".join,
)
def test_a_message_is_the_same_as_a_publication_and_back(fields: dict[str, object]) -> None:
    message = Message(
        "a/ä",
        b"x",
        1,
        True,
        client_id="c",
        username="u",
        received_at=7,
        arrived=5.0,
        **fields,  # type: ignore[arg-type]  # by name
    )
    message.commit_within = 2.0
    publication = publication_of(message)
    assert publication.message(0) is message
    assert publication.mqtt5 == bool(fields)
    again = publication.new_message(0)
    assert again is not message
    names = [name for name in Message.__slots__ if not name.startswith("_")]
    assert len(names) == 18
    assert [getattr(again, name) for name in names] == [getattr(message, name) for name in names]


def test_each_message_becomes_an_object_once() -> None:
    publication = publish([b"1", b"2"])
    first = publication.message(1)
    assert (publication.message(1), publication.message(0).payload) == (first, b"1")
    publication.forms = publication.messages = None
    assert publication.message(1) is not first


def made(count: int, version: int, properties: Iterator[Properties]) -> list[Publication]:
    """Return publications as one connection would leave them behind."""
    connection = Connection(NO_LIMIT)
    connection.version = version
    found = []
    for number in range(1_000):
        contents = [b"%d" % (number + n) for n in range(count)]
        connection.framer.feed(packets(contents, version=version, properties=next(properties)))
        assert connection.framer.next_frame(connection.version)
        publication = connection.publication()
        connection.extend(publication, count, 10_000)
        publication.topic = "a/b"
        found.append(publication)
    return found


ALIKE = Properties(user_properties=(("name", "value"),))
DIFFERENT = (Properties(user_properties=(("number", str(number)),)) for number in counter())


@pytest.mark.uncovered
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize(
    ("version", "properties", "most"),
    [
        (MQTT_3_1_1, repeat(NO_PROPERTIES), 1.0),
        (MQTT_5, repeat(ALIKE), 1.0),
        (MQTT_5, DIFFERENT, 1.6),
    ],
)
def test_size_is_about_what_messages_really_take(
    count: int, version: int, properties: Iterator[Properties], most: float
) -> None:
    """Counted for one by one; packets that came together take less."""
    tracemalloc.start()
    found = made(count, version, properties)
    taken = tracemalloc.get_traced_memory()[0] - sys.getsizeof(found)
    tracemalloc.stop()
    assert taken / sum(each.size(0, count) for each in found) <= most
