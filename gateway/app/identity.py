"""Detects data of another board, or exported data: two gateways could have one identity."""

import logging
from pathlib import Path

from gateway.app.control import Control
from gateway.app.parts import Run, Storage
from gateway.config.host_name import machine_id
from gateway.hashes import blake2b
from gateway.storage.engine.files import sync_folder
from gateway.storage.state.note import note_board, noted_board

logger = logging.getLogger(__name__)

MOVED = "identity_moved"
"""The alarm of a gateway whose data was made on another board."""

EXPORTED = "identity_exported"
"""The alarm of a gateway whose identity went to another board by `tidegate export`."""

MARK = "exported"
"""The file in the data folder with the time of an export, and its archive."""

MARK_BYTES = 1_000
"""Bytes of the mark that are read."""

SERIALS = (
    Path("/sys/firmware/devicetree/base/serial-number"),
    Path("/proc/device-tree/serial-number"),
    Path("/sys/class/dmi/id/product_uuid"),
)
"""Files with a board's serial; the first that has one counts. A container may have none."""

PURPOSE = b"tidegate board"
"""The purpose of the hashes: a machine id is confidential (machine-id(5))."""


def board() -> dict[str, int]:
    """Return the hash of each property that identifies this board, as far as it has them."""
    found = {"machine id": machine_id(), "board serial": _serial()}
    return {
        name: int.from_bytes(
            blake2b(text.encode(), digest_size=8, key=PURPOSE).digest(), signed=True
        )
        for name, text in found.items()
        if text
    }


def _serial() -> str:
    """Return the board's serial, "" if it has none or a meaningless one."""
    for path in SERIALS:
        try:
            text = path.read_text("ascii").strip("\0 \n")
        except (OSError, ValueError):
            continue
        if text.strip("0-"):
            return text
    return ""


async def watch_identity(run: Run, storage: Storage, control: Control) -> None:
    """Raise the alarm `identity_moved` on another board than before, until it is confirmed."""
    here, before = board(), await noted_board(storage.database)
    others = [name for name, value in here.items() if before.get(name, value) != value]
    if others:
        text = (
            f"the data of gateway {run.configuration.gateway_id} was made on another board or card"
            f" ({' and '.join(others)} differ): stop the other one for good, or give one of the two"
            " another [gateway] id; then `tidegate uplink confirm` here"
        )
        logger.warning("%s", text)
        run.alarm(MOVED, text)
    elif here.keys() - before.keys():
        note_board(storage.writer, before | here)
        storage.writer.hand_over()

    def confirm() -> None:
        note_board(storage.writer, here)
        run.alarm(MOVED, "")

    control.know("identity", "confirm", confirm)


def export_mark(data: Path) -> str:
    """Return when and into which archive the identity was exported, "" if it was not."""
    try:
        with (data / MARK).open(errors="replace") as file:
            return file.read(MARK_BYTES).strip() or "at an unknown time"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"as far as is known: {error}"


class ExportMark:
    """The mark of `tidegate export` in a running gateway: nothing is sent up while it exists."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.text = export_mark(run.data)
        """When and into which archive the identity was exported, "" if it was not."""
        if self.text:
            text = (
                f"the identity was exported {self.text}, and nothing is sent from here:"
                " `tidegate uplink resume` if no other board has it"
            )
            logger.warning("%s", text)
            run.alarm(EXPORTED, text)

    def lift(self) -> None:
        """Remove the mark, if there is one: this board has the identity again."""
        if not self.text:
            return
        try:
            (self._run.data / MARK).unlink(missing_ok=True)
            sync_folder(self._run.data)
        except OSError as error:
            logger.warning("%s: %s; the next start sends nothing up", self._run.data / MARK, error)
        self.text = ""
        self._run.alarm(EXPORTED, "")
