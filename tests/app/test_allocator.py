import asyncio
import ctypes
import subprocess
import sys
from contextlib import suppress

import pytest

from gateway.app import allocator
from gateway.app.allocator import give_back_freed_memory, give_back_regularly, keep_buffers


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
    assert keep_buffers()
    assert library.options == {-1: allocator.KEPT, -3: allocator.MAPPED_FROM}


def test_nothing_happens_where_the_library_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: NoGlibc())
    assert not give_back_freed_memory()
    assert not keep_buffers()


def test_nothing_happens_on_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not give_back_freed_memory()
    assert not keep_buffers()


TURNS = """
import resource
from gateway.app.allocator import keep_buffers

def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def turn() -> None:
    reads = [bytes(256 * 1024) for _ in range(4)]
    output = bytearray(reads[0])
    output += reads[1]

keep_buffers()
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

    monkeypatch.setattr(allocator, "INTERVAL", 0.0)
    monkeypatch.setattr(allocator, "give_back_freed_memory", count)
    task = asyncio.get_running_loop().create_task(give_back_regularly())
    await asyncio.wait_for(third.wait(), 60)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
