"""Refusals of messages for which there is no room now: each is counted, and said in the log."""

from typing import TYPE_CHECKING

from gateway.session.queue.overflow import count_refusal
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

SHOWN = 80
"""Characters of a client identifier that are shown."""


def refuse_for(broker: "Broker", session: Session) -> None:
    """Count a message for which a session's queue has no room."""
    count_refusal(session)
    broker.refusal = f"the queue of client {session.client_id[:SHOWN]!r} is full"


def refuse_for_disk(broker: "Broker") -> None:
    """Count a message for which the disk has no room."""
    broker.counters.add("tidegate/storage/rejected")
    broker.refusal = "the disk takes no more"


def refuse_for_share(broker: "Broker", session: Session) -> None:
    """Count a message whose publisher has its share of what a session holds for all."""
    count_refusal(session)
    broker.refusal = broker.shares.refusal
