"""Reports to systemd that the service is ready, alive or stopping (sd_notify's protocol)."""

import asyncio
import logging
import os
import socket
import time

from gateway.background import background

logger = logging.getLogger(__name__)


class SystemdNotify:
    """Sends to the socket that systemd named; does nothing without one."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._watchdog = int(os.environ.get("WATCHDOG_USEC", "0") or 0) / 1_000_000
        self._task: asyncio.Task[None] | None = None

    def ready(self, status: str) -> None:
        """Report that the service is ready, and start the watchdog messages."""
        self._send(f"READY=1\nSTATUS={status}")
        if self._address and self._watchdog and self._task is None:
            self._task = background(self._keep_alive())

    def reloading(self) -> None:
        """Report that the configuration is read again; `ready` reports its end."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the service is stopping."""
        if self._task is not None:
            self._task.cancel()
        self._send("STOPPING=1")

    async def _keep_alive(self) -> None:
        # from the loop itself: if it hangs, the messages stop and systemd restarts the service
        while True:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 2)

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # an address that begins with @ is in Linux's abstract namespace
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # a hanging systemd must block nothing: the message is lost instead
                sender.sendto(text.encode(), socket.MSG_DONTWAIT, address)
        except OSError as error:
            logger.warning("cannot notify systemd at %s: %s", self._address, error)
