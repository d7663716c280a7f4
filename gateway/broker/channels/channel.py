"""A channel: a shared subscription whose messages wait in a queue of its own."""

import math
from collections.abc import Callable
from itertools import groupby

from gateway.broker.channels.alarm import Alarm
from gateway.broker.channels.consumers import Consumers
from gateway.broker.channels.dead_letters import DeadLetters
from gateway.broker.channels.deliveries import Deliveries, Delivery
from gateway.broker.channels.dispatcher import Dispatcher
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.last_values import LastValues
from gateway.broker.channels.levels import Level, Levels
from gateway.broker.channels.stamps import LEVEL_BITS
from gateway.broker.channels.waiting import EarlierRun, Offer, Waiting
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.own_names import PREFIX
from gateway.broker.publishing.inline import Publish
from gateway.counters import Counters
from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.publication import Publication
from gateway.routing.router import Router
from gateway.session import continuation
from gateway.session.journal import NO_JOURNAL, Journal
from gateway.session.limits import SessionLimits
from gateway.session.queue import overflow
from gateway.session.queue.memory import QueueMemory
from gateway.session.restored import RestoredSession
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.session.traffic import Traffic
from gateway.settings.broker import NEVER
from gateway.settings.channel import ChannelSettings


class MessageSizes:
    """Payloads of `smallest` to `largest` bytes."""

    __slots__ = ("_largest", "_smallest")

    def __init__(self, smallest: int, largest: int) -> None:
        self._smallest = smallest
        self._largest = largest

    def fitting(self, publication: Publication, first: int, most: int) -> int:
        """Return how many messages in a row, from number `first` on, have a fitting size.

        If the first message does not fit, return the negative count of those in a row that do not.
        """
        packets = publication.packets
        if not self._smallest and packets.payloads <= self._largest:
            return most
        return self._count_fitting(publication, first, most)

    def _count_fitting(self, publication: Publication, first: int, most: int) -> int:
        """Do the work of `fitting` if some messages may not fit."""
        sizes = (publication.packets.payload_bytes(n, 1) for n in range(first, first + most))
        fits, run_length = next(
            groupby(sizes, lambda size: self._smallest <= size <= self._largest)
        )
        count = len(list(run_length))
        return count if fits else -count


def _limits(settings: ChannelSettings, memory: QueueMemory) -> SessionLimits:
    return SessionLimits(
        maximum_queued_messages=min(
            settings.memory_messages if settings.in_memory else settings.maximum_messages,
            settings.maximum_messages if settings.last_value is None else settings.maximum_keys,
        ),
        maximum_queued_bytes=settings.disk_bytes,
        when_full=settings.when_full,
        memory=memory,
    )


AT_ONCE = 128
"""Dispatches of a channel in one turn: some 3 ms; its queue may have 100,000 messages."""

_AT_ONCE = AT_ONCE  # compiled, a C name


class Channel(Session):
    """A session without a client, whose messages go to the consumers of its group.

    Like any session it has a queue, with its head in memory and the rest on disk, and a journal
    that restores it after a restart. Unacknowledged messages stay in the journal.

    With priorities there is one for each of the `levels`, with the same figures. That of NORMAL is
    the channel; it passes messages of the other levels on.
    """

    __slots__ = (
        "_dead_letters",
        "_dispatcher",
        "_sizes",
        "alarm",
        "consumers",
        "deliveries",
        "figures",
        "level",
        "levels",
        "settings",
        "waiting",
    )

    def __init__(
        self,
        settings: ChannelSettings,
        router: Router,
        deadlines: Deadlines,
        memory: QueueMemory,
        counters: Counters,
        traffic: Traffic,
        publish: Publish,
        randrange: Callable[[int], int],
        level: Level = Level.NORMAL,
        figures: ChannelFigures | None = None,
    ) -> None:
        limits = _limits(settings, memory)
        name = f"{PREFIX}{settings.share_name}{level.suffix}/{settings.topic_filter}"
        super().__init__(name, counters, limits, traffic)
        self.level = level
        self.levels: Levels | None = None
        self.queue.head_messages = settings.memory_messages
        self.settings = settings
        self._sizes = MessageSizes(settings.minimum_message_size, settings.maximum_message_size)
        self.figures = figures = figures or ChannelFigures()
        self.alarm = Alarm(deadlines, self.check_deadlines)
        self.waiting = waiting = Waiting(self.queue, settings.memory_messages)
        self.deliveries = deliveries = Deliveries(
            self,
            figures,
            self.alarm,
            settings.inflight_timeout,
            self._come_back,
            waiting.returned,
            self._stays,
        )
        deliveries.has_dead_letters = settings.dead_letter_topic is not None
        self.consumers = consumers = Consumers(
            router,
            settings.choice,
            deliveries,
            randrange,
            guarded=settings.topic_filter.startswith("$"),
            durable=not settings.in_memory,
        )
        self._dead_letters = letters = DeadLetters(
            self, settings, figures, waiting, self.alarm, publish
        )
        self._dispatcher = Dispatcher(
            self, settings, figures, waiting, consumers, deliveries, letters
        )
        self._set_last_values(settings.last_value)

    def change(self, settings: ChannelSettings) -> None:
        """Apply changed settings of the same channel; its messages stay."""
        self.settings = settings
        self.limits = limits = _limits(settings, self.limits.memory)
        self.queue.maximum_messages = limits.maximum_queued_messages
        self.queue.maximum_bytes = limits.maximum_queued_bytes
        self.queue.head_messages = settings.memory_messages
        self.waiting.returned.maximum_held = settings.memory_messages
        self._sizes = MessageSizes(settings.minimum_message_size, settings.maximum_message_size)
        self.deliveries.timeout = settings.inflight_timeout
        self.deliveries.has_dead_letters = settings.dead_letter_topic is not None
        self.consumers.choose_by(settings.choice)
        self._dead_letters.settings = self._dispatcher.settings = settings
        self._set_last_values(settings.last_value)
        self.go_on()

    def _set_last_values(self, text: str | None) -> None:
        """Replace waiting messages by the value of this expression, None for not at all."""
        before = self.waiting.last_values
        if text != (None if before is None else before.text):
            self.waiting.last_values = None if text is None else LastValues(self, text)
            self.queue.stays = text is not None

    @property
    def every_level(self) -> "tuple[Channel, ...]":
        """The channels of all levels, the highest first; only itself without priorities."""
        return (self,) if self.levels is None else self.levels.channels

    @property
    def depth(self) -> int:
        """How many messages wait for a consumer."""
        return sum([len(each.waiting) for each in self.every_level])

    @property
    def bytes(self) -> int:
        """The bytes of these messages."""
        spans = [each.span for one in self.every_level for each in one.waiting.returned]
        queued = sum([each.queue.bytes for each in self.every_level])
        return queued + sum([span.disk_bytes or span.size for span in spans])

    @property
    def put_aside(self) -> int:
        """How many of them are set aside."""
        return sum([each.waiting.returned.held_messages for each in self.every_level])

    @property
    def in_flight(self) -> int:
        """How many messages consumers have and did not acknowledge."""
        return sum([each.deliveries.messages for each in self.every_level])

    @property
    def attempts(self) -> int:
        """The highest number of attempts among the messages that are in flight or were returned."""
        given = [one.attempts for each in self.every_level for one in each.deliveries]
        given += [one.attempts for each in self.every_level for one in each.waiting.returned]
        return max(given, default=0)

    def oldest(self, now: float) -> float:
        """Return how many seconds the oldest message in memory has waited or been in flight."""
        arrived = [now]
        for one in self.every_level:
            arrived += [each.source.publication.arrived for each in one.deliveries]
            arrived += [each.span.publication.arrived for each in one.waiting.returned]
            first, values = one.queue.first(), one.waiting.last_values
            if first is not None:
                arrived.append(first.publication.arrived if values is None else values.since(first))
        return now - min(arrived)

    @property
    def comes_soon(self) -> bool:
        """Whether a consumer gets a new message at once, so that it may never need the disk."""
        waiting = self.waiting
        if waiting.last_values is not None:
            return False  # what it replaces is deleted in the batch that writes it
        if waiting.paused or len(waiting.returned) or not self.consumers.have_capacity:
            return False
        return self.levels is None or not self.levels.block(self.level)

    def persist_in(self, journal: Journal) -> None:
        """Store all changes in this journal from now on, and the queue's tail."""
        super().persist_in(journal)
        journal.number_from(self.level << LEVEL_BITS)

    def restore(self, stored: RestoredSession) -> None:
        """Restore the messages of an earlier run."""
        self.expiry_interval = NEVER
        self.persist_in(stored.journal)
        self.waiting.earlier = EarlierRun(stored)
        continuation.restore(self, stored.spans, stored.tail, connected=False)
        if stored.attempts:
            self.alarm.set(0.0)  # some may have been dispatched for the last time

    def accept(
        self,
        publication: Publication,
        first: int,
        count: int,
        qos: int,
        retain: bool = False,
        subscription_identifiers: tuple[int, ...] = (),
        now: float = 0.0,
        reserved: bool = False,
        topic_filter: str = "",  # noqa: ARG002 - a session's shape
        policy: DeliveryPolicy | None = None,  # noqa: ARG002 - likewise
    ) -> None:
        """Give consumers as much as they have capacity for, and queue the rest."""
        qos = min(qos, 1)
        queued, channel, levels = False, self, self.levels
        while count:
            run_length = self._sizes.fitting(publication, first, count)
            if run_length > 0:
                if levels is not None:
                    channel, run_length = levels.of(publication, first, run_length, self.figures)
                span = Span(publication, first, run_length, qos, retain, subscription_identifiers)
                self.figures.received += run_length
                queued = channel._accept_span(span, now, reserved) or queued  # noqa: SLF001 - itself, or its level
            else:
                run_length = -run_length
                self.figures.outside_size += run_length
            first += run_length
            count -= run_length
        if queued:
            self.pump(now)

    def _accept_span(self, span: Span, now: float, reserved: bool) -> bool:
        """Return False if consumers got all of it at once."""
        given = 0
        if self.waiting.last_values is not None:
            for number in range(span.first, span.first + span.count):
                self.waiting.last_values.accept(span.part(number, 1), reserved)
            return True
        if self._goes_at_once(span, now, reserved):
            given = self._dispatcher.dispatch_new(span, now)
            if given == span.count:
                return False
        rest = span.split(given)[1] if given else span
        # stored for its dispatch: another row would store it twice
        if rest.row is not None:
            self.queue.append(rest)
            return True
        before = self.queue.messages
        overflow.enqueue(self, rest, reserved)
        self.figures.dropped += before + rest.count - self.queue.messages
        return True

    def forget(self, span: Span, first: int, count: int) -> None:
        """Forget messages that have ended, from number `first` on."""
        if self.waiting.last_values is not None:
            self.waiting.last_values.forget(span.publication, first, count)
        self.journal.done(span, first, count)

    def _goes_at_once(self, span: Span, now: float, reserved: bool) -> bool:
        """Whether new messages may pass the queue: all consumers want them, and they are stored."""
        return (
            self.waiting.passes()
            and self.consumers.accept_any()
            and not span.publication.expired(now)
            and (self.levels is None or not self.levels.block(self.level))
            and (self.journal is NO_JOURNAL or (reserved and overflow.must_hold(self, span.qos)))
        )

    def capacity(self, publication: Publication, first: int, most: int, qos: int) -> int:
        """Return how many messages will surely be stored, or have a size that is ignored."""
        run_length = self._sizes.fitting(publication, first, most)
        if run_length < 0:
            return -run_length
        channel = self
        if self.levels is not None:
            channel, run_length = self.levels.of(publication, first, run_length, None)
        values = self.waiting.last_values
        if values is not None and overflow.must_hold(self, qos):
            return values.capacity(publication, first, run_length)
        return Session.capacity(channel, publication, first, run_length, qos)

    def pump(self, now: float) -> None:
        """Give consumers what they have capacity for, in order of arrival within a level."""
        if self.levels is None:
            self.dispatch(now)
            return
        for each in self.levels.channels:
            each.dispatch(now)
            if each.waiting.has_next:
                break

    def dispatch(self, now: float) -> None:
        """Give consumers what they have capacity for, of this level."""
        self.figures.note_latencies(now)
        if self.waiting.last_values is not None and not self.waiting.last_values.read():
            self.page_in()
            return
        left = _AT_ONCE
        while left and self._dispatcher.dispatch_next(now):
            left -= 1
        if not left:
            # the rest in the next turn, after other clients
            self.alarm.set(math.nextafter(now, math.inf))
        self.page_in()

    def drop_expired(self, now: float) -> int:
        """Expire what has waited too long at a monotonic second; return how many messages."""
        removed = self.queue.remove_expired(now)
        for span in removed:
            if self.waiting.last_values is not None:
                self.waiting.last_values.leave_queue(span)
            self._dispatcher.expire(span, 0)
        expired = sum(span.count for span in removed) + self._dispatcher.expire_first(now)
        if expired:
            self.page_in()
            if self.levels is not None:
                self.alarm.set(0.0)  # what had to wait for these
        return expired

    def offer_again(self) -> None:
        """Offer messages again that no consumer could get: a consumer or its rights are new."""
        if self.waiting.returned.held_messages:
            self.go_on()

    def go_on(self) -> None:
        """Dispatch what is no longer paused, from the next turn on."""
        self.waiting.resume()
        self.alarm.set(0.0)

    def check_deadlines(self, instant: Instant) -> None:
        """Return timed-out messages, bury dead letters, and dispatch what there is capacity for."""
        now = instant.monotonic
        later = self.waiting.returned.come_back(now)
        self.deliveries.check_deadlines(now)
        self._dead_letters.send(instant)
        self.pump(now)
        self.alarm.set(min(later, self.deliveries.next_due(now)))

    def requeue(self, client_id: str, second: float = 0.0, only: int | None = None) -> int:
        """Return everything in flight to one consumer, or the `only` message, to the queue.

        Returns how many messages that is. They are dispatched again from the monotonic `second` on.
        """
        self.alarm.set(0.0)
        return self.deliveries.requeue(client_id, second, only)

    def _come_back(self, offer: Offer, second: float) -> None:
        """Put a message before the queue, or among the dead letters after its last attempt.

        It waits until the monotonic `second`. A message that was too large for a consumer does not
        count as an attempt.
        """
        values = self.waiting.last_values
        if values is not None and values.drops(offer.span):
            self.alarm.set(0.0)
            return
        if not offer.above:
            self.journal.attempted(offer.span, offer.span.first, offer.attempts)
        if not offer.above and self.settings.is_last(offer.attempts):
            self._dead_letters.add(offer)
        else:
            self.waiting.returned.put(offer, second)
        self.alarm.set(0.0)

    def _stays(self, delivery: Delivery) -> bool:
        """Return whether a consumer keeps what timed out: nobody else can have it, for now."""
        if self.settings.is_last(delivery.attempts):
            return False
        source, number = delivery.source, delivery.pending()[0]
        return not self.consumers.others(source.publication, number, delivery.consumer)

    def undelivered(self) -> list[Span]:
        """Return everything in memory that waits or is in flight."""
        return [*(each.source for each in self.deliveries), *self.waiting.spans()]

    def discard(self) -> None:
        """Forget everything that waits or is in flight; the journal is closed, or there is none."""
        self.figures.dropped += len(self.waiting) + self.deliveries.messages
        self.waiting.returned.clear()
        self.waiting.earlier = EarlierRun()
        self.deliveries.clear()
        self._dead_letters.clear()
        if self.waiting.last_values is not None:
            self.waiting.last_values.clear()
        super().discard()
