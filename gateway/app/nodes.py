"""A person's requests about nodes: `tidegate firmware update` and `tidegate node forget`."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.app.port_release import device_of
from gateway.bridges.readings.reading import NAME_MAX
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.mqtt.message import Message


SECONDS_MAX = 300.0
"""Seconds for an update, including the minute of a trial and a rollback."""

REASON_MAX = 240
"""Characters of an answer to a client."""

PROGRAM = "import sys; from gateway.cli.main import main; sys.exit(main())"

logger = logging.getLogger(__name__)


PAYLOAD_MAX = 4096


async def update_node(port: str, release: Callable[[str, float], bool]) -> str:
    """Put this version's node onto the board at a port; return the fault, or "".

    An interruption at any point leaves the board with the old version or the new one.
    """
    device = device_of(port)
    if not device or not release(device, SECONDS_MAX):
        return f"{port}: the node is at no cable of this gateway"
    logger.info("%s: the node is being updated", port)
    try:
        trouble = await _run(device)
    finally:
        release(device, 0)
    if not trouble:
        return ""
    logger.warning("%s: the node was not updated: %s", port, trouble)
    return trouble.splitlines()[0][:REASON_MAX]


async def _run(device: str) -> str:
    """Return the command's standard error if it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", PROGRAM, "firmware", "update", device),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the gateway, which then ends it
    )
    try:
        _, output = await asyncio.wait_for(process.communicate(), SECONDS_MAX)
    except TimeoutError:
        return f"not within {SECONDS_MAX:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    trouble = output.decode(errors="replace").strip() or f"it ended with {process.returncode}"
    return trouble if process.returncode else ""


class NodeRequests:
    """Answers `{"forget": "<node>"}`; an invalid request gets 0x99."""

    def __init__(self, supervisor: "Supervisor") -> None:
        self._supervisor = supervisor

    def receive(self, message: "Message") -> ReasonCode:
        """Have the bridges forget the node."""
        try:
            node = json.loads(bytes(message.payload)[:PAYLOAD_MAX])["forget"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if not isinstance(node, str) or not 1 <= len(node.encode(errors="replace")) <= NAME_MAX:
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        self._supervisor.forget(node)
        return ReasonCode.SUCCESS
