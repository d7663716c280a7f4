"""The interface between an uplink and the destination that it sends to."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.storage.outbox.outbox import Outbox
from gateway.uplink.errors import TakenOverError

REMOVAL_SECONDS = 1.0
"""Seconds for which the removal of a delivered row may wait for another commit.

So a sensor's message each second costs one commit and not two. A crash within them repeats the rows
under their numbers.
"""


class Link:
    """One run of a destination: how it is woken and stopped, and what it reports.

    `wake` is set when rows were committed or removed, when the network has data, and when
    `stopping` became True. `taken_over` is called if the link before was ended by another gateway
    with this one's identity.
    """

    __slots__ = ("_report", "_trouble", "stopping", "taken_over", "wake")

    def __init__(
        self,
        report: Callable[[str], None],
        taken_over: Callable[[TakenOverError], None] = lambda _error: None,
    ) -> None:
        self.wake = asyncio.Event()
        self.stopping = False
        self.taken_over = taken_over
        self._report = report
        self._trouble: str | None = None

    def connected(self) -> None:
        """Report that the destination accepts messages now."""
        self.trouble("")

    def trouble(self, text: str) -> None:
        """Report a problem that does not end the link, "" for none."""
        if text != self._trouble:
            self._trouble = text
            self._report(text)

    def stop(self) -> None:
        """Ask the destination to finish the messages in flight and to return."""
        self.stopping = True
        self.wake.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Return once the link was woken since the last wait, or after `seconds`."""
        timer = None
        if seconds is not None:  # asyncio.timeout would be a third of an idle uplink's work
            timer = asyncio.get_running_loop().call_later(seconds, self.wake.set)
        try:
            await self.wake.wait()
        finally:
            if timer is not None:
                timer.cancel()
        self.wake.clear()


class Destination(Protocol):
    """Where the rows of the outbox are sent: the fleet's broker or a directory."""

    name: str

    async def run(self, link: Link) -> None:
        """Send until `link.stopping`, then disconnect cleanly and return.

        Raises LinkError if the link fails or cannot be established.
        """
        ...


async def removals_on_disk(outbox: Outbox, uplink: int, link: Link) -> None:
    """Return once every removal of an uplink is on disk, or when the link stops."""
    while outbox.writes.delivering.get(uplink, 0) and not link.stopping:
        await link.wait()
