"""The newest message of each key of a channel, which replaces an older one that waits."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from gateway.mqtt.publication import Publication
from gateway.session.queue import overflow
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

Message = tuple[Publication, int]
"""A message: its publication, and its number there."""

NO_KEY: Final[Hashable] = object()
"""The key of messages that have none: each stands for itself."""


class _Newest:
    """Where the newest message of a key is: `queued`, returned, or in flight.

    Its place in the queue was taken at the monotonic second `since`, by it or an older one.
    """

    __slots__ = ("queued", "since", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.queued = True
        self.since = span.publication.arrived


class LastValues:
    """Replaces the waiting message of a key by a newer one, in its place in the queue.

    A message that is in flight is not replaced; once there is a newer one, it is `superseded`: it
    is deleted from disk with the write of the newer one, and dropped if it comes back. There is an
    entry for each key that waits or is in flight. All that waits is in memory, so that it can be
    replaced: after a start, nothing is dispatched before it has been `read`.
    """

    __slots__ = ("_channel", "_keys", "_newest", "_read", "_superseded", "complete", "text")

    def __init__(self, channel: "Channel", text: str) -> None:
        from gateway.where.compile import compile_value  # in memory where it is used

        self.text = text
        self._read = compile_value(text)
        self._channel = channel
        self._newest: dict[Hashable, _Newest] = {}
        self._keys: dict[Message, Hashable] = {}  # of these messages
        self._superseded: set[Message] = set()
        self.complete = False

    def _key(self, publication: Publication, number: int) -> Hashable:
        value = self._read(publication.new_message(number))
        if value is None or isinstance(value, list | dict):
            return NO_KEY
        return isinstance(value, bool), value  # TRUE is not 1

    def capacity(self, publication: Publication, first: int, most: int) -> int:
        """Return how many messages, from number `first` on, fit or replace others."""
        queue = self._channel.queue
        fitting = queue.capacity(publication, first, most)
        if fitting == most:
            return most
        added: set[Hashable] = set()
        for number in range(first, first + most):
            key = self._key(publication, number)
            if key in added or self._replaces(key, publication.size(number, 1)):
                continue
            if not fitting:
                return number - first
            fitting -= 1
            if key is not NO_KEY:
                added.add(key)
        return most

    def _replaces(self, key: Hashable, size: int) -> bool:
        """Return whether a message of this many bytes may take the place of the waiting one."""
        found = self._newest.get(key)
        if found is None or not found.queued:
            return False
        old = found.span
        return not self._channel.queue.over(0) or size <= old.publication.size(old.first, 1)

    def accept(self, span: Span, reserved: bool) -> None:
        """Queue one message, in the place of the one of its key if that waits."""
        channel, queue = self._channel, self._channel.queue
        key = self._key(span.publication, span.first) if self.complete else NO_KEY
        if self._replaces(key, span.publication.size(span.first, 1)):
            self._replace(key, span)
            return
        before, last = queue.messages, queue.last()
        overflow.enqueue(channel, span, reserved)
        channel.figures.dropped += before + 1 - queue.messages
        queued = queue.last()
        if queued is not None and queued is not last and key is not NO_KEY:
            self._add(key, queued)

    def _replace(self, key: Hashable, span: Span) -> None:
        channel, newest = self._channel, self._newest[key]
        old = newest.span
        if span.qos:
            channel.journal.enqueue(span, deferred=False)
        channel.journal.done(old, old.first, 1)
        del self._keys[old.publication, old.first]
        channel.queue.replace(old, span)
        self._keys[old.publication, old.first] = key
        channel.figures.replaced += 1

    def _add(self, key: Hashable, span: Span) -> None:
        """Note the newest message of a key, which is queued; the one before ends, or will."""
        newest = self._newest.get(key)
        if newest is not None:
            self._supersede(newest)
        self._newest[key] = _Newest(span)
        self._keys[span.publication, span.first] = key

    def _supersede(self, newest: _Newest) -> None:
        channel, old = self._channel, newest.span
        message = old.publication, old.first
        channel.journal.done(old, old.first, 1)
        del self._keys[message]
        if newest.queued:
            channel.queue.remove_only(old)
        elif not channel.waiting.returned.remove(old):
            self._superseded.add(message)
            return
        channel.figures.replaced += 1

    def since(self, span: Span) -> float:
        """Return the monotonic second since which a queued message, or an older one, waits."""
        key = self._keys.get((span.publication, span.first), NO_KEY)
        return span.publication.arrived if key is NO_KEY else self._newest[key].since

    def leave_queue(self, span: Span) -> None:
        """Note that messages are no longer in the queue."""
        for number in range(span.first, span.first + span.count):
            key = self._keys.get((span.publication, number), NO_KEY)
            if key is not NO_KEY:
                self._newest[key].queued = False

    def drops(self, span: Span) -> bool:
        """Return whether a message that comes back was superseded, which ends it."""
        message = span.publication, span.first
        if message not in self._superseded:
            return False
        self._superseded.remove(message)
        self._channel.figures.replaced += 1
        return True

    def forget(self, publication: Publication, first: int, count: int) -> None:
        """Forget messages that have ended."""
        for number in range(first, first + count):
            message = publication, number
            self._superseded.discard(message)
            key = self._keys.pop(message, NO_KEY)
            if key is not NO_KEY:
                del self._newest[key]

    def clear(self) -> None:
        """Forget all of them."""
        self._newest.clear()
        self._keys.clear()
        self._superseded.clear()

    def is_newest(self, publication: Publication, number: int) -> bool:
        """Return whether no message of this one's key waits or is in flight."""
        return self._key(publication, number) not in self._newest

    def may_send(self, span: Span) -> bool:
        """Return whether a message is on disk, if it is to be.

        What it replaced is there no more then, and cannot come after it.
        """
        row = span.row
        return row is None or row.batch < 0 or 0 < row.batch <= self._channel.queue.written

    def read(self) -> bool:
        """Return whether all that waits is in memory; note the keys once it is."""
        if not self.complete and not self._channel.queue.paged:
            self.complete = True
            self._note_all()
        return self.complete

    def _note_all(self) -> None:
        """Note what was received before, by an earlier run or without keys, in its order."""
        channel = self._channel
        channel.queue.separate()
        given = [
            (each.source.part(number, 1), False)
            for each in channel.deliveries
            for number in each.pending()
        ]
        given += [(each.span, False) for each in channel.waiting.returned]
        queued = [(span, True) for span in channel.queue]
        for span, is_queued in sorted([*given, *queued], key=lambda each: each[0].sequence):
            key = self._key(span.publication, span.first)
            if key is not NO_KEY:
                self._add(key, span)
                self._newest[key].queued = is_queued
