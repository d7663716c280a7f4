"""How large a batch of messages may become, and how long it may gather."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is full: messages, bytes before compression, seconds since its first."""

    messages: int
    bytes: int
    delay: float
