"""Bounds of what waits for one session."""

from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.session.queue_memory import DELIVERY_OVERHEAD

MAXIMUM_MESSAGES = 1_000_000
"""Deliveries that wait for one session: eleven days without the client at one a second."""

MAXIMUM_BYTES = 256 * 1024 * 1024
"""Bytes of what waits for one session, on disk; 900,000 messages of 200 bytes fit."""

MAXIMUM_MEMORY = 64 * 1024 * 1024
"""Bytes of what waits for one session in memory: it is kept there alone, or not yet on disk."""

HEAD_MESSAGES = 1_000
"""Deliveries of one session that stay in memory although they are on disk: those sent next.

The last run of them may exceed it.
"""

HEAD_BYTES = 1024 * 1024
"""Bytes of the same; the last may exceed it."""

LARGEST_OF_RUN = 16 * 1024
"""Bytes of the largest packet that is queued with others in one step."""

MOST_OF_RUN = LARGEST_OF_RUN + MESSAGE_OVERHEAD + DELIVERY_OVERHEAD
"""Bytes of memory that one of them takes at most."""
