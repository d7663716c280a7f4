import os
from pathlib import Path

import pytest

from gateway.storage.engine import free_space as module
from gateway.storage.engine.damage import free_bytes, is_read_only
from gateway.storage.engine.files import known_log_bytes
from gateway.storage.engine.free_space import ANY_BYTES, RESERVE_BYTES, Reserve


def test_it_is_held_and_given_back(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    assert reserve.held_bytes == 0
    assert not reserve.release()
    assert reserve.hold()
    assert reserve.hold()
    size = (tmp_path / "reserve").stat()
    assert size.st_size == RESERVE_BYTES
    assert size.st_blocks * 512 >= RESERVE_BYTES  # not a hole
    assert reserve.release()
    assert reserve.held_bytes == 0


def test_it_grows_for_a_long_log_only_while_it_is_held(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    more = 2 * RESERVE_BYTES
    held = [reserve.grow(more) and reserve.held_bytes]
    reserve.hold()
    held += [reserve.grow(wanted) and reserve.held_bytes for wanted in (1, more)]
    for end in (reserve.shrink, Reserve(tmp_path).hold):
        end()
        held += [reserve.held_bytes, reserve.grow(more) and reserve.held_bytes]
    assert held == [0, RESERVE_BYTES, more, RESERVE_BYTES, more, RESERVE_BYTES, more]


@pytest.mark.parametrize(("free", "held"), [(2.0, True), (1.99, False), (0.5, False)])
def test_as_much_again_stays_free(
    tmp_path: Path, free: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda _: int(free * RESERVE_BYTES))
    reserve = Reserve(tmp_path)
    assert reserve.hold() is held
    assert bool(reserve.held_bytes) is held


def test_a_disk_that_has_less_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    reserve = Reserve(tmp_path)
    assert not reserve.hold()
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_says_nothing_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The looks after a commit are not allowed to end the writer."""

    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", broken)
        patched.setattr(os, "stat", broken)
        answers = (
            Reserve(tmp_path).measure(),
            Reserve(tmp_path).hold(),
            free_bytes(tmp_path),
            is_read_only(tmp_path),
            known_log_bytes(tmp_path / "tidegate.db-wal"),
        )
    assert answers == ((ANY_BYTES, RESERVE_BYTES), False, 0, False, 0)
