"""Persistent sessions and what they are owed, written when a batch is closed."""

from collections.abc import Callable

from gateway.mqtt.message import Message
from gateway.session.delivery_queue import Delivery, SharedDelivery
from gateway.session.kept import KeptSubscription
from gateway.storage import message_row, session_rows
from gateway.storage.gathering import Gathering, runs
from gateway.storage.session_journal import Changes, SessionJournal


class SessionStore:
    """Makes the journals of sessions, and writes what they have noted.

    What has changed stays in memory until the writer closes a batch, what is lent to clients until
    it closes the next: a message that everyone has acknowledged by then is never written. Memory
    is bounded by what the sessions themselves hold (their queues, windows and subscriptions), and
    by what is to be deleted.
    """

    def __init__(
        self, gathering: Gathering, *, last_session: int = 0, last_message: int = 0
    ) -> None:
        self.gathering = gathering
        self._last_session = last_session
        self._last_message = last_message
        self._changed: dict[SessionJournal, None] = {}
        self._ended: list[int] = []
        self._messages: dict[int, Message] = {}  # by their rows: owed, and not written yet
        self._messages_gone: list[int] = []

    def open(self, client_id: str, within: float) -> SessionJournal:
        """Return the journal of a new session, which is on disk once it was told to keep it."""
        self._last_session += 1
        return SessionJournal(self, self._last_session, client_id, within=within)

    def reopen(self, number: int, client_id: str, last_place: int) -> SessionJournal:
        """Return the journal of a session that an earlier run left."""
        return SessionJournal(self, number, client_id, last_place)

    def changed(self, journal: SessionJournal) -> None:
        """Note that a session has changes."""
        self._changed[journal] = None

    def end(self, journal: SessionJournal) -> None:
        """Note that a session has ended."""
        self._changed.pop(journal, None)
        self._ended.append(journal.number)
        self.gathering.firm()

    def hold(self, message: Message) -> None:
        """Note that one session more is owed the message."""
        if not message.owed:
            self._last_message += 1
            message.row = self._last_message
            self._messages[message.row] = message
        message.owed += 1

    def release(self, message: Message) -> None:
        """Note that one of the sessions that `hold` was called for is owed it no more."""
        message.owed -= 1
        if not message.owed and self._messages.pop(message.row, None) is None:
            self._messages_gone.append(message.row)

    def delete_messages(self, rows: list[int]) -> None:
        """Note that these are owed to nobody: an earlier run left them behind."""
        self._messages_gone += rows

    def gather(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        add = self.gathering.writer.add
        for number in self._ended:
            for statement in session_rows.END:
                add(statement, (number,))
        self._ended = []
        journals, self._changed = self._changed, {}
        messages = {row for journal in journals for row in journal.owed_messages}
        changed = [(journal, journal.take_changes(messages)) for journal in journals]
        for row in sorted(messages):
            message = self._messages.pop(row, None)
            if message is not None:
                add(session_rows.MESSAGE, (row, *message_row.to_row(message)))
        for write in (_write_session, _write_subscriptions, _write_incoming, _write_owed):
            for journal, changes in changed:
                write(add, journal, changes)
        for journal, changes in changed:
            _write_progress(add, journal, changes)
        for run in runs(self._messages_gone):
            add(session_rows.DELETE_MESSAGES, run)
        self._messages_gone = []


Add = Callable[[str, tuple[object, ...]], int]


def _write_session(add: Add, journal: SessionJournal, changes: Changes) -> None:
    if changes.row:
        interval, left_at = journal.expiry_interval, journal.left_at
        row = (journal.number, journal.client_id, interval, journal.username, left_at)
        add(session_rows.SESSION, row)


def _write_subscriptions(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for topic_filter, subscription in changes.subscriptions.items():
        if subscription is None:
            add(session_rows.UNSUBSCRIBE, (journal.number, topic_filter))
        else:
            add(session_rows.SUBSCRIBE, _subscription_row(journal, subscription))


def _subscription_row(journal: SessionJournal, kept: KeptSubscription) -> tuple[object, ...]:
    return (
        journal.number,
        kept.topic_filter,
        kept.qos,
        kept.no_local,
        kept.retain_as_published,
        kept.identifier,
        kept.where,
        kept.identity,
    )


def _write_incoming(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for packet_id, kept in changes.incoming.items():
        statement = session_rows.TAKE if kept else session_rows.LET_GO
        add(statement, (journal.number, packet_id))


def _write_owed(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for place, delivery in changes.owed.items():
        delivery.pledge = None  # its batch is what the publisher waits for now
        packet_id = changes.packet_ids.pop(place, 0)
        released = place in changes.released
        changes.released.discard(place)
        add(session_rows.OWE, _delivery_row(journal, delivery, packet_id, released))


def _delivery_row(
    journal: SessionJournal,
    delivery: Delivery,
    packet_id: int,
    released: bool,
) -> tuple[object, ...]:
    return (
        journal.number,
        delivery.place,
        delivery.message.row,
        delivery.qos,
        delivery.retain,
        packet_id,
        released,
        session_rows.identifiers_to_text(delivery.subscription_identifiers),
        delivery.topic_filter if isinstance(delivery, SharedDelivery) else None,
    )


def _write_progress(add: Add, journal: SessionJournal, changes: Changes) -> None:
    """Write what became of deliveries that an earlier batch has written."""
    for place, packet_id in changes.packet_ids.items():
        add(session_rows.IDENTIFY, (packet_id, journal.number, place))
    for place in changes.released:
        add(session_rows.RELEASE, (journal.number, place))
    for first, last in runs(changes.gone):
        add(session_rows.DONE, (journal.number, first, last))
