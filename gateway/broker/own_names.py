"""Client identifiers of the gateway's own parts, which no client may have.

In memory and on disk, a message's publisher is known by its client identifier, and the gateway
trusts some messages only from its own parts.
"""

PREFIX = "$channel/"
"""Prefix of channel names in the database; no client identifier may begin with it."""

DELAYS = "$delay"
"""The database name of the session that holds delayed messages."""

UPLINK_CLIENT = "$uplink"
"""Publishes here what came down from a fleet; no rule forwards it, and it gets no number."""

CONTROL_CLIENT = "$CONTROL"
"""What answers requests."""

FIGURES_CLIENT = "$SYS"
"""Publishes the gateway's own figures."""

_NAMES = frozenset((UPLINK_CLIENT, CONTROL_CLIENT, FIGURES_CLIENT, DELAYS))


def is_own_name(client_id: str) -> bool:
    """Return whether a client identifier is one of the gateway's own parts."""
    return client_id in _NAMES or client_id.startswith(PREFIX)
