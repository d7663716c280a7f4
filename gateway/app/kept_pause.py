"""A paused uplink stays paused across restarts, until somebody resumes it."""

import logging
from typing import TYPE_CHECKING

from gateway.storage.state.note import is_noted, note
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

PAUSED = "uplink_paused"


async def keep_pause(gateway: "Gateway", uplink: Uplink) -> None:
    """Take up the pause of an earlier run, and let clients pause and resume the uplink.

    Whoever asks is answered when it is on disk.
    """

    def pause() -> None:
        note(gateway.writer, PAUSED)
        uplink.pause()

    def resume() -> None:
        note(gateway.writer, PAUSED, there=False)
        uplink.resume()

    gateway.control.know("uplink", "pause", pause)
    gateway.control.know("uplink", "resume", resume)
    if await is_noted(gateway.database, PAUSED):
        logger.warning("uplink: paused before the start; `tidegate uplink resume` ends that")
        uplink.pause()
