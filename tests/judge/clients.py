"""The few bytes that tests of bounds and counts need a client to say."""

from tests.conformance.support import wire
from tests.judge.driver import Driver, Link


def join(
    driver: Driver,
    client_id: str,
    version: int = wire.MQTT_5,
    topic_filter: str | None = None,
    qos: int = 0,
    *,
    properties: bytes = b"",
    clean: bool = True,
    subscribe_properties: bytes = b"",
) -> Link:
    """Return the link of a client that is connected, and subscribed where a filter is given."""
    link = driver.open(version)
    link.say(wire.connect(version, client_id, clean=clean, properties=properties))
    assert link.inbox[0][0] == wire.CONNACK, link.inbox
    if topic_filter is not None:
        link.say(wire.subscribe(version, 1, (topic_filter, qos), properties=subscribe_properties))
        assert link.inbox[-1][0] == wire.SUBACK, link.inbox
    link.inbox.clear()
    return link


def reads(packets: list[bytes], n: int) -> list[bytes]:
    """Return the bytes of reads that bring `n` packets each."""
    return [b"".join(packets[start : start + n]) for start in range(0, len(packets), n)]
