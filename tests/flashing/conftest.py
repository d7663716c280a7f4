"""A board to flash."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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
