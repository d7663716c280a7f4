"""Requests that the fleet sends to the gateway over its broker."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.uplink.down import Down

RECALL_TOPIC = "control/recall"
"""Below `<prefix>/<gateway_id>/`: requests for messages of the history."""

RECALL_ANSWERS = "recall"
"""The topic of the answers."""


@dataclass(slots=True)
class Requests:
    """The handlers of requests; without one the gateway does not subscribe."""

    recall: Callable[[bytes], None] | None = None
    down: "Down | None" = None
