import asyncio

import pytest

from tests.support.disk.damaged_database import Known, examine, fill
from tests.support.disk.salvaged import ROWS


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """A database whose log was folded in, as after a stop."""
    folder = tmp_path_factory.mktemp("known")
    asyncio.run(fill(folder, ROWS))
    return examine(folder, folder / "scratch.db")


@pytest.fixture(scope="session")
def left_open(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """A database as a kill leaves it, with much of it in the log."""
    folder = tmp_path_factory.mktemp("open")
    return examine(asyncio.run(fill(folder, ROWS)), folder / "scratch.db")
