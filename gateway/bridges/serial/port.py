"""A line to a node, whether at this board or at the far end of a network."""

from dataclasses import dataclass
from typing import Protocol

from gateway.bridges.supervision.errors import BridgeError

PARITIES = ("none", "even", "odd")

READ_MAX = 4096
"""Bytes taken at once: what the kernel keeps for a terminal."""


@dataclass(frozen=True, slots=True)
class Line:
    """How a serial line is set up."""

    baud: int = 115_200
    data_bits: int = 8
    parity: str = "none"
    stop_bits: int = 1

    @property
    def settings(self) -> dict[str, int | str]:
        """The same in the words of pyserial."""
        parity = self.parity[0].upper()
        bits = {"bytesize": self.data_bits, "stopbits": self.stop_bits}
        return {"baudrate": self.baud, "parity": parity, **bits}


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
