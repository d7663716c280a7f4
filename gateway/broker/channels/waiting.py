"""What waits for the consumers of a channel, and in which order they get it."""

from collections.abc import Collection

from gateway.broker.channels.earlier_run import EarlierRun
from gateway.broker.channels.offer import Offer
from gateway.broker.channels.returned import ReturnedMessages
from gateway.mqtt.topics import topic_matches
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.span import Span


class Waiting:
    """Messages that came back, and behind them those of the channel's queue.

    Nothing is next while the channel is `paused`. Messages of topics that match `paused_filters`
    are put aside.
    """

    __slots__ = ("earlier", "paused", "paused_filters", "queue", "returned")

    def __init__(self, queue: DeliveryQueue, maximum_held: int) -> None:
        self.queue = queue
        self.returned = ReturnedMessages(maximum_held)
        self.earlier = EarlierRun()
        self.paused = False
        self.paused_filters: Collection[str] = ()

    def __len__(self) -> int:
        return self.queue.messages + len(self.returned)

    def passes(self) -> bool:
        """Return whether a message that comes now would be next, whatever its topic."""
        return not (self.queue.messages or self.paused or self.paused_filters or len(self.returned))

    def spans(self) -> list[Span]:
        """Return all that is in memory."""
        return [*(each.span for each in self.returned), *self.queue]

    def first(self, now: float) -> Offer | None:
        """Return what is next, None if nothing is; put aside what is paused."""
        if self.paused:
            return None
        while True:
            offer = self.returned.first()
            if offer is None:
                span = self.queue.first()
                if span is None:
                    return None
                offer = Offer(span, self.earlier.attempts(span), None)
            if not self.paused_filters or not self._is_paused(offer.span):
                return offer
            if offer.span.publication.expired(now):
                return offer  # to be given up
            if not self.hold_back(offer):
                return None

    def take(self, count: int) -> Span:
        """Remove and return the first so many messages of what is next."""
        if self.returned.first() is None:
            return self.queue.take(count)
        return self.returned.pop().span

    def hold_back(self, offer: Offer) -> bool:
        """Put what is next aside, which no consumer may have now; False without room."""
        if not self.returned.holds_more:
            return False
        self.returned.hold(Offer(self.take(1), offer.attempts, offer.avoid))
        return True

    def resume(self) -> None:
        """Let those be next whose topic is not paused any more, or that somebody may have now."""
        self.returned.resume(self._is_paused)

    def _is_paused(self, span: Span) -> bool:
        topic = span.publication.topic_of(span.first)
        return any(topic_matches(each, topic) for each in self.paused_filters)
