import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.app.descriptors import (
    RESERVED,
    TABLE,
    UNLIMITED,
    connection_limit,
    raise_limit,
    reserve_descriptors,
)


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
    ("soft", "connections"),
    [(256, 256 - RESERVED), (40, 1), (resource.RLIM_INFINITY, UNLIMITED)],
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
