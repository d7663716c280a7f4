"""Puts what a node has only in its memory onto the flash, before it is interrupted or starts anew.

It is loaded only then, for the sake of the memory.
"""

import os

from . import const
from .spill import SEGMENT_BYTES, Spill

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable

    from .buffer import Buffer, Sample

_TEXT = "saving"
"""What is printed again and again meanwhile, so that whoever waits for the REPL waits on."""

_REPORTED_EACH = const(64)
"""Samples between two times that it is."""

_RESERVE_BYTES = const(196608)
"""Bytes of the flash that stay free: a further version of the program needs as many."""


def save(
    buffer: "Buffer", spill: "Spill | None", folder: str, boot: int, feed: "Callable[[], None]"
) -> None:
    """Write all that is not acknowledged to files of `folder`, as far as the flash has room.

    The next start of the node finds it there. `spill` is the buffer's own, if it has one; `feed` is
    called again and again. The buffer has nothing to send after this.
    """
    saved = 0

    def put(files: Spill, sample: "Sample") -> None:
        nonlocal saved
        feed()
        if not saved % _REPORTED_EACH:
            print(_TEXT)
        saved += 1
        files.append(sample.sequence, sample.clock, sample.pack(0))

    # What waits for an acknowledgement is older than all on the flash, what waits to be sent newer.
    newer = spill or Spill(folder, 0, boot)
    older = Spill(folder, 0, boot)
    older.next_file = newer.front_file
    older.files_max = newer.files_max = newer.files_max + _free_bytes(folder) // SEGMENT_BYTES
    for sample in buffer.unsettled():
        put(older, sample)
    older.write()
    newer.write()
    while buffer.has_waiting:
        put(newer, buffer.take_waiting())
    newer.write()


def _free_bytes(folder: str) -> int:
    """Return the bytes that the flash has beyond those that stay free, none where it fails."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return max(status[1] * status[3] - _RESERVE_BYTES, 0)
