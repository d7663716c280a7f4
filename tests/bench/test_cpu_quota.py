"""Groups of either version of the kernel's control groups, below a folder that stands for them."""

from pathlib import Path

import pytest

from bench.harness.cpu_quota import QuotaError, group


def test_version_1(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.shares").touch()
    written = {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "50000",
        "cpu.shares": "102400",
        "cgroup.procs": "17",
    }
    with group("a", 0.5, tmp_path) as made:
        made.add(17)
        assert _taken(tmp_path / "cpu/a") == written
    assert not (tmp_path / "cpu/a").exists()


def test_version_2(tmp_path: Path) -> None:
    with group("a", 1.5, tmp_path) as made:
        made.add(17)
        assert _taken(tmp_path / "a") == {
            "cpu.max": "150000 100000",
            "cpu.weight": "10000",
            "cgroup.procs": "17",
        }
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(QuotaError, match="needs root and the controller"):  # noqa: SIM117
        with group("a", 1, tmp_path / "none"):
            pass


def _taken(folder: Path) -> dict[str, str]:
    """Return the files of a folder, which the kernel has in any group, and take them away."""
    found = {each.name: each.read_text() for each in folder.iterdir()}
    for each in folder.iterdir():
        each.unlink()
    return found
