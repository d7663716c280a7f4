"""On what a folder lies."""

import shutil
from pathlib import Path

import pytest

from crashtest import device
from gateway.errors import TidegateError

MOUNTS = """\
/dev/root / ext4 rw 0 0
/dev/sda1 /media/my\\040card vfat rw 0 0
tmpfs /media tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/media/my card/x", "vfat on /dev/sda1"),
        ("/media/other", "tmpfs on tmpfs"),
        ("/mediax", "ext4 on /dev/root"),
    ],
)
def test_the_longest_mount_point_counts(
    folder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(device, "MOUNTS", tmp_path / "mounts")
    assert device.device_of(Path(folder)) == name


def test_without_a_list_of_mounts_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "MOUNTS", tmp_path / "none")
    assert device.device_of(tmp_path) == "an unknown file system"


def test_a_full_device_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=5 * 1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(TidegateError, match="5 MiB free, a crash test needs 256 MiB"):
        device.check_free_space(tmp_path)
