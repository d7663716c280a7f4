import pytest

from gateway.mqtt.message_expiry import expired, expires
from gateway.routing.where.message import Message

CASES = [
    (None, 1e9, False),
    (0, 100.0, True),
    (10, 109.999, False),
    (10, 110.0, True),
    (0xFFFFFFFF, 100.0 + 0xFFFFFFFE, False),
]


@pytest.mark.parametrize(("interval", "now", "is_expired"), CASES)
def test_expired(interval: int | None, now: float, is_expired: bool) -> None:
    message = Message("a", arrived=100.0, message_expiry=interval)
    assert expired(message, now) == is_expired
    assert (now >= expires(message)) == is_expired
