"""Refusals of messages for which there is no room now: each is counted, with a reason."""

from typing import TypeAlias

from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.overflow import count_refusal
from gateway.session.session import Session

SHOWN = 80
"""Characters of a client identifier that are shown."""

Outcome: TypeAlias = tuple[int, ReasonCode, ReasonCode | None]
"""How many messages were accepted, with which reason code, and why the next one was not.

None for that one if it was not checked.
"""


class Refusals:
    """`reason` says why the last message was refused."""

    __slots__ = ("_counters", "reason")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.reason = ""

    def for_queue(self, session: Session) -> None:
        """Count a message for which a session's queue has no room."""
        count_refusal(session)
        self.reason = f"the queue of client {session.client_id[:SHOWN]!r} is full"

    def for_disk(self) -> None:
        """Count a message for which the disk has no room."""
        self._counters.add("tidegate/storage/rejected")
        self.reason = "the disk takes no more"

    def for_share(self, session: Session, reason: str) -> None:
        """Count a message whose publisher has its share of what a session holds for all."""
        count_refusal(session)
        self.reason = reason
