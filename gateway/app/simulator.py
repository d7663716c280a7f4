"""A simulated sensor node: the firmware's own files, run beside the gateway."""

import asyncio
import logging
import sys
from pathlib import Path

from gateway.errors import StartError
from gateway.settings.simulator import SimulatorSettings

logger = logging.getLogger(__name__)

START_TIMEOUT = 2.0
"""Seconds to wait for a simulator's port at the start; the bridge retries later."""

STOP_TIMEOUT = 3.0
"""Seconds that a simulator has to end after its standard input was closed."""

PLACES = (
    Path(__file__).parents[2] / "firmware" / "simulator.py",  # a checkout
    Path(sys.prefix) / "share" / "tidegate" / "firmware" / "simulator.py",  # installed
)


def program() -> Path:
    """Return the file that is run; raise StartError if it is not installed."""
    for place in PLACES:
        if place.exists():
            return place
    raise StartError(f"no simulator at {' or '.join(map(str, PLACES))}")


class Simulator:
    """One process that uses the serial protocol on its own pseudo-terminal."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the node; raise StartError if its files are not installed."""
        settings = self._settings
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(program()),
            *("--node", settings.node),
            *("--port", settings.port),
            *("--interval", str(settings.interval)),
            stdout=asyncio.subprocess.PIPE,  # one line, once the port exists
            stdin=asyncio.subprocess.PIPE,  # its end tells the simulator to stop
            start_new_session=True,  # Ctrl-C is for the gateway, which then stops the node
        )
        await self._wait_for_port(self._process.stdout)
        logger.info("simulated node %s at %s", settings.node, settings.port)

    async def _wait_for_port(self, output: asyncio.StreamReader | None) -> None:
        """Give the node time to make its port, so that the bridge finds it at its first try."""
        if output is None:
            return
        try:
            await asyncio.wait_for(output.readline(), START_TIMEOUT)
        except TimeoutError:
            logger.warning("simulated node %s has made no port yet", self._settings.node)

    async def close(self) -> None:
        """Stop the node."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
        except TimeoutError:
            process.kill()
            await process.wait()
