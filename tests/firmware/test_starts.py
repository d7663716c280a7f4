"""Starts that do not last: counted in a row across them, until one is in safe mode."""

from pathlib import Path

import pytest
from node.starts import _FAILED_MAX, _SAFE_MS, _STEADY_MS, Starts

from tests.firmware.test_loop import Clock


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "starts")


def test_the_start_after_several_failed_ones_is_safe(path: str) -> None:
    for failed in range(_FAILED_MAX):
        starts = Starts(path, Clock())
        assert (starts.failed, starts.safe) == (failed, False)
    clock = Clock()
    safe = Starts(path, clock)
    assert (safe.failed, safe.safe, safe.over) == (_FAILED_MAX, True, False)
    clock.now = _SAFE_MS
    assert safe.over
    assert Starts(path, Clock()).failed == 0


def test_a_start_that_lasts_ends_the_row(path: str) -> None:
    Starts(path, Clock())
    clock = Clock()
    starts = Starts(path, clock)
    clock.now = _STEADY_MS - 1
    starts.step()
    assert Path(path).read_text() == "2"
    clock.now = _STEADY_MS
    starts.step()
    starts.step()
    assert (Path(path).read_text(), starts.over) == ("0", False)
    assert Starts(path, Clock()).failed == 0


def test_a_start_that_was_ended_on_purpose_has_not_failed(path: str) -> None:
    Starts(path, Clock()).succeed()
    assert Starts(path, Clock()).failed == 0


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe", b"2x"])
def test_a_file_of_something_else_counts_for_nothing(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    assert Starts(path, Clock()).failed == 0


def test_a_flash_that_cannot_be_written_keeps_no_node_from_starting(tmp_path: Path) -> None:
    starts = Starts(str(tmp_path / "none" / "starts"), Clock())
    starts.step()
    starts.succeed()
    assert (starts.failed, starts.safe) == (0, False)
