import pytest

from gateway.access.topics import is_guarded, may_publish


@pytest.mark.parametrize("topic", ["a", "a/$SYS", "/", "$CONTROL/tidegate/uplink"])
def test_clients_may_write(topic: str) -> None:
    assert may_publish(topic)


@pytest.mark.parametrize(
    "topic", ["$SYS/a", "$", "$CONTROL/other", "$CONTROL/tidegate", "$queue/a"]
)
def test_clients_may_not_write(topic: str) -> None:
    assert not may_publish(topic)


def test_guarded() -> None:
    guarded = ["$CONTROL", "$CONTROL/#", "$CONTROL/tidegate/uplink", "$SYS/broker/tidegate/log"]
    guarded += ["$SYS/broker/tidegate/log/#", "$SYS/broker/tidegate/turns/longest"]
    guarded += ["$SYS/broker/tidegate/shares/largest", "$SYS/broker/tidegate/alarm/queue_full"]
    assert [topic for topic in guarded if not is_guarded(topic)] == []
    free = ["a", "$SYS/broker/uptime", "$SYS/#", "$SYS/broker/tidegate/logs", "a/$CONTROL/b"]
    free += ["$SYS/broker/tidegate/turns/longest_ms"]
    assert [topic for topic in free if is_guarded(topic)] == []
