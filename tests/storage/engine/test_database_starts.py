from pathlib import Path

from gateway.clock import Clock
from gateway.storage.engine.database import COUNT_START, open_database, start_number


async def test_each_start_counts_one_more(tmp_path: Path) -> None:
    counts = []
    for _ in range(3):
        database = await open_database(tmp_path, Clock(), COUNT_START)
        counts.append(await start_number(database))
        await database.close()
    assert counts == [1, 2, 3]
