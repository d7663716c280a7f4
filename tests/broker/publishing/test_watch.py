"""Who watches is called with the messages that are delivered, retained or not, and no others."""

import pytest

from gateway.broker.publishing.topic_memory import Watcher
from gateway.mqtt.message import Message
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import publication_of
from tests.support.broker.broker_harness import Harness


@pytest.mark.parametrize("retain", [False, True])
def test_who_watches_sees_what_is_delivered(harness: Harness, retain: bool) -> None:
    seen: list[tuple[str, int, int]] = []

    class Watching(Watcher):
        def note(self, publication: Publication, first: int, count: int) -> None:
            seen.append((publication.topic, first, count))

    harness.broker.watch = Watching()
    harness.publish("a", qos=1, retain=retain)
    harness.publish("$delay/100/b", qos=1)
    assert seen == [("a", 0, 1)]
    assert (harness.broker.retained.get("a") is not None) is retain
    with pytest.raises(NotImplementedError):
        Watcher().note(publication_of(Message("a", b"")), 0, 1)
