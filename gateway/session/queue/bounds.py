"""Bounds of what waits for one session."""

MAXIMUM_MEMORY = 64 * 1024 * 1024
"""Bytes of what waits for one session in memory: it is kept there alone, or not yet on disk."""

HEAD_MESSAGES = 1_000
"""Deliveries of one session that stay in memory although they are on disk: those sent next.

The last span of them may exceed it.
"""

HEAD_BYTES = 1024 * 1024
"""Bytes of the same; the last may exceed it."""

HELD_BACK_MESSAGES = 10_000
"""Messages of one session that are held back in memory, because its connection may not read them
now. Beyond that the next one waits with all that is behind it."""

HELD_BACK_BYTES = 4 * 1024 * 1024
"""Bytes of the same; the last may exceed it."""
