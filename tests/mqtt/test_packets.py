import pytest

from gateway.mqtt.packets import MESSAGE_OVERHEAD, USER_PROPERTY_OVERHEAD, Will, message_size
from gateway.mqtt.properties import Properties

SIZES = [
    (Will("a", b""), 1),
    (Will("é", b"12"), 4),
    (
        Will(
            "a",
            b"",
            properties=Properties(
                content_type="12", response_topic="123", correlation_data=b"1234"
            ),
        ),
        10,
    ),
    (
        Will("a", b"", properties=Properties(user_properties=(("x", "12"), ("x", "3")))),
        6 + 2 * USER_PROPERTY_OVERHEAD,
    ),
]


@pytest.mark.parametrize(("will", "size"), SIZES)
def test_size(will: Will, size: int) -> None:
    assert message_size(will) == MESSAGE_OVERHEAD + size
