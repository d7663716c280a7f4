import asyncio
import ctypes
import sys
from contextlib import suppress

import pytest

from gateway.app import allocator
from gateway.app.allocator import give_back_freed_memory, give_back_regularly


class NoGlibc:
    """A C library without anything of glibc's own."""


class Glibc:
    """A C library in which pages were free, and then none."""

    def __init__(self) -> None:
        self.answers = [1, 0]

    def malloc_trim(self, pad: int) -> int:
        assert pad == 0
        return self.answers.pop(0)


def test_it_tells_whether_there_was_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Glibc()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert give_back_freed_memory()
    assert not give_back_freed_memory()


def test_nothing_happens_where_the_library_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: NoGlibc())
    assert not give_back_freed_memory()


def test_nothing_happens_on_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not give_back_freed_memory()


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
