"""MicroPython itself: a UF2 file onto a drive, an image into an ESP32's flash."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.flashing.errors import FlashingError
from gateway.flashing.esp32 import esp_chip, write_esp32
from gateway.flashing.uf2 import copy_uf2, find_drive, uf2_chip

ROM = Path(__file__).parents[1] / "support" / "nodes" / "esp32_rom.py"
RP2040, RP2350, ANY = 0xE48BFF56, 0xE48BFF59, 0xE48BFF57


def uf2(*families: int, magic: int = 0x0A324655) -> bytes:
    blocks = []
    for number, family in enumerate(families):
        head = (magic, 0x9E5D5157, 0x2000, 0x10000000 + 256 * number, 256, number)
        start = struct.pack("<IIIIIIII", *head, len(families), family)
        blocks.append((start + bytes([number % 256]) * 476)[:508] + struct.pack("<I", 0x0AB16F30))
    return b"".join(blocks)


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A folder that looks like the drive of a Pico whose button is pressed."""
    drive = tmp_path / "RPI-RP2"
    drive.mkdir()
    info = "UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n"
    (drive / "INFO_UF2.TXT").write_text(info)
    return drive


def test_a_uf2_file_is_copied_whole(drive: Path, tmp_path: Path) -> None:
    image = tmp_path / "pico.uf2"
    image.write_bytes(uf2(*[RP2040] * 600))
    copied: list[int] = []
    copy_uf2(image, drive, copied.append)
    assert (drive / "pico.uf2").read_bytes() == image.read_bytes()
    assert (sum(copied), len(copied)) == (600 * 512, 5)


def test_what_does_not_fit_the_board_is_not_copied(drive: Path, tmp_path: Path) -> None:
    image = tmp_path / "pico2.uf2"
    image.write_bytes(uf2(ANY, RP2350, RP2350))
    with pytest.raises(FlashingError, match=r"is for RP2350, and .* is a board with RP2040"):
        copy_uf2(image, drive, lambda _: None)
    assert [each.name for each in drive.iterdir()] == ["INFO_UF2.TXT"]
    with pytest.raises(FlashingError, match="is no UF2 drive"):
        copy_uf2(image, tmp_path, lambda _: None)
    for content, reported in (
        (b"", "0 bytes"),
        (b"x" * 511, "511 bytes"),
        (uf2(RP2040) + bytes(512), "no block at byte 512"),
        (uf2(RP2040, magic=1), "no block at byte 0"),
        (uf2(RP2040, RP2350), "RP2040, RP2350"),
        (uf2(ANY), "no chip"),
    ):
        with pytest.raises(FlashingError, match=reported):
            uf2_chip(content)


def test_a_drive_must_say_what_it_is_and_keep_what_it_gets(
    drive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "pico.uf2"
    image.write_bytes(uf2(*[RP2040] * 2))
    (drive / "pico.uf2").mkdir()
    with pytest.raises(FlashingError, match="Is a directory"):
        copy_uf2(image, drive, lambda _: None)
    (drive / "pico.uf2").rmdir()

    def disturb(_count: int) -> None:
        (drive / "pico.uf2").write_bytes(b"x" * 2000)

    with pytest.raises(FlashingError, match="what is on the drive differs"):
        copy_uf2(image, drive, disturb)
    monkeypatch.setattr("gateway.flashing.uf2.mounted_drives", lambda: [drive, tmp_path])
    with pytest.raises(FlashingError, match="several UF2 drives; --drive names one"):
        find_drive(0)
    monkeypatch.setattr("gateway.flashing.uf2.mounted_drives", lambda: [drive])
    assert find_drive(0) == drive
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0\n")
    with pytest.raises(FlashingError, match="names no Board-ID"):
        copy_uf2(image, drive, lambda _: None)


def test_esptool_that_fails_or_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "esp32.bin"
    image.write_bytes(esp_image(0))
    with pytest.raises(FlashingError, match="esptool could not write"):
        write_esp32(image, str(tmp_path / "ttyNONE"))
    monkeypatch.setattr("gateway.flashing.esp32.find_spec", lambda _: None)
    with pytest.raises(FlashingError, match="esptool is not installed"):
        write_esp32(image, "/dev/ttyNONE")


def test_a_drive_that_is_not_mounted_is_explained() -> None:
    with pytest.raises(FlashingError, match="hold BOOTSEL"):
        find_drive(0)


def esp_image(chip: int, size: int = 20_000) -> bytes:
    head = b"\xe9\x01\x02\x20" + struct.pack("<I", 0x40080000) + bytes(4)
    return head + struct.pack("<H", chip) + bytes(10) + bytes(range(256)) * (size // 256)


@pytest.mark.uncovered
def test_esptool_writes_an_image_and_compares_it(tmp_path: Path) -> None:
    image, flash, link = (tmp_path / name for name in ("esp32.bin", "flash.img", "ttyESP"))
    image.write_bytes(esp_image(0))
    with subprocess.Popen(
        [sys.executable, str(ROM), str(link), str(flash)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as rom:
        assert rom.stdout is not None
        assert rom.stdout.readline() == b"ready\n"
        write_esp32(image, str(link.resolve()), stub=False)
        rom.communicate()
    content = image.read_bytes()
    assert flash.read_bytes()[0x1000 : 0x1000 + len(content)] == content


def test_an_image_says_its_chip_and_where_it_begins(tmp_path: Path) -> None:
    assert [esp_chip(esp_image(chip)) for chip in (0, 5, 9)] == [
        ("esp32", 0x1000),
        ("esp32c3", 0),
        ("esp32s3", 0),
    ]
    for content, reported in ((esp_image(99), "number 99"), (b"\x7fELF", "0xe9"), (b"", "0xe9")):
        with pytest.raises(FlashingError, match=reported):
            esp_chip(content)
