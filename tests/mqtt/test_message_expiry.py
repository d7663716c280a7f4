import pytest

from gateway.mqtt.message_expiry import expired
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
    assert expired(Message("a", arrived=100.0, message_expiry=interval), now) == is_expired
