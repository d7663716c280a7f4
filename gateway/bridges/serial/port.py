"""A line to a node, whether at this board or at the far end of a network."""

from typing import Protocol

from gateway.bridges.supervision.errors import BridgeError

READ_MAX = 4096
"""Bytes taken at once: what the kernel keeps for a terminal."""


class PortError(BridgeError):
    """The port cannot be opened, or it was unplugged; the text says which in a few words."""


class Port(Protocol):
    """A line to a node, however it is reached."""

    async def read(self) -> bytes:
        """Return the next bytes, at least one; raises PortError once the line is lost."""

    def write(self, data: bytes) -> bool:
        """Send without waiting; return False when it does not fit or the line is lost."""

    def close(self) -> None:
        """Close at once; what was not yet sent is dropped."""
