from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.errors import StartError
from gateway.storage.database import open_database
from gateway.storage.meta import count_start


async def test_each_start_counts_one_more(tmp_path: Path) -> None:
    counts = []
    for _ in range(3):
        database = await open_database(tmp_path, Clock())
        counts.append(await count_start(database))
        await database.close()
    assert counts == [1, 2, 3]


async def test_a_disk_that_does_not_take_the_count_ends_the_start(tmp_path: Path) -> None:
    database = await open_database(tmp_path, Clock())
    await database.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StartError, match=r"tidegate\.db: attempt to write a readonly database"):
        await count_start(database)
    await database.close()
