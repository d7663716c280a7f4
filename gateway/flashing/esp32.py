"""Installs MicroPython on an ESP32 from an image; esptool writes and compares it by MD5."""

import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from gateway.extras import how_to_install
from gateway.flashing.errors import FlashingError

MAGIC = 0xE9
CHIPS = {
    0: ("esp32", 0x1000),
    2: ("esp32s2", 0x1000),
    5: ("esp32c3", 0),
    9: ("esp32s3", 0),
    12: ("esp32c2", 0),
    13: ("esp32c6", 0),
    16: ("esp32h2", 0),
    18: ("esp32p4", 0x2000),
    23: ("esp32c5", 0x2000),
}
"""Chips by the number in an image's head: esptool's name, and the image's offset in flash."""


HEAD_BYTES = 24


def esp_chip(image: bytes) -> tuple[str, int]:
    """Return esptool's name of an image's chip, and the image's offset in its flash."""
    if len(image) < HEAD_BYTES or image[0] != MAGIC:
        raise FlashingError("not an image of an ESP32: it begins with another byte than 0xe9")
    (number,) = struct.unpack_from("<H", image, 12)
    if number not in CHIPS:
        raise FlashingError(f"an image for a chip that is not known here: number {number}")
    return CHIPS[number]


def write_esp32(image: Path, device: str, *, stub: bool = True) -> None:
    """Write an image to the chip at a port; esptool shows progress. Raise FlashingError.

    The rest of the flash stays, and with it the node's files if only MicroPython is updated.
    Without `stub` the chip's own loader writes, more slowly.
    """
    chip, address = esp_chip(image.read_bytes())
    if find_spec("esptool") is None:
        raise FlashingError(f"esptool is not installed: {how_to_install('flash')}")
    command = [sys.executable, "-m", "esptool", "--chip", chip, "--port", device]
    command += [] if stub else ["--no-stub"]
    done = subprocess.run([*command, "write-flash", hex(address), str(image)], check=False)  # noqa: S603
    if done.returncode:
        raise FlashingError(
            f"{device}: esptool could not write {image}: hold BOOT while plugging the board in,"
            " and try again"
        )
