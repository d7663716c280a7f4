"""What the bridges need from the parts that the application joins them with."""

from collections.abc import Callable
from typing import Protocol

from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message

Publish = Callable[[Message], ReasonCode]
"""Takes a message into the broker; a code of 0x80 or above says that it was not taken."""

WhenOnDisk = Callable[[Callable[[], None]], None]
"""Runs the callback on the loop once everything gathered so far is committed."""


class SerialSettings(Protocol):
    """One `[[serial]]` table of the configuration."""

    @property
    def port(self) -> str:
        """Path of the device, such as `/dev/serial/by-id/...`."""

    @property
    def format(self) -> str:
        """`frames` or `json` (docs/serial-protocol.md)."""

    @property
    def baud(self) -> int:
        """Bits per second."""

    @property
    def node(self) -> str | None:
        """Node of a JSON line that names none; None for the port's base name."""


class NodeFrames(Protocol):
    """The last frames of each node, kept in the same transactions as what they carried."""

    def seen(self, node: str, boot: int, sequence: int) -> bool:
        """Return whether this frame was remembered before, also by an earlier run."""

    def remember(self, node: str, boot: int, sequence: int) -> None:
        """Gather the frame for the transaction that holds what was published before."""


class Bridge(Protocol):
    """Something that turns a line of sensors into readings for as long as it runs."""

    @property
    def name(self) -> str:
        """What the log calls it, such as `serial /dev/ttyUSB0`."""

    async def run(self) -> None:
        """Work until cancelled; any exception is a fault, after which it is run again."""
