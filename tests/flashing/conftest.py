"""A board to flash."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.flashing.package import Package, build_package
from tests.support.nodes.micropython import find
from tests.support.nodes.stand_in_board import StandInBoard


@pytest.fixture
def board(tmp_path: Path) -> Iterator[StandInBoard]:
    """A fresh board on which nothing but MicroPython runs."""
    found = find()
    assert found is not None
    board = StandInBoard(tmp_path, found)
    yield board
    board.close()


@pytest.fixture
def other_main(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Another main.py than the node's is in the package, if the list has one."""
    source: list[str] = []

    def build(bytecode: int, *, compiled: bool = True) -> Package:
        built = build_package(bytecode, compiled=compiled)
        if not source:
            return built
        files = {name: data for name, data in built.files.items() if name != "main.mpy"}
        changed = {**files, "main.py": source[-1].encode(), "version": b"2"}
        return Package("2", changed, built.launcher)

    monkeypatch.setattr("gateway.flashing.flash.build_package", build)
    return source
