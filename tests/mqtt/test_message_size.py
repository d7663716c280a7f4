import tracemalloc

import pytest

from gateway.mqtt.message_size import (
    MESSAGE_OVERHEAD,
    USER_PROPERTY_OVERHEAD,
    message_size,
    will_size,
)
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import Properties
from gateway.routing.where.message import Message

SIZES = [
    (Message("a"), 1),
    (Message("é", b"12"), 4),
    (Message("a", content_type="12", response_topic="123", correlation_data=b"1234"), 10),
    (Message("a", user_properties=(("x", "12"), ("x", "3"))), 6 + 2 * USER_PROPERTY_OVERHEAD),
]


@pytest.mark.parametrize(("message", "size"), SIZES)
def test_size(message: Message, size: int) -> None:
    assert message_size(message) == MESSAGE_OVERHEAD + size


def test_a_will_is_as_large_as_its_message() -> None:
    properties = Properties(
        content_type="12",
        response_topic="123",
        user_properties=(("x", "12"),),
        will_delay_interval=9,
    )
    will = Will("é", b"abc", 1, properties=properties)
    message = Message(
        "é", b"abc", content_type="12", response_topic="123", user_properties=(("x", "12"),)
    )
    assert will_size(will) == message_size(message)


def make(number: int) -> Message:
    return Message(
        f"sensors/{number}",
        b"%d" % number,
        received_at=1_763_740_000_000 + number,
        arrived=number + 0.5,
        user_properties=((f"name{number}", f"value{number}"),),
    )


def test_size_is_about_what_messages_really_take() -> None:
    messages = [make(0)] * 1_000
    tracemalloc.start()
    for number in range(1_000):
        messages[number] = make(number)  # in a list that has its room
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 < taken / sum(map(message_size, messages)) <= 1.0
