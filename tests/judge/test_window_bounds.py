"""What a client was sent and has not acknowledged is bounded in bytes, whatever their sizes."""

import pytest

from gateway.session.inflight import MAXIMUM_BYTES
from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish
from tests.judge.clients import join, reads
from tests.judge.driver import Driver
from tests.support.table import table

LARGE = 200_000

SHAPES = {
    "empty first": [0, LARGE],
    "large first": [LARGE, 0],
    "one in ten": [0] * 9 + [LARGE],
    "rising": [0, 1_000, 20_000, LARGE],
}
"""Sizes of payloads, which come round."""


def sent(
    sizes: list[int], n: int, topics: int, qos: int, version: int, durable: bool
) -> tuple[list[int], list[int]]:
    """Return the bytes of payload published, and of those that a silent subscriber was sent."""
    driver = Driver(durable=durable)
    persistent = b"" if version < wire.MQTT_5 else wire.session_expiry(3600)
    subscriber = join(driver, "s", version, "#", qos, clean=False, properties=persistent)
    publisher = join(driver, "p", version)
    lengths = [sizes[number % len(sizes)] for number in range(100)]
    packets = [
        wire.publish(version, f"t/{number % topics}", bytes(length), qos, number + 1)
        for number, length in enumerate(lengths)
    ]
    for data in reads(packets, n):
        publisher.say(data)
    received = [read_publish(packet, version) for packet in subscriber.inbox]
    return lengths, [len(publish.payload) for publish in received]


@table("shape", SHAPES)
@table(
    ("n", "topics", "version"),
    [(1, 1, 4), (1, 3, 5), (2, 1, 5), (2, 3, 4), (100, 1, 5), (100, 3, 4)],
)
@table(("qos", "durable"), [(1, False), (2, True)])
def test_a_window_is_bounded_in_bytes(
    shape: str, n: int, topics: int, qos: int, durable: bool, version: int
) -> None:
    _, received = sent(SHAPES[shape], n, topics, qos, version, durable)
    assert sum(received) <= MAXIMUM_BYTES + LARGE


@table("shape", SHAPES)
@table("n", [1, 2, 100])
@table("qos", [1, 2])
def test_a_window_is_used(shape: str, n: int, qos: int) -> None:
    """What is within the bound in bytes is sent, and no less because the first one is large."""
    lengths, received = sent(SHAPES[shape], n, 1, qos, wire.MQTT_5, durable=False)
    overhead = 2_000  # bytes that a message may count beside its payload
    fitting, total = 0, 0
    for length in lengths:
        if total >= MAXIMUM_BYTES:
            break
        fitting, total = fitting + 1, total + length + overhead
    assert len(received) >= fitting


@pytest.mark.parametrize("n", [1, 2, 100])
@pytest.mark.parametrize("version", [wire.MQTT_3_1_1, wire.MQTT_5])
def test_a_window_is_bounded_for_what_waited(n: int, version: int) -> None:
    """A session that comes back is sent no more at once than one that was there."""
    driver = Driver(durable=True)
    properties = b"" if version < wire.MQTT_5 else wire.session_expiry(3600)
    join(driver, "s", version, "#", 1, clean=False, properties=properties).drop()
    publisher = join(driver, "p", version)
    packets = [
        wire.publish(version, "t", bytes(LARGE if number % 2 else 0), 1, number + 1)
        for number in range(100)
    ]
    for data in reads(packets, n):
        publisher.say(data)
    subscriber = join(driver, "s", version, clean=False, properties=properties)
    driver.settle()
    subscriber_inbox = subscriber.inbox
    subscriber.say(wire.PINGREQ)
    received = [packet for packet in subscriber_inbox if packet[0] & 0xF0 == wire.PUBLISH]
    assert sum(map(len, received)) <= MAXIMUM_BYTES + LARGE + 1_000
