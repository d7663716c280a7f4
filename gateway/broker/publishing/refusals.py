"""Refusals of messages that exceed a limit now: each is counted, with a reason."""

from typing import TypeAlias

from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.overflow import count_refusal
from gateway.session.session import Session

SHOWN = 80
"""Characters of a client identifier that are shown."""

Outcome: TypeAlias = tuple[int, ReasonCode, ReasonCode | None]
"""How many messages were accepted, their reason code, and the refusal of the next one.

The refusal is None if the next one was not checked.
"""


class Refusals:
    """`reason` is why the last message was refused."""

    __slots__ = ("_counters", "reason")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.reason = ""

    def for_queue(self, session: Session) -> None:
        """Count a message that does not fit into a session's queue."""
        count_refusal(session)
        self.reason = f"the queue of client {session.client_id[:SHOWN]!r} is full"

    def for_disk(self) -> None:
        """Count a message that does not fit on the disk."""
        self._counters.add("tidegate/storage/rejected")
        self.reason = "the disk accepts no more messages"

    def for_share(self, session: Session, reason: str) -> None:
        """Count a message whose publisher has used up its share of what a session holds for all."""
        count_refusal(session)
        self.reason = reason
