"""What an earlier run left of sessions, retained messages and wills, read at the start."""

from gateway.mqtt.packets import Will
from gateway.mqtt.properties import Properties
from gateway.routing.where.message import Message
from gateway.session.delivery_queue import Delivery, SharedDelivery
from gateway.session.kept import Kept, KeptDelivery, KeptSession, KeptSubscription, KeptWill
from gateway.storage import message_row, will_store
from gateway.storage.broker_store import BrokerStore
from gateway.storage.gathering import Gathering
from gateway.storage.message_store import MessageStore
from gateway.storage.reading import Reading, Values
from gateway.storage.retained_store import RetainedStore
from gateway.storage.session_rows import text_to_identifiers
from gateway.storage.session_store import SessionStore
from gateway.storage.will_store import WillStore

_MESSAGES = f"SELECT id, {', '.join(message_row.COLUMNS)} FROM message"  # noqa: S608 - our columns
_RETAINED = f"SELECT {', '.join(message_row.COLUMNS)} FROM retained"  # noqa: S608 - our columns
_WILLS = f"SELECT {', '.join(will_store.COLUMNS)} FROM will"  # noqa: S608 - our columns
_SESSIONS = (
    "SELECT id, client_id, expiry_interval, username, left_at,"
    " (SELECT coalesce(max(place), 0) FROM delivery WHERE session = id),"
    " (SELECT count(*) FROM delivery WHERE session = id) FROM session ORDER BY id"
)
_SUBSCRIPTIONS = (
    "SELECT session, topic_filter, qos, no_local, retain_as_published, identifier, expression,"
    " identity FROM subscription ORDER BY session, topic_filter"
)
_DELIVERIES = (
    "SELECT session, place, message, qos, retain, packet_id, released, identifiers, shared_filter"
    " FROM delivery ORDER BY session, place"
)
_INCOMING = "SELECT session, packet_id FROM incoming ORDER BY session, packet_id"
_TOTALS = (
    "SELECT coalesce((SELECT max(id) FROM session), 0), (SELECT count(*) FROM delivery),"
    " coalesce(max(id), 0), count(*) FROM message"
)


class Restore:
    """Reads what was kept, and makes the stores that keep it from now on.

    `monotonic` (seconds) and `wall` (ms since 1970) are now.
    """

    def __init__(self, reading: Reading, gathering: Gathering, monotonic: float, wall: int) -> None:
        self._rows = reading.rows
        self._gathering = gathering
        self._monotonic = monotonic
        self._wall = wall
        self._messages: dict[int, Message] = {}
        self._sessions: dict[int, KeptSession] = {}

    async def run(self) -> tuple[BrokerStore, Kept]:
        """Return the store and what was in it."""
        totals = await self._rows(_TOTALS, "the totals", lambda values: values)
        last_session, deliveries, last_message, messages = totals[0]
        sessions = SessionStore(
            self._gathering,
            MessageStore(last_message, messages),
            last_session=last_session,
            deliveries=deliveries,
        )
        await self._read_sessions(sessions)
        retained = await self._rows(_RETAINED, "retained message", self._message)
        wills = await self._rows(_WILLS, "will", _will)
        store = BrokerStore(
            self._gathering,
            sessions,
            RetainedStore(self._gathering, [message.topic for message in retained]),
            WillStore(self._gathering, [will.client_id for will in wills]),
        )
        return store, Kept(list(self._sessions.values()), wills, [*retained])

    async def _read_sessions(self, store: SessionStore) -> None:
        def add_session(values: Values) -> None:
            number, client_id, expiry_interval, username, left_at, last_place, owed = values
            journal = store.reopen(number, client_id, last_place, owed)
            journal.expiry_interval, journal.username = expiry_interval, username
            journal.left_at = left_at
            kept = KeptSession(journal, client_id, expiry_interval, username, left_at)
            self._sessions[number] = kept

        await self._rows(_SESSIONS, "session", add_session)
        await self._rows(_SUBSCRIPTIONS, "subscription of session", self._add_subscription)
        await self._rows(_INCOMING, "packet identifier of session", self._add_incoming)
        await self._rows(_MESSAGES, "message", self._add_message)
        await self._rows(_DELIVERIES, "delivery to session", self._add_delivery)
        unowed = [row for row, each in self._messages.items() if not each.owed]
        if unowed:
            store.messages.delete(unowed)
        self._messages = {}

    def _message(self, values: Values) -> Message:
        return message_row.from_row(values, self._monotonic, self._wall)

    def _add_message(self, values: Values) -> None:
        row, *columns = values
        message = self._message(tuple(columns))
        message.row = row
        self._messages[row] = message

    def _add_subscription(self, values: Values) -> None:
        session, topic_filter, qos, no_local, as_published, identifier, where, identity = values
        self._sessions[session].subscriptions.append(
            KeptSubscription(
                topic_filter,
                message_row.check_qos(qos),
                bool(no_local),
                bool(as_published),
                identifier,
                where,
                bool(identity),
            )
        )

    def _add_incoming(self, values: Values) -> None:
        session, packet_id = values
        self._sessions[session].incoming.append(_check_packet_id(packet_id, lowest=1))

    def _add_delivery(self, values: Values) -> None:
        session, place, row, qos, retain, packet_id, released, identifiers, shared = values
        message = self._messages[row]
        qos, numbers = message_row.check_qos(qos), text_to_identifiers(identifiers)
        delivery = Delivery(message, qos, bool(retain), numbers, place)
        if shared is not None:
            delivery = SharedDelivery(
                message, qos, bool(retain), numbers, place, topic_filter=shared
            )
        kept = KeptDelivery(delivery, _check_packet_id(packet_id), bool(released))
        self._sessions[session].deliveries.append(kept)
        message.owed += 1


def _check_packet_id(packet_id: int, lowest: int = 0) -> int:
    if not lowest <= packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}")
    return packet_id


def _will(values: Values) -> KeptWill:
    client_id, username, due, delay, topic, payload, qos, retain, *rest = values
    content_type, response_topic, correlation_data, expiry, payload_format, pairs = rest
    properties = Properties(
        payload_format_indicator=payload_format,
        message_expiry_interval=expiry,
        content_type=content_type,
        response_topic=response_topic,
        correlation_data=correlation_data,
        will_delay_interval=delay or None,
        user_properties=message_row.text_to_pairs(pairs),
    )
    will = Will(topic, payload, message_row.check_qos(qos), bool(retain), properties)
    return KeptWill(client_id, username, will, due)
