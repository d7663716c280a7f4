"""A serial line on a pseudo-terminal: the node's end, and a link that the gateway opens."""

import contextlib
import os
import tty
from pathlib import Path

from gateway.bridges.serial.serial_frames import unstuff


class SerialLine:
    """The device behind `path`; it can be unplugged and, as another terminal, plugged in again.

    `descriptor` is the node's end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = -1
        self._received = b""

    @property
    def port(self) -> str:
        return str(self.path)

    def plug(self) -> None:
        self.descriptor, other = os.openpty()
        tty.setraw(other)
        os.set_blocking(self.descriptor, False)
        temporary = self.path.with_suffix(".new")
        temporary.symlink_to(os.ttyname(other))
        temporary.replace(self.path)
        self._other = other
        self._received = b""

    def unplug(self) -> None:
        """Take the device away: readers see the end, and the path leads nowhere.

        The link goes first: the terminal's name is the next one's that anybody opens.
        """
        self.path.unlink()
        os.close(self._other)
        os.close(self.descriptor)
        self.descriptor = -1

    def close(self) -> None:
        if self.descriptor >= 0:
            self.unplug()

    def send(self, data: bytes) -> None:
        """Send as the node; everything must fit the kernel's buffer."""
        assert os.write(self.descriptor, data) == len(data)

    def received(self) -> bytes:
        """Return everything that the gateway has sent since the device was plugged in."""
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self.descriptor, 65_536)
        return self._received

    def bodies(self) -> list[bytes]:
        """Return the bodies of the frames that the gateway has sent, checks cut off."""
        return [unstuff(piece)[:-4] for piece in self.received().split(b"\0") if piece]
