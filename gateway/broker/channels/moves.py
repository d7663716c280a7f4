"""Topics of a sticky channel that have another consumer since one came or went."""

from collections import defaultdict

from gateway.broker.channels.deliveries import Deliveries, Delivery
from gateway.session.session import Session


class Moves:
    """Says which topics wait until the consumer that had them acknowledges what it has of them.

    Otherwise two consumers would have messages of one topic, and one might overtake the other.
    """

    __slots__ = ("_before", "_connected", "_deliveries")

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._connected: set[Session] = set()
        # by topic, what was in flight when they changed: no more than that
        self._before: dict[str, list[Delivery]] = {}

    def note(self, connected: set[Session]) -> None:
        """Note which consumers are connected now."""
        if connected == self._connected:
            return
        self._connected = connected
        before: defaultdict[str, list[Delivery]] = defaultdict(list)
        for delivery in self._deliveries:
            sent = delivery.sent
            before[sent.publication.topic_of(sent.first)].append(delivery)
        self._before = dict(before)

    def waits(self, topic: str, consumer: Session) -> bool:
        """Return whether another than this consumer has messages of a topic in flight."""
        found = self._before.pop(topic, None)
        if found is None:
            return False
        left = [
            each for each in found if each.consumer is not consumer and self._deliveries.has(each)
        ]
        if left:
            self._before[topic] = left
        return bool(left)
