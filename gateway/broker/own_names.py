"""Client identifiers of the gateway's own parts, which no client may have.

Who published a message is known by its client identifier, in memory and on disk, and some things
are believed of the gateway's own parts alone.
"""

PREFIX = "$channel/"
"""What the names of channels in the database begin with, and no client identifier may."""

DELAYS = "$delay"
"""The name in the database of the session that holds delayed messages."""

UPLINK_CLIENT = "$uplink"
"""What publishes here what came down from a fleet: no rule takes it, and it gets no number."""

CONTROL_CLIENT = "$CONTROL"
"""What answers requests."""

FIGURES_CLIENT = "$SYS"
"""What publishes the gateway's own figures."""

_NAMES = frozenset((UPLINK_CLIENT, CONTROL_CLIENT, FIGURES_CLIENT, DELAYS))


def is_own_name(client_id: str) -> bool:
    """Return whether a client identifier is one of the gateway's own parts."""
    return client_id in _NAMES or client_id.startswith(PREFIX)
