"""Keeps the bridges running: what one of them trips over stops neither it nor anything else."""

import asyncio
import logging
from collections.abc import Sequence

from gateway.bridges.interfaces import Bridge

RESTART_FIRST = 1.0
"""Seconds from a bridge's fault to its next start; doubled at each further fault."""

RESTART_MAX = 60.0
"""Seconds between two starts at most, and how long a bridge must run to count as healthy again."""

logger = logging.getLogger(__name__)


class Supervisor:
    """Runs each bridge in a task of its own and starts it again after a fault."""

    def __init__(self, bridges: Sequence[Bridge]) -> None:
        self._bridges = tuple(bridges)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start every bridge; needs a running event loop."""
        self._tasks = [
            asyncio.create_task(_keep_running(bridge), name=bridge.name) for bridge in self._bridges
        ]

    async def close(self) -> None:
        """Stop every bridge and wait until each has let go of its port."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []


async def _keep_running(bridge: Bridge) -> None:
    loop = asyncio.get_running_loop()
    delay = RESTART_FIRST
    while True:
        started = loop.time()
        try:
            await bridge.run()
        except Exception:
            logger.exception("%s: fault", bridge.name)
        if loop.time() - started > RESTART_MAX:
            delay = RESTART_FIRST
        logger.warning("%s: starts again in %g s", bridge.name, delay)
        await asyncio.sleep(delay)
        delay = min(delay * 2, RESTART_MAX)
