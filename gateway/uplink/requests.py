"""What the fleet asks of the gateway, by its own broker."""

from collections.abc import Callable
from dataclasses import dataclass

RECALL_TOPIC = "control/recall"
"""Below `<prefix>/<gateway_id>/`: requests for messages of the history."""

RECALL_ANSWERS = "recall"
"""Where they are answered."""


@dataclass(slots=True)
class Requests:
    """Who answers; None where the fleet may not ask, and nothing is subscribed to."""

    recall: Callable[[bytes], None] | None = None
