"""What cannot be read is said, counted and left out."""

import pytest

from gateway.counters import Counters
from gateway.storage.engine.reading import Reading
from tests.support.disk.sqlite_disk import SqliteDisk


@pytest.mark.parametrize(
    ("statement", "found", "fault"),
    [
        ("VALUES (1, 'ü'), (2, 'b')", [1, 2], None),
        ("VALUES (1, 'a'), (2, CAST(x'ff' AS TEXT)), (3, 'c')", [1, 3], "thing (2, "),
        ("VALUES (1, 'a'), (-1, 'b'), (3, 'c')", [1, 3], "negative"),
        # SQLite itself gives up in the middle
        (
            "SELECT abs(column1), '' FROM (VALUES (1), (2), (-9223372036854775808))",
            [1],
            "thing, and all behind it: integer overflow",
        ),
    ],
)
async def test_rows(
    statement: str, found: list[int], fault: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Counters()
    disk = SqliteDisk()

    def read(values: tuple[int, str]) -> int:
        if values[0] < 0:
            raise ValueError("negative")
        return values[0]

    assert await Reading(disk, counters).rows(statement, "thing", read) == found  # type: ignore[arg-type]  # by shape
    assert counters.count("tidegate/storage/unreadable") == (fault is not None)
    assert fault is None or fault in caplog.text
    assert disk.connection.text_factory is str
