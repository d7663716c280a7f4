"""QoS 1 and 2 messages that were sent to a client and not yet acknowledged."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.mqtt.message_size import message_size
from gateway.session.delivery import Delivery
from gateway.session.inflight_message import InflightAlone, InflightMessage, Sent, sending_order
from gateway.session.inflight_run import InflightRun
from gateway.session.message_run import MessageRun

MAXIMUM_PACKET_ID = 65_535

MAXIMUM_BYTES = 1024 * 1024
"""Bytes of a session's inflight messages; the last may exceed it. The rest stays in the queue."""

NO_MESSAGES: Final[dict[int, Sent]] = {}
NO_RUNS: Final[list[InflightRun]] = []
NONE_AGAIN: Final[deque[int]] = deque(maxlen=0)
"""Stand for those that are empty: 64, 80 and 760 bytes, and more if they had grown."""


class Inflight:
    """The window of one session's outgoing messages, by packet identifier, in sending order.

    What was sent in runs stands beside all else, and is counted, numbered and acknowledged as
    runs; whatever else is asked of the window makes single messages of it first. `to_send_again`
    is not empty while a message of an earlier connection waits to be sent on this one.
    """

    __slots__ = (
        "_bytes",
        "_last",
        "_messages",
        "_order",
        "_runs",
        "in_runs",
        "limit",
        "to_send_again",
    )

    def __init__(self, limit: int) -> None:
        self._messages = NO_MESSAGES
        self.to_send_again = NONE_AGAIN  # packet identifiers that this connection was not sent yet
        self._runs = NO_RUNS
        self.in_runs = 0  # messages that were sent in runs
        self._last = 0
        self._order = 0  # of what was sent last
        self._bytes = 0
        self.limit = limit  # the client's Receive Maximum, or ours where that is less

    def __len__(self) -> int:
        return len(self._messages) + self.in_runs

    @property
    def has_room(self) -> bool:
        """False while the client's Receive Maximum is reached [MQTT-3.3.4-9], or our own bounds."""
        room = self._bytes < MAXIMUM_BYTES or bool(self.to_send_again)  # which costs nothing more
        return room and len(self) - len(self.to_send_again) < self.limit

    @property
    def room(self) -> tuple[int, int]:
        """How many messages, and of how many bytes, `has_room`; the last may exceed the bytes.

        0 or less is none. That is for a session that has nothing `to_send_again`.
        """
        return self.limit - len(self), MAXIMUM_BYTES - self._bytes

    def room_for_run(self, size: int) -> int:
        """Return how many messages of so many bytes may be sent as a run, for now; 0 or less: none.

        That is for a session that has nothing `to_send_again`.
        """
        by_size = -((self._bytes - MAXIMUM_BYTES) // size)
        room = min(by_size, self.limit - len(self._messages) - self.in_runs)
        if room < 1:
            return room
        first = self._next()
        taken = MAXIMUM_PACKET_ID + 1
        for packet_id in self._messages:
            if first <= packet_id < taken:
                taken = packet_id
        if self._runs:
            sent = self._runs[0]  # of all runs the first to be met again
            if sent.first + sent.done >= first:
                taken = min(taken, sent.first + sent.done)
        return min(taken - first, room)

    def add_run(self, run: MessageRun, qos: int) -> InflightRun:
        """Keep a run that `room_for_run` allowed, and give it packet identifiers."""
        sent = InflightRun(run, self._next(), qos)
        self._order = sent.order = self._order + 1
        if self._runs is NO_RUNS:
            self._runs = []
        self._runs.append(sent)
        self.in_runs += sent.count
        self._bytes += sent.count * run.size
        self._last = sent.first + sent.count - 1
        return sent

    def first_run(self, qos: int) -> InflightRun | None:
        """Return the run of this QoS whose messages are to be acknowledged first."""
        for sent in self._runs:
            if sent.qos == qos:
                break
        else:
            return None
        if sent.deliveries is not None:
            self._open_runs()
            return None
        return sent

    def first_unreleased(self) -> InflightRun | None:
        """Return the QoS 2 run whose messages are to be answered with PUBREC first."""
        for sent in self._runs:
            if sent.qos == 2 and sent.released < sent.count:
                return sent
        return None

    def finish_run(self, sent: InflightRun, count: int) -> None:
        """Forget the first messages of a run; their packet identifiers are free again."""
        sent.done += count
        self.in_runs -= count
        self._bytes -= count * sent.run.size
        if sent.done == sent.count:
            self._runs.remove(sent)
            if not self._runs:
                self._runs = NO_RUNS

    def _open_runs(self) -> None:
        """Go on with single messages."""
        if not self._runs:
            return
        runs, self._runs = self._runs, NO_RUNS
        messages = self._messages_to_fill()
        mixed = bool(messages)
        self.in_runs = 0
        for sent in runs:
            self._bytes -= (sent.count - sent.done) * sent.run.size
            for number, delivery in enumerate(sent.open(), sent.done):
                message = InflightMessage(delivery, number < sent.released, order=sent.order)
                messages[sent.first + number] = message
                self._bytes += message_size(delivery.message)
        if mixed:
            self._messages = dict(sorted(messages.items(), key=sending_order))

    def _messages_to_fill(self) -> dict[int, Sent]:
        """Return the messages; others are to be added."""
        if self._messages is NO_MESSAGES:
            self._messages = {}
        return self._messages

    def _next(self) -> int:
        """Return the packet identifier behind the last one that was given."""
        return self._last + 1 if self._last < MAXIMUM_PACKET_ID else 1

    def begin(self, limit: int) -> None:
        """Start on a new connection: what is here is to be sent again, as far as `limit` allows."""
        self._open_runs()
        self.limit = limit
        self.to_send_again = deque(self._messages) if self._messages else NONE_AGAIN

    def send_again(self) -> tuple[int, Sent]:
        """Return packet identifier and message of what is to be sent again first [MQTT-4.6.0-1].

        Raises IndexError when there is nothing.
        """
        packet_id = self.to_send_again.popleft()
        return packet_id, self._messages[packet_id]

    def add(self, delivery: Delivery) -> int:
        """Keep the delivery and return the free packet identifier it got [MQTT-2.2.1-3]."""
        return self.add_all((delivery,))[0]

    def add_all(self, deliveries: Sequence[Delivery]) -> list[int]:
        """Do that with each; `room` says for how many there is room."""
        if self._runs and not self._clear_of_runs(len(deliveries)):
            self._open_runs()
        messages = self._messages_to_fill()
        self._order = order = self._order + 1
        found = []
        size = 0
        for delivery in deliveries:
            self._last = packet_id = self._next()
            while packet_id in messages:
                self._last = packet_id = self._next()
            messages[packet_id] = InflightMessage(delivery, order=order)
            found.append(packet_id)
            size += message_size(delivery.message)
        self._bytes += size
        return found

    def _clear_of_runs(self, count: int) -> bool:
        """Return whether so many packet identifiers are surely none of a run."""
        first, sent = self._next(), self._runs[0]  # of all runs the first to be met again
        end = sent.first + sent.done
        if end < first:
            end = MAXIMUM_PACKET_ID + 1
        return first + count + len(self._messages) <= end

    def finish(self, packet_ids: Sequence[int], start: int = 0) -> list[Delivery]:
        """Forget QoS 1 messages that were sent by themselves, from `start` on, and return them.

        It ends with the first packet identifier that is of no such message; at once while
        anything is `to_send_again`.
        """
        messages = self._messages
        found: list[Delivery] = []
        if self.to_send_again:
            return found
        size = 0
        for packet_id in packet_ids[start:]:
            message = messages.get(packet_id)
            if message is None or message.delivery.qos != 1:
                break
            del messages[packet_id]
            found.append(message.delivery)
            size += message_size(message.delivery.message)
        self._bytes -= size
        if not messages:
            self._messages = NO_MESSAGES
        return found

    def add_alone(self, message: InflightAlone) -> int:
        """Keep it and return its packet identifier; 0 if the next is taken, or there is no room."""
        messages, packet_id = self._messages, self._last + 1
        room = len(messages) < self.limit and self._bytes < MAXIMUM_BYTES
        if self._runs or not room or packet_id > MAXIMUM_PACKET_ID or packet_id in messages:
            return 0
        self._messages_to_fill()[packet_id] = message
        self._last = packet_id
        self._order = message.order = self._order + 1
        self._bytes += message.size
        return packet_id

    def finish_alone(self, packet_id: int) -> InflightAlone | None:
        """Forget and return what `add_alone` kept for this connection; None if it kept nothing."""
        messages = self._messages
        message = messages.get(packet_id)
        if not isinstance(message, InflightAlone) or self.to_send_again:
            return None
        del messages[packet_id]
        self._bytes -= message.size
        if not messages:
            self._messages = NO_MESSAGES
        return message

    @property
    def alone(self) -> int:
        """How many were sent by themselves, and not in runs."""
        return len(self._messages)

    def restore(self, messages: Sequence[tuple[int, Sent]]) -> None:
        """Put back what was on its way in an earlier run, in sending order.

        A packet identifier of 0 is not known any more: the message gets another one.
        """
        kept = self._messages_to_fill()
        taken = {packet_id for packet_id, _ in messages}
        free = (each for each in range(1, MAXIMUM_PACKET_ID + 1) if each not in taken)
        for packet_id, message in messages:
            number = packet_id or next(free)
            kept[number] = message
            self._bytes += message_size(message.delivery.message)
            self._last = max(self._last, number)

    def find(self, packet_id: int) -> Sent | None:
        """Return the message with this packet identifier."""
        if self._runs and packet_id not in self._messages:
            self._open_runs()
        return self._messages.get(packet_id)

    def remove(self, packet_id: int) -> Sent | None:
        """Forget and return the message; its packet identifier is free again.

        It was found, or added, before.
        """
        message = self._messages.pop(packet_id, None)
        if not self._messages:
            self._messages = NO_MESSAGES
        if message is not None:
            self._bytes -= message_size(message.delivery.message)
            if self.to_send_again and packet_id in self.to_send_again:
                self.to_send_again.remove(packet_id)
        return message

    def __iter__(self) -> Iterator[Sent]:
        self._open_runs()
        return iter(self._messages.values())

    def items(self) -> Iterable[tuple[int, Sent]]:
        """Return packet identifiers and messages in sending order."""
        self._open_runs()
        return self._messages.items()
