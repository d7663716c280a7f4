import os
from pathlib import Path

import pytest

from gateway.telemetry.block_device import block_device

STAT = "739415 65922 31278170 712141 879754 402963 50039464 310581 0 153756 1075701 0 0 0 0"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """Give a folder of /sys with an SD card and a partition, on which `tmp_path` lies."""
    number = tmp_path.stat().st_dev
    partition = tmp_path / "devices" / "mmcblk0" / "mmcblk0p2"
    partition.mkdir(parents=True)
    (partition / "partition").write_text("2\n")
    (partition / "size").write_text("1000\n")
    (partition.parent / "size").write_text("62500000\n")
    (partition.parent / "stat").write_text(STAT + " 285259 23432\n")
    (tmp_path / f"{os.major(number)}:{os.minor(number)}").symlink_to(partition)
    return tmp_path


def test_the_whole_device_is_looked_at_not_the_partition(card: Path) -> None:
    device = block_device(card, card)
    assert device is not None
    assert device.name == "mmcblk0"
    assert device.size == 32_000_000_000
    assert device.written() == 50039464 * 512
    assert device.flushes() == 285259
    assert device.worn() is None


def test_an_old_kernel_counts_no_flushes(card: Path) -> None:
    (card / "devices" / "mmcblk0" / "stat").write_text(STAT)
    device = block_device(card, card)
    assert device is not None
    assert device.flushes() is None


@pytest.mark.parametrize(
    ("life_time", "percent"),
    [
        ("0x01 0x01", 10),
        ("0x01 0x03", 30),
        ("0x0b 0x01", 110),
        ("0x00 0x00", None),
        ("", None),
        ("?", None),
    ],
)
def test_an_emmc_says_how_worn_it_is(card: Path, life_time: str, percent: int | None) -> None:
    folder = card / "devices" / "mmcblk0" / "device"
    folder.mkdir()
    (folder / "life_time").write_text(life_time + "\n")
    device = block_device(card, card)
    assert device is not None
    assert device.worn() == percent


def test_there_may_be_no_device(tmp_path: Path) -> None:
    assert block_device(tmp_path, tmp_path) is None


def test_the_real_device_of_a_folder_can_be_asked(tmp_path: Path) -> None:
    device = block_device(tmp_path)
    assert device is None or (device.size > 0 and device.written() >= 0)
