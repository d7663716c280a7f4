import os
from pathlib import Path

from gateway.app.memory_limit import LEAST, MOST, default_limit, for_clients, occupied

MIB = 1024 * 1024


def limit(folder: Path, total: str, *service: str) -> int:
    """Return the limit where the machine has `total` and control groups, from the outer, allow."""
    (folder / "meminfo").write_text(f"MemFree: 5 kB\nMemTotal: {total}\n" if total else "")
    (folder / "cgroup").write_text("1:name=systemd:/old\n0::/a/b\n")
    for place, allowed in zip((".", "a", "a/b"), service, strict=False):
        (folder / "groups" / place).mkdir(parents=True, exist_ok=True)
        (folder / "groups" / place / "memory.max").write_text(f"{allowed}\n")
    return default_limit(folder / "meminfo", folder / "cgroup", folder / "groups")


def test_a_quarter_of_what_there_is_within_bounds(tmp_path: Path) -> None:
    assert limit(tmp_path, "1048576 kB") == 256 * MIB
    assert limit(tmp_path, "131072 kB") == LEAST
    assert limit(tmp_path, "33554432 kB") == MOST
    assert limit(tmp_path, "") == LEAST
    assert default_limit(tmp_path / "none", tmp_path / "none", tmp_path) == LEAST


def test_what_the_service_is_allowed_counts(tmp_path: Path) -> None:
    assert limit(tmp_path, "1048576 kB", "max", str(512 * MIB), "max") == 128 * MIB
    assert limit(tmp_path, "1048576 kB", "max", "max", str(600 * MIB)) == 150 * MIB


def test_what_the_process_has_beyond_its_share_is_not_for_clients() -> None:
    assert for_clients(256 * MIB, 20 * MIB) == 256 * MIB
    assert for_clients(256 * MIB, 42 * MIB) == (256 - 18) * MIB
    assert for_clients(16 * MIB, 60 * MIB) == 8 * MIB


def test_what_a_process_occupies(tmp_path: Path) -> None:
    assert 10 * MIB < occupied() < 4096 * MIB
    assert occupied(os.getpid()) > 10 * MIB
    assert occupied("x", tmp_path) == 0
