"""Who watches is called with the messages that are delivered, retained or not, and no others."""

import pytest

from gateway.mqtt.publication import Publication
from tests.support.broker.broker_harness import Harness


@pytest.mark.parametrize("retain", [False, True])
def test_who_watches_sees_what_is_delivered(harness: Harness, retain: bool) -> None:
    seen: list[tuple[str, int, int]] = []

    def watch(publication: Publication, first: int, count: int) -> None:
        seen.append((publication.topic, first, count))

    harness.broker.watch = watch
    harness.publish("a", qos=1, retain=retain)
    harness.publish("$delay/100/b", qos=1)
    assert seen == [("a", 0, 1)]
    assert (harness.broker.retained.get("a") is not None) is retain
