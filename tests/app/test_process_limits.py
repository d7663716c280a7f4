import asyncio
import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.app import process_limits
from gateway.app.process_limits import (
    LEAST,
    MOST,
    RESERVED,
    TABLE,
    UNLIMITED,
    connection_limit,
    default_limit,
    for_clients,
    give_back_freed_memory,
    give_back_regularly,
    occupied,
    raise_limit,
    reserve_descriptors,
    set_up_heap,
)

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


class NoGlibc:
    """A C library without anything of glibc's own."""


class Glibc:
    """A C library in which pages were free, and then none."""

    def __init__(self) -> None:
        self.answers = [1, 0]
        self.options: dict[int, int] = {}

    def mallopt(self, option: int, value: int) -> int:
        self.options[option] = value
        return 1

    def malloc_trim(self, pad: int) -> int:
        assert pad == 0
        return self.answers.pop(0)


def test_it_tells_whether_there_was_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Glibc()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert give_back_freed_memory()
    assert not give_back_freed_memory()


def test_the_buffers_of_a_turn_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Glibc()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert set_up_heap()
    kept, mapped_from = process_limits.TRIM_THRESHOLD, process_limits.MAPPED_FROM
    assert library.options == {-8: 1, -1: kept, -3: mapped_from}


def test_nothing_happens_where_the_library_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: NoGlibc())
    assert not give_back_freed_memory()
    assert not set_up_heap()


def test_nothing_happens_on_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not give_back_freed_memory()
    assert not set_up_heap()


TURNS = """
import resource
from gateway.app.process_limits import set_up_heap

def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def turn() -> None:
    reads = [bytes(256 * 1024) for _ in range(4)]
    output = bytearray(reads[0])
    output += reads[1]

set_up_heap()
turn()
before = faults()
for _ in range(100):
    turn()
print(faults() - before)
"""
"""Run in a process of its own: what mallopt is told cannot be taken back."""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc's mallopt")
def test_a_turn_maps_no_memory_anew() -> None:
    ran = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, check=True)
    assert int(ran.stdout) < 1_000  # 30,000 and more if each gave it back


def test_what_is_in_use_is_untouched() -> None:
    kept = [bytes([number]) * 1_000 for number in range(256)]
    give_back_freed_memory()
    assert kept == [bytes([number]) * 1_000 for number in range(256)]


async def test_it_goes_on_until_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    third = asyncio.Event()
    times: list[int] = []

    def count() -> bool:
        times.append(len(times))
        if len(times) == 3:
            third.set()
        return True

    monkeypatch.setattr(process_limits, "INTERVAL", 0.0)
    monkeypatch.setattr(process_limits, "give_back_freed_memory", count)
    task = asyncio.get_running_loop().create_task(give_back_regularly())
    await asyncio.wait_for(third.wait(), 60)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised_to_the_hard_one(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    for _ in range(2):
        assert raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


@pytest.mark.parametrize(
    ("soft", "connections"), [(256, 256 - RESERVED), (40, 1), (resource.RLIM_INFINITY, UNLIMITED)]
)
def test_connections_leave_descriptors_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, soft: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connection_limit() == connections


def table_size() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("FDSize:"))


def open_descriptors() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def test_the_table_of_descriptors_has_room_from_the_start(limits: tuple[int, int]) -> None:
    _, hard = limits
    raise_limit()
    before = open_descriptors()
    reserve_descriptors()
    assert table_size() >= min(TABLE, hard)
    assert open_descriptors() == before


def test_a_table_whose_last_place_is_in_use_is_large_enough(limits: tuple[int, int]) -> None:
    _, hard = limits
    last = os.dup2(0, max(map(int, open_descriptors())) + 20)
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, hard))
    before = open_descriptors()
    reserve_descriptors()
    assert open_descriptors() == before
    os.close(last)
