"""A bridge as a receiver of messages: what its code trips over does not reach the publisher."""

import logging

from gateway.access.access import EVERYTHING
from gateway.bridges.supervision.interfaces import Receive
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

logger = logging.getLogger(__name__)


class Subscriber:
    """An inline client that hands messages to a bridge; a fault of it refuses the message."""

    inline = True
    access = EVERYTHING

    def __init__(self, client_id: str, receive: Receive) -> None:
        self.client_id = client_id
        self.refusal = f"{client_id} takes no messages now"
        self._receive = receive

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:  # noqa: ARG002 - an inline client's shape
        """Take a message."""
        try:
            return self._receive(message)
        except Exception:
            logger.exception("%s: fault with a message on %.80r", self.client_id, message.topic)
            return ReasonCode.UNSPECIFIED_ERROR
