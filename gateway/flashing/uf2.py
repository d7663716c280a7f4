"""Installs MicroPython from a UF2 file on the drive that a board is in its boot mode."""

import contextlib
import hashlib
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from gateway.flashing.board import Progress
from gateway.flashing.errors import FlashingError

BLOCK = 512
START = struct.Struct("<IIIIIIII")
MAGIC = (0x0A324655, 0x9E5D5157)
END = 0x0AB16F30
HAS_FAMILY = 0x2000
FAMILIES = {0xE48BFF56: "RP2040", 0xE48BFF59: "RP2350", 0xE48BFF5A: "RP2350", 0xE48BFF5B: "RP2350"}
DRIVES = {"RPI-RP2": "RP2040", "RP2350": "RP2350"}
"""Board-ID of a drive's INFO_UF2.TXT, and its chip."""

ANY_CHIP = 0xE48BFF57
"""Family of blocks without a chip, such as the workaround of the RP2350's E10."""

INFO = "INFO_UF2.TXT"
COPY_BYTES = 64 * 1024
DRIVE_SECONDS = 30.0
"""Seconds within which a drive appears once the board's button was pressed."""


def uf2_chip(image: bytes) -> str:
    """Return the chip of a UF2 file; raise FlashingError if it is not one."""
    if not image or len(image) % BLOCK:
        raise FlashingError(f"not a UF2 file: {len(image)} bytes are not blocks of {BLOCK}")
    families = set()
    for start in range(0, len(image), BLOCK):
        first, second, flags, *_, family = START.unpack_from(image, start)
        (end,) = struct.unpack_from("<I", image, start + BLOCK - 4)
        if (first, second) != MAGIC or end != END:
            raise FlashingError(f"not a UF2 file: no block at byte {start}")
        if flags & HAS_FAMILY and family != ANY_CHIP:
            families.add(family)
    chips = {FAMILIES.get(family, f"family 0x{family:08x}") for family in families}
    if len(chips) != 1:
        raise FlashingError(f"a UF2 file for {', '.join(sorted(chips)) or 'no chip'}")
    return chips.pop()


def mounted_drives() -> Iterator[Path]:
    """Yield the folders where UF2 drives are mounted."""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        folder = Path(line.split()[1].encode().decode("unicode_escape"))
        with contextlib.suppress(OSError):  # not for this user, or being unmounted
            if (folder / INFO).is_file():
                yield folder


def find_drive(seconds: float = DRIVE_SECONDS) -> Path:
    """Return the only UF2 drive, waiting so many seconds for one; raise FlashingError."""
    end = time.monotonic() + seconds
    while True:
        found = list(mounted_drives())
        if len(found) == 1:
            return found[0]
        if found:
            raise FlashingError(f"several UF2 drives; --drive names one: {found[0]}, {found[1]}")
        if time.monotonic() > end:
            raise FlashingError(
                "no UF2 drive is mounted: hold BOOTSEL while plugging the board in, mount its drive"
                " if your system does not, or name its folder with --drive"
                " (tidegate docs first-node)"
            )
        time.sleep(0.5)


def copy_uf2(image: Path, drive: Path, progress: Progress) -> None:
    """Copy an image to a drive, whose board starts it at once; raise FlashingError."""
    content = image.read_bytes()
    chip, wanted = _drive_chip(drive), uf2_chip(content)
    if chip != wanted:
        raise FlashingError(f"{image} is for {wanted}, and {drive} is a board with {chip}")
    target = drive / image.name
    try:
        with target.open("wb") as file:
            for start in range(0, len(content), COPY_BYTES):
                piece = content[start : start + COPY_BYTES]
                file.write(piece)
                progress(len(piece))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        # The board restarts at the last block, which removes the drive.
        if (drive / INFO).exists():
            raise FlashingError(f"{target}: {error.strerror}") from error
    _check_copy(target, content)


def _check_copy(target: Path, content: bytes) -> None:
    """Compare the file on the drive while the drive exists."""
    try:
        copied = hashlib.sha256(target.read_bytes()).digest()
    except OSError:  # the board has restarted, which it does only with a whole image
        return
    if copied != hashlib.sha256(content).digest():
        raise FlashingError(f"{target}: what is on the drive differs: copy it again")


def _drive_chip(drive: Path) -> str:
    try:
        lines = (drive / INFO).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise FlashingError(f"{drive} is no UF2 drive: {INFO}: {error.strerror}") from error
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "Board-ID":
            return DRIVES.get(value.strip(), value.strip())
    raise FlashingError(f"{drive}/{INFO} names no Board-ID")
