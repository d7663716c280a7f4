"""The bounds of one session, and the memory that it shares with all others."""

from dataclasses import dataclass, field

from gateway.session.incoming import MAXIMUM_INCOMING
from gateway.session.queue.memory import QueueMemory
from gateway.settings.broker import MAXIMUM_INFLIGHT, MAXIMUM_QUEUED_BYTES, MAXIMUM_QUEUED_MESSAGES
from gateway.settings.when_full import WhenFull


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What a session may hold: messages and bytes."""

    maximum_inflight: int = MAXIMUM_INFLIGHT
    maximum_incoming: int = MAXIMUM_INCOMING
    maximum_queued_messages: int = MAXIMUM_QUEUED_MESSAGES
    maximum_queued_bytes: int = MAXIMUM_QUEUED_BYTES
    when_full: WhenFull = WhenFull.REJECT
    memory: QueueMemory = field(default_factory=QueueMemory)
