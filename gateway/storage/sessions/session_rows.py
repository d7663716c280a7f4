"""The statements that write sessions and what they are owed."""

from gateway.storage.engine.many_rows import insert_statement

SESSION = (
    "INSERT OR REPLACE INTO session"
    " (id, client_id, expiry_interval, username, left_at, listener, local, proven)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
    " expiry_interval = excluded.expiry_interval, username = excluded.username,"
    " left_at = excluded.left_at, listener = excluded.listener, local = excluded.local,"
    " proven = excluded.proven"
)
"""A session that is there is changed in place: the index of client identifiers, in whose order
clients do not come, need not be written. One that only the disk knows of gives way to a new one."""

END = (
    "DELETE FROM session WHERE id = ?",
    "DELETE FROM subscription WHERE session = ?",
    "DELETE FROM incoming WHERE session = ?",
    "DELETE FROM attempt WHERE session = ?",
)
"""What ends a session, beside what it is owed."""

END_OWED = "DELETE FROM delivery WHERE session = ?"
"""Its messages are deleted one by one, since others may be owed them."""

SUBSCRIBE = (
    "INSERT OR REPLACE INTO subscription (session, topic_filter, qos, no_local,"
    " retain_as_published, identifier, expression, identity, awaits_retained, deliver)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
EVERY = " every="
"""What stands in the column of the delivery policy before the subscription's `$every`."""

UNSUBSCRIBE = "DELETE FROM subscription WHERE session = ? AND topic_filter = ?"

_DELIVERY = ("session", "sequence", "message", "qos", "retain", "packet_id", "released")

OWE = insert_statement(
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
OWE_PLAIN = (
    "INSERT INTO delivery"
    " (session, sequence, message, qos, retain, packet_id, released, size, alone)"
    " VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?)"
)
"""OWE for one message that was not sent, of a subscription that says nothing of it, and does not
expire."""

LEFT = "UPDATE delivery SET messages = ?, size = ?, gone = ? WHERE session = ? AND sequence = ?"
"""What is left of a row, some of whose messages are gone."""

PROGRESS = "UPDATE delivery SET packet_id = ?, released = ? WHERE session = ? AND sequence = ?"
"""What became of a row that an earlier batch has written."""

DONE = "DELETE FROM delivery WHERE session = ? AND sequence BETWEEN ? AND ?"
DONE_ALL = "DELETE FROM delivery"

KEEP_INCOMING = "INSERT OR REPLACE INTO incoming (session, packet_id) VALUES (?, ?)"
FORGET_INCOMING = "DELETE FROM incoming WHERE session = ? AND packet_id = ?"

ATTEMPTED = "INSERT OR REPLACE INTO attempt (session, sequence, attempts) VALUES (?, ?, ?)"
FORGET_ATTEMPTS = "DELETE FROM attempt WHERE session = ? AND sequence = ?"


def identifiers_to_text(identifiers: tuple[int, ...]) -> str | None:
    """Return subscription identifiers with spaces between them, None where there are none."""
    return " ".join(map(str, identifiers)) if identifiers else None


def text_to_identifiers(text: str | None) -> tuple[int, ...]:
    """Return what `identifiers_to_text` made the text of; raise ValueError for any other."""
    return () if text is None else tuple(map(int, text.split()))
