"""A paused uplink stays paused across restarts, until somebody resumes it."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.storage.state.note import is_noted, note, note_of
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

PAUSED = "uplink_paused"


async def keep_pause(gateway: "Gateway", uplinks: Sequence[Uplink]) -> None:
    """Take up the pauses of an earlier run, and let clients pause and resume uplinks.

    They ask for all, or for one by its name. Whoever asks is answered when it is on disk.
    """
    _obey(gateway, "uplink", uplinks)
    for uplink in uplinks:
        if uplink.name:
            _obey(gateway, f"uplink/{uplink.name}", [uplink])
        if await is_noted(gateway.database, note_of(PAUSED, uplink.name)):
            name = f" {uplink.name}" if uplink.name else ""
            logger.warning(
                "uplink%s: paused before the start; `tidegate uplink resume%s` ends that",
                *(name, name),
            )
            uplink.pause()


def _obey(gateway: "Gateway", part: str, uplinks: Sequence[Uplink]) -> None:
    def pause() -> None:
        for uplink in uplinks:
            note(gateway.writer, note_of(PAUSED, uplink.name))
            uplink.pause()

    def resume() -> None:
        for uplink in uplinks:
            note(gateway.writer, note_of(PAUSED, uplink.name), there=False)
            uplink.resume()

    gateway.control.know(part, "pause", pause)
    gateway.control.know(part, "resume", resume)
