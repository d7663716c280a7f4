from pathlib import Path

from gateway.telemetry.block_device import UNKNOWN, mount_of

INFO = """\
27 1 254:0 / / rw,relatime - ext4 /dev/mmcblk0p2 rw,discard
31 27 0:25 / /run rw,nosuid - tmpfs tmpfs rw,size=10k
40 27 8:1 / /mnt/a\\040stick ro,noatime shared:1 master:2 - vfat /dev/sda1 ro
41 27 0:30 / /var/lib rw - btrfs /dev/sdb rw
42 27 0:31 / /var/lib rw - overlay over\\134lay rw
"""


def info(folder: Path) -> Path:
    file = folder / "mountinfo"
    file.write_text(INFO)
    return file


def test_the_longest_target_above_a_folder_holds_it(tmp_path: Path) -> None:
    file = info(tmp_path)
    root = mount_of(Path("/etc"), file)
    assert (root.kind, root.source) == ("ext4", "/dev/mmcblk0p2")
    assert root.options >= {"rw", "relatime", "discard"}
    assert mount_of(Path("/run/tidegate"), file).kind == "tmpfs"
    assert mount_of(Path("/running"), file).kind == "ext4"


def test_escapes_and_optional_fields_are_read(tmp_path: Path) -> None:
    stick = mount_of(Path("/mnt/a stick/data"), info(tmp_path))
    assert stick.target == Path("/mnt/a stick")
    assert "ro" in stick.options


def test_the_last_mount_hides_those_before(tmp_path: Path) -> None:
    mount = mount_of(Path("/var/lib/tidegate"), info(tmp_path))
    assert (mount.kind, mount.source) == ("overlay", "over\\lay")


def test_where_linux_does_not_say_nothing_is_known(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is UNKNOWN


def test_a_real_folder_has_a_file_system(tmp_path: Path) -> None:
    assert mount_of(tmp_path) is not UNKNOWN
