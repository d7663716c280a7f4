import pytest

from gateway.broker.access import Anonymous, may_publish


@pytest.mark.parametrize("topic", ["a", "a/$SYS", "/", "$CONTROL/tidegate/uplink"])
def test_clients_may_write(topic: str) -> None:
    assert may_publish(topic)


@pytest.mark.parametrize(
    "topic", ["$SYS/a", "$", "$CONTROL/other", "$CONTROL/tidegate", "$queue/a"]
)
def test_clients_may_not_write(topic: str) -> None:
    assert not may_publish(topic)


def test_anonymous_lets_everyone_in() -> None:
    assert Anonymous().check(None, None)
    assert Anonymous().check("anna", b"x")
