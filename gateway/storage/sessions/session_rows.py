"""The statements that write sessions and their deliveries."""

from gateway.storage.engine.many_rows import insert_statement

SESSION = (
    "INSERT OR REPLACE INTO session"
    " (id, client_id, expiry_interval, username, left_at, listener, local, proven)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
    " expiry_interval = excluded.expiry_interval, username = excluded.username,"
    " left_at = excluded.left_at, listener = excluded.listener, local = excluded.local,"
    " proven = excluded.proven"
)
"""An existing session is updated in place: the index of client identifiers, which are unordered,
need not be written. One with the same client identifier from another run is replaced."""

END = (
    "DELETE FROM session WHERE id = ?",
    "DELETE FROM subscription WHERE session = ?",
    "DELETE FROM incoming WHERE session = ?",
    "DELETE FROM attempt WHERE session = ?",
)
"""Deletes a session, except its deliveries."""

DELETE_DELIVERIES = "DELETE FROM delivery WHERE session = ?"
"""Its messages are deleted one by one, since other sessions may need them."""

SUBSCRIBE = (
    "INSERT OR REPLACE INTO subscription (session, topic_filter, qos, no_local,"
    " retain_as_published, identifier, expression, identity, awaits_retained, deliver)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
EVERY = " every="
"""Precedes the subscription's `$every` in the column of the delivery policy."""

UNSUBSCRIBE = "DELETE FROM subscription WHERE session = ? AND topic_filter = ?"

_DELIVERY = ("session", "sequence", "message", "qos", "retain", "packet_id", "released")

INSERT_DELIVERY = insert_statement(
    "delivery",
    (
        *_DELIVERY,
        "identifiers",
        "shared_filter",
        "size",
        "alone",
        "expires",
        "messages",
        "gone",
    ),
)
INSERT_PLAIN_DELIVERY = (
    "INSERT INTO delivery"
    " (session, sequence, message, qos, retain, packet_id, released, size, alone)"
    " VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?)"
)
"""INSERT_DELIVERY for one unsent message without expiry, of a subscription without identifier."""

UPDATE_REMAINING = (
    "UPDATE delivery SET messages = ?, size = ?, gone = ? WHERE session = ? AND sequence = ?"
)
"""Updates a row, some of whose messages are finished."""

PROGRESS = "UPDATE delivery SET packet_id = ?, released = ? WHERE session = ? AND sequence = ?"
"""Updates the state of a row that an earlier batch has written."""

DONE = "DELETE FROM delivery WHERE session = ? AND sequence BETWEEN ? AND ?"
DONE_ALL = "DELETE FROM delivery"

INSERT_INCOMING = "INSERT OR REPLACE INTO incoming (session, packet_id) VALUES (?, ?)"
FORGET_INCOMING = "DELETE FROM incoming WHERE session = ? AND packet_id = ?"

ATTEMPTED = "INSERT OR REPLACE INTO attempt (session, sequence, attempts) VALUES (?, ?, ?)"
FORGET_ATTEMPTS = "DELETE FROM attempt WHERE session = ? AND sequence = ?"


def identifiers_to_text(identifiers: tuple[int, ...]) -> str | None:
    """Return subscription identifiers separated by spaces, None without any."""
    return " ".join(map(str, identifiers)) if identifiers else None


def text_to_identifiers(text: str | None) -> tuple[int, ...]:
    """Return the identifiers of a text from `identifiers_to_text`.

    Raise ValueError for any other.
    """
    return () if text is None else tuple(map(int, text.split()))
