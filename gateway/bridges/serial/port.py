"""A line to a node, whether at this board or at the far end of a network."""

import asyncio
import contextlib
import errno
import os
import re
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gateway.bridges.supervision.interfaces import BridgeError

if TYPE_CHECKING:
    from serial import Serial


PARITIES = ("none", "even", "odd")

READ_MAX = 4096
"""Bytes read at once: the size of the kernel's terminal buffer."""


@dataclass(frozen=True, slots=True)
class Line:
    """The setup of a serial line."""

    baud: int = 115_200
    data_bits: int = 8
    parity: str = "none"
    stop_bits: int = 1

    @property
    def settings(self) -> dict[str, int | str]:
        """The same as pyserial's arguments."""
        parity = self.parity[0].upper()
        bits = {"bytesize": self.data_bits, "stopbits": self.stop_bits}
        return {"baudrate": self.baud, "parity": parity, **bits}


class PortError(BridgeError):
    """The port cannot be opened, or it was unplugged; the text says which in a few words."""


class Port(Protocol):
    """A line to a node, over any connection."""

    async def read(self) -> bytes:
        """Return the next bytes, at least one; raises PortError once the line is lost."""

    def write(self, data: bytes) -> bool:
        """Send without waiting; return False when the bytes do not fit or the line is lost."""

    def close(self) -> None:
        """Close at once; unsent bytes are dropped."""


USB = re.compile(r"usb:([0-9a-fA-F]{4}):([0-9a-fA-F]{4})(?::(.+))?")
"""An adapter by vendor, product and serial number, independent of its kernel number."""


async def open_port(port: str, line: Line) -> Port:
    """Open a configured port: a path, `usb:...` or a URL; raises PortError."""
    if "://" in port:
        from gateway.bridges.serial.remote_port import open_remote

        return await open_remote(port, line)
    return await SerialPort.open(port, line)


class SerialPort:
    """An open port, locked against other programs that lock it too.

    pyserial opens and configures it. Reading and writing use its descriptor, because pyserial's own
    calls use select(), which fails for descriptors above 1023, and a broker has thousands.
    """

    def __init__(self, serial: "Serial") -> None:
        self._serial = serial
        self._descriptor: int = serial.fileno()
        self._unread = bytearray()
        self._arrived = asyncio.Event()
        self._lost: PortError | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._receive)

    @classmethod
    async def open(cls, path: str, line: Line) -> "SerialPort":
        """Open and lock the device at `path`; raises PortError when that fails."""
        # In a thread, because a USB adapter may answer slowly.
        return cls(await asyncio.to_thread(_open, path, line))

    async def read(self) -> bytes:
        """Return the next bytes, at least one; raises PortError once the device is unplugged."""
        await self._arrived.wait()
        data = bytes(self._unread)
        self._unread.clear()
        if self._lost is None:
            self._arrived.clear()
            if len(data) >= READ_MAX:  # reading was paused
                self._loop.add_reader(self._descriptor, self._receive)
        elif not data:
            raise self._lost
        return data

    def write(self, data: bytes) -> bool:
        """Hand `data` to the kernel; return False when it does not fit there or the port is gone.

        Bytes that do not fit are dropped: the kernel's buffer is the only queue.
        """
        try:
            return os.write(self._descriptor, data) == len(data)
        except OSError:  # the reader gets the same error and closes the port
            return False

    def close(self) -> None:
        """Close at once; unsent bytes are dropped."""
        self._loop.remove_reader(self._descriptor)
        with contextlib.suppress(OSError, termios.error):  # unplugged: there is nothing to drop
            self._serial.reset_output_buffer()  # otherwise closing waits until all has been sent
        self._serial.close()

    def _receive(self) -> None:
        """Read the kernel's bytes; at most READ_MAX bytes wait for `read`."""
        try:
            data = os.read(self._descriptor, READ_MAX)
        except OSError as failure:
            self._lose(_reason(failure))
            return
        if not data:
            self._lose("unplugged")
            return
        self._unread += data
        self._arrived.set()
        if len(self._unread) >= READ_MAX:
            self._loop.remove_reader(self._descriptor)

    def _lose(self, reason: str) -> None:
        self._loop.remove_reader(self._descriptor)
        self._lost = PortError(reason)
        self._arrived.set()


def _open(path: str, line: Line) -> "Serial":
    from serial import Serial

    try:
        settings: dict[str, Any] = line.settings
        return Serial(find_device(path), timeout=0, write_timeout=0, exclusive=True, **settings)
    except (OSError, ValueError, termios.error) as failure:  # termios.error is no OSError
        raise PortError(_reason(failure)) from failure


def find_device(port: str) -> str:
    """Return the path of a port: for `usb:...` the adapter's present one, else `port`."""
    wanted = USB.fullmatch(port)
    if wanted is None:
        return port
    from serial.tools.list_ports import comports

    vendor, product, number = int(wanted[1], 16), int(wanted[2], 16), wanted[3]
    found = sorted(
        each.device
        for each in comports()
        if (each.vid, each.pid) == (vendor, product) and number in (None, each.serial_number)
    )
    if not found:
        raise PortError(f"no adapter {port.removeprefix('usb:')} is plugged in")
    return str(found[0])


@dataclass(frozen=True, slots=True)
class PluggedIn:
    """A port and the description of its adapter or board."""

    port: str
    title: str


def plugged_in() -> list[PluggedIn]:
    """Return the USB serial ports of this computer, by their stable path if there is one."""
    from serial.tools.list_ports import comports

    found = (each for each in comports(include_links=True) if each.vid is not None)
    by_device: dict[str, PluggedIn] = {}
    for each in sorted(found, key=lambda port: port.device):
        title = " ".join(filter(None, (each.manufacturer, each.product))) or each.description
        by_device.setdefault(f"{each.hwid}", PluggedIn(each.device, title))
    return list(by_device.values())


def _reason(failure: Exception) -> str:
    number = getattr(failure, "errno", None)
    if number == errno.EAGAIN:
        return "another program has it open"
    return os.strerror(number) if number else str(failure)
