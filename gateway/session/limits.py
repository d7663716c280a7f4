"""The bounds of one session, and the memory that it shares with all others."""

from dataclasses import dataclass, field

from gateway.session.delivery_queue import MAXIMUM_BYTES, MAXIMUM_MESSAGES
from gateway.session.incoming import MAXIMUM_INCOMING
from gateway.session.queue_memory import QueueMemory

MAXIMUM_INFLIGHT = 100
"""Unacknowledged messages to one client, where its own Receive Maximum is not less."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What a session may hold: messages and bytes."""

    maximum_inflight: int = MAXIMUM_INFLIGHT
    maximum_incoming: int = MAXIMUM_INCOMING
    maximum_queued_messages: int = MAXIMUM_MESSAGES
    maximum_queued_bytes: int = MAXIMUM_BYTES
    memory: QueueMemory = field(default_factory=QueueMemory)
