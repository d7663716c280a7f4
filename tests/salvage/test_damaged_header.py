"""A header that says how rows are to be read is not believed."""

from contextlib import closing
from pathlib import Path

import pytest

from gateway.salvage.salvage import salvage
from tests.support.disk.damaged_database import Row, all_rows, fresh

LENGTHS = range(6_100, 6_200, 5)
"""Of texts on several pages. SQLite takes as many bytes of each as the header says that it uses."""


def made(path: Path, *, filled: bool) -> set[Row]:
    """Make a database with a table of long texts, and return its rows."""
    path.unlink(missing_ok=True)
    with closing(fresh(path)) as connection:
        connection.execute("CREATE TABLE long (id INTEGER PRIMARY KEY, text TEXT) STRICT")
        rows = [(length, "".join(map(chr, range(32, 126))) * 100) for length in LENGTHS]
        rows = [(length, text[:length]) for length, text in rows if filled]
        connection.executemany("INSERT INTO long VALUES (?, ?)", rows)
        return set(rows)


@pytest.mark.uncovered
@pytest.mark.parametrize("place", [16, 17, 20, 56, 59])
def test_the_size_and_use_of_pages_and_the_encoding(tmp_path: Path, place: int) -> None:
    path, new = tmp_path / "damaged.db", tmp_path / "new.db"
    rows = made(path, filled=True)
    sound = path.read_bytes()
    for value in {0, 1, 2, 3, 8, 0x80, 0xFF} - {sound[place]}:
        path.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
        made(new, filled=False)
        with closing(fresh(new)) as target:
            result = salvage(path, target)
            assert all_rows(target)["long"] == rows, value
        assert not result.lost
