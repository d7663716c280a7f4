"""One open serial port on the event loop: bytes in as they arrive, bytes out without waiting."""

import asyncio
import contextlib
import errno
import os
import re
import termios
from typing import TYPE_CHECKING, Any

from gateway.bridges.serial.port import READ_MAX, Line, Port, PortError

if TYPE_CHECKING:
    from serial import Serial

USB = re.compile(r"usb:([0-9a-fA-F]{4}):([0-9a-fA-F]{4})(?::(.+))?")
"""An adapter by vendor, product and serial number, whatever number the kernel gives it."""


async def open_port(port: str, line: Line) -> Port:
    """Open what the configuration names: a path, `usb:...` or a URL; raises PortError."""
    if "://" in port:
        from gateway.bridges.serial.remote_port import open_remote

        return await open_remote(port, line)
    return await SerialPort.open(port, line)


class SerialPort:
    """An open port, locked against other programs that lock it too.

    pyserial opens and sets it up. Reading and writing use its descriptor, because pyserial's own
    use select(), which fails for descriptors above 1023, and a broker has thousands.
    """

    def __init__(self, serial: "Serial") -> None:
        self._serial = serial
        self._descriptor: int = serial.fileno()

    @classmethod
    async def open(cls, path: str, line: Line) -> "SerialPort":
        """Open and lock the device at `path`; raises PortError when that fails."""
        # In a thread, because a USB adapter may take long to answer.
        return cls(await asyncio.to_thread(_open, path, line))

    async def read(self) -> bytes:
        """Return the next bytes, at least one; raises PortError once the device is unplugged."""
        await self._readable()
        try:
            data = os.read(self._descriptor, READ_MAX)
        except OSError as failure:
            raise PortError(_reason(failure)) from failure
        if not data:
            raise PortError("unplugged")
        return data

    def write(self, data: bytes) -> bool:
        """Hand `data` to the kernel; return False when it does not fit there or the port is gone.

        What did not fit is dropped: the kernel's buffer is the only queue.
        """
        try:
            return os.write(self._descriptor, data) == len(data)
        except OSError:  # the reader meets the same and closes the port
            return False

    def close(self) -> None:
        """Close at once; what was not yet sent is dropped."""
        with contextlib.suppress(OSError, termios.error):  # unplugged: there is nothing to drop
            self._serial.reset_output_buffer()  # otherwise closing waits until all has been sent
        self._serial.close()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._descriptor, _finish, readable)
        try:
            await readable
        finally:
            loop.remove_reader(self._descriptor)


def _finish(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


def _open(path: str, line: Line) -> "Serial":
    from serial import Serial

    try:
        settings: dict[str, Any] = line.settings
        return Serial(find_device(path), timeout=0, write_timeout=0, exclusive=True, **settings)
    except (OSError, ValueError, termios.error) as failure:  # termios.error is no OSError
        raise PortError(_reason(failure)) from failure


def find_device(port: str) -> str:
    """Return the path of a port: where the adapter that `usb:...` names is now, else `port`."""
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


def _reason(failure: Exception) -> str:
    number = getattr(failure, "errno", None)
    if number == errno.EAGAIN:
        return "another program has it open"
    return os.strerror(number) if number else str(failure)
