"""Reads the sessions, retained messages and wills of an earlier run at the start."""

from dataclasses import dataclass, replace
from itertools import chain

from gateway.access.listeners import Origin
from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.session.queue.memory import HEAD_BYTES, HEAD_MESSAGES, MAXIMUM_HEAD_BYTES
from gateway.session.restored import (
    Restored,
    RestoredSession,
    RestoredSpan,
    RestoredWill,
    StoredSubscription,
    StoredTail,
)
from gateway.settings.broker import MAXIMUM_INFLIGHT
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, property_fields
from gateway.storage.engine.reading import Values
from gateway.storage.sessions import message_row, will_store
from gateway.storage.sessions.broker_store import BrokerStore
from gateway.storage.sessions.message_store import MAXIMUM_DEAD_BYTES, MessageStore
from gateway.storage.sessions.pager import LAST_SEQUENCE, Pager
from gateway.storage.sessions.retained_store import RetainedStore
from gateway.storage.sessions.session_rows import EVERY, FORGET_ATTEMPTS
from gateway.storage.sessions.session_store import SessionStore
from gateway.storage.sessions.stored_spans import READ, TEXTS, SpanReader, check_packet_id
from gateway.storage.sessions.will_store import WillStore

_WILLS = f"SELECT {', '.join(will_store.COLUMNS)} FROM will"  # noqa: S608 - our columns
_SESSIONS = (
    "SELECT id, client_id, expiry_interval, username, left_at, listener, local, proven"
    " FROM session ORDER BY id"
)
_SUBSCRIPTIONS = (
    "SELECT session, topic_filter, qos, no_local, retain_as_published, identifier, expression,"
    " identity, awaits_retained, deliver FROM subscription ORDER BY session, topic_filter"
)
_QUEUES = (
    "SELECT session, sum(messages), sum(size), max(sequence), max(sequence * (packet_id > 0)),"
    " min(message), max(message)"
    " FROM delivery GROUP BY session"
)
_INCOMING = "SELECT session, packet_id FROM incoming ORDER BY session, packet_id"
_ATTEMPTS = "SELECT session, sequence, attempts FROM attempt ORDER BY session, sequence"
_TOTALS = (
    "SELECT coalesce((SELECT max(id) FROM session), 0), coalesce((SELECT max(id) FROM message), 0),"
    " coalesce((SELECT max(id) FROM retained), 0)"
)
_ORPHANS = "SELECT id, 1 FROM message WHERE id NOT IN (SELECT message FROM delivery)"

FEW_DELIVERIES = 10_000
"""Deliveries up to which all messages are checked for references."""


@dataclass(slots=True)
class _Queue:
    """The totals of a session's deliveries."""

    messages: int
    bytes: int
    last_sequence: int
    last_sent: int  # the last with a known packet identifier, 0 without any
    first_message: int


NO_QUEUE = _Queue(0, 0, 0, 0, 0)


class Restore:
    """Reads what was stored, and makes the stores for this run.

    Of a session's deliveries only the beginning is read, at least what may have been sent: up to
    `window` deliveries, and up to the last that has a packet identifier. The rest stays on disk.
    """

    def __init__(self, pager: Pager, window: int = MAXIMUM_INFLIGHT) -> None:
        self._pager = pager
        self._rows = pager.reading.rows
        self._pending = pager.pending
        self._monotonic, self._wall = pager.now()
        self._window = window
        self._spans = SpanReader(self._monotonic, self._wall)
        self._bytes = 0  # of deliveries in memory
        self._queues: dict[int, _Queue] = {}
        self._sessions: dict[int, RestoredSession] = {}

    async def run(self) -> tuple[BrokerStore, Restored]:
        """Return the store and its content."""
        totals = await self._rows(_TOTALS, "the totals", lambda values: values)
        last_session, last_message, last_retained = totals[0]
        for number, *figures, last in await self._rows(_QUEUES, "the queues", lambda row: row):
            self._queues[number] = _Queue(*figures)
            # an ended session may still have deliveries: its number must not be used again
            last_session, last_message = max(last_session, number), max(last_message, last)
        sessions = SessionStore(
            self._pending,
            MessageStore(last_message),
            self._pager,
            last_session=last_session,
            deliveries=sum(queue.messages for queue in self._queues.values()),
        )
        await self._read_sessions(sessions)
        retained = RetainedReader(self._monotonic, self._wall)
        await self._rows(_READ_RETAINED, "retained message", retained.read, texts=False)
        wills = await self._rows(_WILLS, "will", _will)
        store = BrokerStore(
            self._pending,
            sessions,
            RetainedStore(self._pending, retained.rows, last_retained, retained.superseded),
            WillStore(self._pending, [will.client_id for will in wills]),
        )
        return store, Restored(list(self._sessions.values()), wills, [*retained.messages.values()])

    async def _read_sessions(self, store: SessionStore) -> None:
        def add_session(values: Values) -> None:
            number, client_id, expiry_interval, username, disconnected_at, *came = values
            queue = self._queues.get(number, NO_QUEUE)
            journal = store.reopen(number, client_id, queue.last_sequence, queue.messages)
            journal.expiry_interval, journal.username = expiry_interval, username
            journal.disconnected_at, journal.home = disconnected_at, _origin(*came)
            restored = RestoredSession(
                journal,
                client_id,
                expiry_interval,
                username,
                disconnected_at,
                journal.home,
                journal.attempts,
            )
            self._sessions[number] = restored

        await self._rows(_SESSIONS, "session", add_session)
        await self._rows(_SUBSCRIPTIONS, "subscription of session", self._add_subscription)
        await self._rows(_INCOMING, "packet identifier of session", self._add_incoming)
        for number, queue in self._queues.items():
            if number in self._sessions:
                await self._read_head(number, queue)
            else:
                # it ended in an earlier run, before all its deliveries were deleted
                store.bury(number, queue.messages)
        await self._delete_unowed(store.messages)
        for row in await self._rows(_ATTEMPTS, "attempts of session", lambda values: values):
            self._add_attempts(*row)

    async def _delete_unowed(self, messages: MessageStore) -> None:
        """Delete messages that the last run had no time to; of many only the oldest are known."""
        first = min((queue.first_message for queue in self._queues.values()), default=0)
        if first > 1:
            messages.forget_all_below(first)
        if sum(queue.messages for queue in self._queues.values()) <= FEW_DELIVERIES:
            for row, _ in await self._rows(_ORPHANS, "message", lambda values: values):
                messages.forget(row, MAXIMUM_DEAD_BYTES, unshared=False)
                self._pending.put_off()

    async def _read_head(self, number: int, queue: _Queue) -> None:
        """Read the beginning of a session's deliveries, which includes those that were sent."""
        session = self._sessions[number]
        # the limit is for the heads of all sessions together
        most = HEAD_MESSAGES if self._bytes < MAXIMUM_HEAD_BYTES else 0
        if session.disconnected_at is None:
            most = max(most, self._window)  # it is unknown what was sent
        count = size = 0

        def enough(row: list[RestoredSpan]) -> bool:
            nonlocal count, size
            for restored in row:
                count += restored.span.count
                size += restored.span.size
            # after QoS 1 messages, whose packet identifiers are unknown if the client was
            # connected, follow QoS 2 messages that must not be sent as others
            last = row[-1].span.last
            return last >= queue.last_sent and (count >= most or size >= HEAD_BYTES)

        row = (number, 0, LAST_SEQUENCE, -1)
        read = self._spans.read
        rows = await self._rows(READ, "delivery to session", read, row, enough, texts=False)
        session.spans = found = list(chain.from_iterable(rows))
        self._bytes += size
        more = queue.messages - count
        if more:
            after = found[-1].span.last if found else 0
            size = queue.bytes - sum(each.span.disk_bytes for each in found)
            session.tail = StoredTail(after, queue.last_sequence, more, size)

    def _add_subscription(self, values: Values) -> None:
        session, topic_filter, qos, no_local, as_published, identifier, where, *more = values
        identity, awaits_retained, policy = more
        deliver, _, every = (policy or "").partition(EVERY)
        self._sessions[session].subscriptions.append(
            StoredSubscription(
                topic_filter,
                message_row.check_qos(qos),
                bool(no_local),
                bool(as_published),
                identifier,
                where,
                bool(identity),
                bool(awaits_retained),
                deliver or None,
                every or None,
            )
        )

    def _add_incoming(self, values: Values) -> None:
        session, packet_id = values
        self._sessions[session].incoming.append(check_packet_id(packet_id, lowest=1))

    def _add_attempts(self, number: int, sequence: int, attempts: int) -> None:
        """Restore how often a message was dispatched, or delete that if the message is gone."""
        session = self._sessions.get(number)
        if session is not None and session.spans:
            first, last = session.spans[0].span.sequence, self._queues[number].last_sequence
            if first <= sequence <= last:
                session.attempts[sequence] = attempts
                return
        self._pending.writer.add(FORGET_ATTEMPTS, (number, sequence))
        self._pending.put_off()


def _will(values: Values) -> RestoredWill:
    client_id, username, listener, local, proven, due, delay, *message = values
    topic, payload, qos, retain, *rest = message
    properties = property_fields(tuple(rest))
    if delay:
        properties = replace(properties, will_delay_interval=delay)
    will = Will(topic, payload, message_row.check_qos(qos), bool(retain), properties)
    return RestoredWill(client_id, username, will, due, _origin(listener, local, proven))


def _origin(listener: str | None, local: int, proven: int) -> Origin:
    return Origin(listener, bool(local), bool(proven))


_COLUMNS = ", ".join(
    f"CAST({column} AS BLOB)" if column in TEXTS else column for column in MESSAGE_COLUMNS
)

_READ_RETAINED = f"SELECT id, {_COLUMNS} FROM retained ORDER BY id"  # noqa: S608 - our columns
"""All of them, with texts as bytes (`Reading.rows`)."""


class RetainedReader:
    """Reads the last message of each topic; salvage may have found earlier ones, too.

    `messages` and `rows`, the numbers of their rows, are by topic; `superseded` are the rows of
    earlier ones. A row that cannot be read still counts as its topic's, so that the next message
    replaces it. `monotonic` (s) and `wall` (ms since 1970) are now.
    """

    def __init__(self, monotonic: float, wall: int) -> None:
        self.messages: dict[str, Publication] = {}
        self.rows: dict[str, int] = {}
        self.superseded: list[int] = []
        self._monotonic = monotonic
        self._wall = wall
        self._names: dict[str | None, str | None] = {}  # of clients, which messages share

    def read(self, values: Values) -> None:
        """Add a row; raise ValueError, TypeError or KeyError for an invalid one."""
        topic = values[1].decode()
        before = self.rows.get(topic)
        self.rows[topic] = values[0]
        row = (
            value.decode() if column in TEXTS and value is not None else value
            for column, value in zip(MESSAGE_COLUMNS, values[1:], strict=True)
        )
        publication = message_row.from_row(tuple(row), self._monotonic, self._wall)
        names = self._names
        publication.client_id = names.setdefault(publication.client_id, publication.client_id)
        publication.username = names.setdefault(publication.username, publication.username)
        self.messages[topic] = publication
        if before is not None:
            self.superseded.append(before)
