"""QoS 1 and 2 messages that were sent to a client and not yet acknowledged."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from gateway.mqtt.publication import Publication
from gateway.session.queue.memory import QueueMemory
from gateway.session.span import Span

MAXIMUM_PACKET_ID = 65_535

MAXIMUM_BYTES = 1024 * 1024
"""Bytes of a session's inflight messages; the last may exceed it. Others stay in the queue."""

NO_SPANS: Final[dict[int, Span]] = {}
NONE_RELEASED: Final[set[int]] = set()
NONE_WITHHELD: Final[set[int]] = set()
NOTHING_TO_RESEND: Final[deque[int]] = deque(maxlen=0)
"""Shared empty containers: 64, 216, 216 and 760 bytes each, and more after growth."""

_MAXIMUM_PACKET_ID = MAXIMUM_PACKET_ID  # compiled, C names that no other module sees
_MAXIMUM_BYTES = MAXIMUM_BYTES


class Inflight:
    """The window of one session's outgoing messages: packet identifiers in sending order.

    Each leads to the span that its message was sent with. `resend` is not empty while a message of
    an earlier connection must be sent on this one. `released` are the packet identifiers whose
    PUBREC has arrived, `withheld` those of messages that this connection may not read: they do not
    count towards the window.
    """

    __slots__ = (
        "_bytes",
        "_maximum",
        "_next",
        "_spans",
        "held",
        "limit",
        "released",
        "resend",
        "withheld",
    )

    def __init__(self, limit: int) -> None:
        self._spans = NO_SPANS
        self.resend = NOTHING_TO_RESEND  # packet identifiers not sent yet on this connection
        self.released = NONE_RELEASED
        self.withheld = NONE_WITHHELD
        self._next = 1  # the next packet identifier, if `capacity` finds it free
        self._bytes = 0
        self.held = 0  # bytes of these, less the shares of other receivers of the messages
        self._maximum = limit  # the client's Receive Maximum, or ours if that is less
        self.limit = limit  # the same plus the withheld ones

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def has_capacity(self) -> bool:
        """False while the client's Receive Maximum is reached [MQTT-3.3.4-9], or our own bound."""
        return self.has_capacity_after(0)

    def has_capacity_after(self, ahead: int) -> bool:
        """Return whether a message fits after `ahead` small ones that are about to be sent."""
        has_bytes = self._bytes < _MAXIMUM_BYTES or bool(self.resend)  # resending adds no bytes
        return has_bytes and len(self._spans) - len(self.resend) + ahead < self.limit

    def capacity(self, publication: Publication, first: int, most: int) -> int:
        """Return how many messages from number `first` on fit into the window as one span.

        Only for a session without any `resend`.
        """
        spans = self._spans
        free = self.limit - len(spans)
        if free < 1 or self._bytes >= _MAXIMUM_BYTES:
            return 0
        packet_id = self._next if self._next <= _MAXIMUM_PACKET_ID else 1
        # free identifiers are nearly always next to each other: acknowledgements come in order
        while packet_id in spans:
            packet_id = packet_id + 1 if packet_id < _MAXIMUM_PACKET_ID else 1
        self._next = packet_id  # `add` uses it without another search
        return 1 if most == 1 else self._capacity_for_several(publication, first, min(most, free))

    def _capacity_for_several(self, publication: Publication, first: int, most: int) -> int:
        """Return how many fit, by bytes and by free identifiers from `_next` on."""
        spans, packet_id = self._spans, self._next
        if self._bytes + publication.size(first, most) > _MAXIMUM_BYTES:
            most = publication.fitting(first, most, _MAXIMUM_BYTES - self._bytes)
        # the identifiers of a span do not wrap around
        most = min(most, _MAXIMUM_PACKET_ID + 1 - packet_id)
        if spans:
            for number in range(1, most):
                if packet_id + number in spans:
                    return number
        return most

    def add(self, span: Span) -> None:
        """Add a span.

        One without packet identifiers gets those that `capacity` found [MQTT-2.2.1-3].
        """
        packet_id = span.packet_id
        if not packet_id:
            span.packet_id = packet_id = self._next
            self._next = packet_id + span.count
        if self._spans is NO_SPANS:
            self._spans = {}
        spans, count = self._spans, span.count
        for number in range(packet_id, packet_id + count):
            spans[number] = span
        publication = span.publication
        size = publication.size(span.first, count)
        self._bytes += size
        # receivers share the memory of a message
        self.held += size // publication.receivers

    def find(self, packet_id: int) -> Span | None:
        """Return the span with this packet identifier."""
        return self._spans.get(packet_id)

    def remove(self, identifiers: Sequence[int], start: int) -> int:
        """Forget the span's messages with these consecutive identifiers, from `start` on.

        The first is known to exist. Returns how many there are; their packet identifiers are free.
        """
        spans, end = self._spans, len(identifiers)
        packet_id = identifiers[start]
        span = spans.pop(packet_id)
        index, expected = start + 1, packet_id + 1
        while index < end:
            key = identifiers[index]
            # the caller handles each span separately, since its row and channel are its own
            if key != expected or spans.get(key) is not span:
                break
            del spans[key]
            index += 1
            expected += 1
        count = index - start
        if self.withheld:
            self._forget_withheld(span, packet_id, expected)
        publication = span.publication
        size = publication.size(span.first + packet_id - span.packet_id, count)
        self._bytes -= size
        self.held -= size // publication.receivers
        if self.resend:
            self._forget_resend(packet_id, expected)
        if self.released:
            self.released.difference_update(range(packet_id, expected))
            if not self.released:
                self.released = NONE_RELEASED
        if not spans:
            self._spans = NO_SPANS
            self.held = 0  # rounding may leave a rest if a span was removed in parts
        return count

    def _forget_resend(self, first: int, end: int) -> None:
        """Do not resend messages of an earlier connection that are acknowledged now."""
        self.resend = deque([each for each in self.resend if not first <= each < end])

    def _forget_withheld(self, span: Span, first: int, end: int) -> None:
        """Stop withholding messages of an earlier connection that are acknowledged now."""
        for packet_id in range(first, end):
            if packet_id in self.withheld:
                self.withheld.discard(packet_id)
                self._bytes += _size(span, packet_id)
        self._make_up_for_withheld()

    def _make_up_for_withheld(self) -> None:
        if not self.withheld:
            self.withheld = NONE_WITHHELD
        # this connection was not sent them: they use none of its Receive Maximum
        self.limit = min(self._maximum + len(self.withheld), _MAXIMUM_PACKET_ID)

    def withhold(self, readable: Callable[[int, Span], bool]) -> int:
        """Resend only what is `readable`, of all that this connection was not sent yet.

        `readable` gets packet identifier and span. A received QoS 2 message is not sent again in
        any case. Returns how many messages are newly withheld.
        """
        before, unsent = self.withheld, {*self.resend, *self.withheld}
        resend: list[int] = []
        withheld: set[int] = set()
        for packet_id, span in self._spans.items():
            if packet_id not in unsent:
                continue
            if packet_id in self.released or readable(packet_id, span):
                resend.append(packet_id)
            else:
                withheld.add(packet_id)
        self.resend = deque(resend) if resend else NOTHING_TO_RESEND
        # a withheld message occupies no bytes of the window either, or it could block it for ever
        self._bytes += sum([_size(self._spans[each], each) for each in before - withheld])
        self._bytes -= sum([_size(self._spans[each], each) for each in withheld - before])
        self.withheld = withheld
        self._make_up_for_withheld()
        return len(withheld - before)

    def release(self, packet_id: int) -> None:
        """Note the PUBREC of a QoS 2 message."""
        if self.released is NONE_RELEASED:
            self.released = set()
        self.released.add(packet_id)

    def begin(self, limit: int) -> None:
        """Start on a new connection: all messages are to be resent, within `limit`."""
        self._maximum = limit
        self.limit = min(limit + len(self.withheld), _MAXIMUM_PACKET_ID)
        self.resend = deque(self._spans) if self._spans else NOTHING_TO_RESEND

    def pop_resend(self) -> tuple[int, Span]:
        """Return and remove the next message to resend."""
        packet_id = self.resend.popleft()
        return packet_id, self._spans[packet_id]

    def restore(self, spans: Sequence[tuple[Span, bool]]) -> None:
        """Restore what an earlier run had sent, in sending order, and whether it was released.

        A packet identifier of 0 is unknown: the message gets another one.
        """
        known = {
            packet_id
            for span, _ in spans
            if span.packet_id
            for packet_id in range(span.packet_id, span.packet_id + span.count)
        }
        free = 1
        for span, released in spans:
            if not span.packet_id:
                while not known.isdisjoint(range(free, free + span.count)):
                    free += 1
                span.packet_id = free
                free += span.count
            self.add(span)
            if released:
                self.release(span.packet_id)
        self._next = max(self._spans, default=0) + 1

    def spans(self) -> Iterator[Span]:
        """Yield each span with unacknowledged messages, in sending order."""
        before: Span | None = None
        for span in self._spans.values():
            if span is not before:
                before = span
                yield span

    def items(self) -> Iterable[tuple[int, Span]]:
        """Return packet identifiers and spans in sending order."""
        return self._spans.items()

    def charge(self, memory: QueueMemory) -> None:
        """Count the messages in `memory` while no connection can acknowledge them."""
        for span in self.spans():
            memory.add(span)

    def refund(self, memory: QueueMemory) -> None:
        """Undo `charge`."""
        for span in self.spans():
            memory.remove(span)


def _size(span: Span, packet_id: int) -> int:
    """Return the bytes of one message of a span."""
    return span.publication.size(span.first + packet_id - span.packet_id, 1)
