"""What a person asks of a node's past: `$CONTROL/tidegate/node`."""

import json
from typing import TYPE_CHECKING

from gateway.bridges.readings.reading import NAME_MAX
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.mqtt.message import Message

PAYLOAD_MAX = 4096


class NodeRequests:
    """Answers `{"forget": "<node>"}`; 0x99 is for what is no such request."""

    def __init__(self, supervisor: "Supervisor") -> None:
        self._supervisor = supervisor

    def receive(self, message: "Message") -> ReasonCode:
        """Have the bridges forget the node."""
        try:
            node = json.loads(bytes(message.payload)[:PAYLOAD_MAX])["forget"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if not isinstance(node, str) or not 1 <= len(node.encode(errors="replace")) <= NAME_MAX:
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        self._supervisor.forget(node)
        return ReasonCode.SUCCESS
