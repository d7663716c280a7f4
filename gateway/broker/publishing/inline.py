"""A part of the gateway that receives messages like a client, without a connection."""

from typing import Protocol

from gateway.access.access import Access
from gateway.broker.instant import Instant
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode


class InlineClient(Protocol):
    """What the broker sees of the uplink's rules and the control topics."""

    client_id: str
    inline: bool  # True
    access: Access  # EVERYTHING

    @property
    def refusal(self) -> str:
        """Why it refuses a message that it may accept later, for the log."""
        ...

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Accept a message that matched these of the client's own topic filters.

        A code of 0x80 or above is a refusal; the publisher gets it, and nobody gets the message.
        """
        ...


class Publish(Protocol):
    """How a part of the gateway publishes a message, as if it were a client."""

    def __call__(self, message: Message, instant: Instant, /) -> ReasonCode:
        """Route the message; a code of 0x80 or above says that nobody got it."""
        ...
