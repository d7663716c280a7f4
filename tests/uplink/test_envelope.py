"""What stands around a payload on its way up."""

from typing import Any

from gateway.mqtt.codec.fields import write_variable_byte_integer
from gateway.mqtt.codec.property_codec import read_properties
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.uplink.envelope import remaining_expiry, write_user_properties
from tests.support.disk.storage import outbox_row
from tests.support.table import table

SEQ = ("seq", "00a1b2c3d4.main.17")
TIME = ("time", "1763740000017")
OURS = (("resent", "0"), ("was", "10"), ("clientid", ""), ("username", ""), ("hops", ""))
FORGED = (
    *(("hops", "north"), ("username", "admin"), ("clientid", "x"), ("was", "21")),
    *(("resent", "1"), ("seq", "ffffffffff.main.1"), ("time", "1"), ("resent", "0")),
)


@table(
    ("fields", "identity", "resent", "expected"),
    [
        ({}, False, False, [SEQ, TIME]),
        ({}, False, True, [SEQ, TIME, ("resent", "1")]),
        ({"qos": 0}, False, False, [SEQ, TIME, ("was", "00")]),
        ({"qos": 2}, False, False, [SEQ, TIME, ("was", "20")]),
        ({"retain": True}, False, False, [SEQ, TIME, ("was", "11")]),
        ({"client_id": "c", "username": "u"}, False, False, [SEQ, TIME]),
        (
            {"client_id": "c", "username": "u"},
            True,
            False,
            [SEQ, TIME, ("clientid", "c"), ("username", "u")],
        ),
        ({"client_id": "c"}, True, False, [SEQ, TIME, ("clientid", "c")]),
        # what the publisher calls as we do is not the first of its name
        ({"client_id": "c", "user_properties": FORGED}, False, False, [SEQ, TIME, *OURS, *FORGED]),
        (
            {"client_id": "c", "username": "u", "qos": 2, "user_properties": FORGED},
            True,
            True,
            [
                *(SEQ, TIME, ("resent", "1"), ("was", "20"), ("clientid", "c"), ("username", "u")),
                *(("hops", ""), *FORGED),
            ],
        ),
        (
            {"user_properties": (("username", "x"),)},
            True,
            False,
            [SEQ, TIME, ("username", ""), ("username", "x")],
        ),
        (
            {"qos": 0, "user_properties": (("time", "x"), ("a", "1"), ("a", "2"))},
            False,
            True,
            [SEQ, TIME, ("resent", "1"), ("was", "00"), ("time", "x"), ("a", "1"), ("a", "2")],
        ),
    ],
)
def test_user_properties(
    fields: dict[str, Any], identity: bool, resent: bool, expected: list[tuple[str, str]]
) -> None:
    row = outbox_row(17, **fields)
    written = write_user_properties(row, identity=identity, resent=resent)
    buffer = write_variable_byte_integer(len(written)) + written
    properties, end = read_properties(buffer, 0, len(buffer), PacketType.PUBLISH, MQTT_5)
    assert end == len(buffer)
    assert properties.user_properties == tuple(expected)


@table(
    ("expiry", "waited_ms", "expected"),
    [
        (None, 5_000, None),
        (60, 0, 60),
        (60, 999, 60),
        (60, 10_500, 50),
        (60, 60_000, 1),
        (60, 10_000_000, 1),
        (60, -5_000, 60),  # the clock was set back meanwhile
        (0, 0, 1),
    ],
)
def test_what_is_left_of_the_expiry(
    expiry: int | None, waited_ms: int, expected: int | None
) -> None:
    row = outbox_row(1, message_expiry=expiry)
    assert remaining_expiry(row, row.time + waited_ms) == expected


def test_a_clock_that_was_set_forward_takes_nothing_from_the_expiry() -> None:
    row = outbox_row(1, message_expiry=100, time=5_000)
    row.stepped = 1_763_740_000_000
    assert remaining_expiry(row, 5_000 + 1_763_740_000_000 + 10_000) == 90
