"""A sound database with our tables is used with every row, whatever program wrote it, and when."""

import logging
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.app.checks.findings import Health, Installation, findings_of
from gateway.clock import Clock
from gateway.salvage.bring_in import carry_over
from gateway.salvage.form import PAGE_BYTES
from gateway.salvage.salvage import salvage
from gateway.storage.engine import database_file
from gateway.storage.engine.database import FILE_NAME, Database, open_database
from gateway.storage.engine.migrations import migrate as migrate_module
from gateway.storage.engine.migrations.migrate import migrate, migrations
from gateway.storage.engine.unread import NOTE
from gateway.storage.outbox.row import Outcome
from tests.support.disk.damaged_database import Row, all_rows, fill, fresh
from tests.support.disk.storage import open_store, outbox_row, until
from tests.support.table import table

ROWS = 60

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)

NUMBER = "INSERT INTO meta (name, value) VALUES (?, ?)"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of our own, closed."""
    import asyncio

    folder = tmp_path_factory.mktemp("written")
    asyncio.run(fill(folder, ROWS))
    return folder / FILE_NAME


def rows_of(path: Path) -> dict[str, set[Row]]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        found = all_rows(connection)
    found.pop("outbox_totals", None)  # it is made up of the outbox
    return found


def copied(old: Path, new: Path, *pragmas: str, change: Callable[[str], str] = str) -> None:
    """Make `new` of the statements that a dump of `old` has, as `sqlite3 old .dump` prints it."""
    with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(new)) as target:
        for pragma in pragmas:
            target.execute(f"PRAGMA {pragma}")
        target.executescript("\n".join(map(change, source.iterdump())))


def other_writing(statement: str) -> str:
    """Return how somebody else would write a statement of the schema."""
    if not statement.startswith(("CREATE TABLE", "CREATE INDEX")):
        return statement
    statement = re.sub(r"--[^\n]*", "", statement)
    statement = re.sub(r"\s+", " ", statement).replace("TEXT", "text").replace("INTEGER", "Integer")
    return re.sub(r"^CREATE (TABLE|INDEX) (\w+)", r"create \1 /* of ours */ [\2]", statement)


def _of_november_23(statement: str) -> str:
    """Return the statement of the schema before renames and additions of that day."""
    old = statement.replace("    outcome TEXT NOT NULL,\n", "    fate TEXT NOT NULL,\n")
    old = old.replace("    reason TEXT NOT NULL,\n", "    cause TEXT NOT NULL,\n")
    old = old.replace("    deliver TEXT,\n", "").replace(",\n    uplinks TEXT\n", "\n")
    return old.replace("    uplink TEXT NOT NULL,\n", "").replace("first, uplink)", "first)")


def of_november_23(path: Path) -> None:
    """Make a database as the first version of that day, with rows in what was renamed."""
    (_, first), *_ = migrations()
    first = _of_november_23(first)
    for gone in ("attempt", "packet_counters", "outbox_steps"):
        first = re.sub(rf"CREATE TABLE {gone} \(.*?\) STRICT[^;]*;", "", first, flags=re.DOTALL)
    first = re.sub(r"CREATE INDEX outbox_uplinks[^;]*;", "", first)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("page_size = 4096", "auto_vacuum = INCREMENTAL", "journal_mode = WAL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.executescript(f"{first}\nPRAGMA user_version = 1;")
        row = "(?, 100, '00a1b2c3d4', 'main', ?, 'live', 0, 'a/b', x'01', 1, 0, 1"
        for number in range(1, ROWS + 1):
            values = (number, number)
            connection.execute(f"INSERT INTO outbox VALUES {row}{', NULL' * 8})", values)
        ledger = "INSERT INTO ledger VALUES ('e', 'main', 1, 9, 'filtered', '{\"a\": 9}', 1)"
        connection.execute(ledger)
        subscription = "INSERT INTO subscription VALUES (1, 'a/#', 1, 0, 0, NULL, NULL, 0, 0)"
        connection.execute("INSERT INTO session VALUES (1, 'of-the-time', 3600, NULL, NULL)")
        connection.execute(subscription)


def set_aside(folder: Path) -> Path:
    """Return the only database of another schema that was kept."""
    [earlier] = folder.glob("*.before-*Z")
    return earlier


async def used(folder: Path) -> Database:
    """Open the database, and close it again after a write."""
    database = await open_database(folder, Clock())
    await database.writer.write(
        [("INSERT INTO meta (name, value) VALUES (?, 1)", [("of the test",)])]
    )
    await database.close()
    return database


FORMS: list[tuple[str, tuple[str, ...], Callable[[str], str], tuple[str, ...]]] = [
    *((f"pages of {size}", (f"page_size = {size}",), str, ()) for size in SIZES),
    ("auto_vacuum FULL", ("page_size = 512", "auto_vacuum = 1"), str, ()),
    ("auto_vacuum INCREMENTAL", ("page_size = 4096", "auto_vacuum = 2"), str, ()),
    ("UTF-16le", ("encoding = 'UTF-16le'",), str, ()),
    ("UTF-16be", ("encoding = 'UTF-16be'", "page_size = 2048"), str, ()),
    ("a write-ahead log", ("page_size = 8192", "journal_mode = WAL"), str, ()),
    ("other writing", (), other_writing, ()),
    ("ANALYZE", (), str, ("ANALYZE",)),
    ("VACUUM", (), str, ("PRAGMA user_version = 1", "VACUUM")),
    (
        "what a person adds",
        (),
        str,
        (
            "CREATE INDEX mine ON outbox (topic)",
            "CREATE VIEW all_of_it AS SELECT * FROM outbox",
            "CREATE TABLE notes (text)",
            "INSERT INTO notes VALUES ('mine')",
        ),
    ),
    (
        "what would refuse rows",
        (),
        str,
        (
            "CREATE UNIQUE INDEX mine ON meta (value, name)",
            "CREATE TRIGGER no BEFORE INSERT ON meta BEGIN SELECT RAISE(FAIL, 'no'); END",
        ),
    ),
]


@pytest.mark.uncovered
@table("name, pragmas, change, statements", FORMS)
async def test_a_database_that_another_program_wrote(
    tmp_path: Path,
    written: Path,
    name: str,
    pragmas: tuple[str, ...],
    change: Callable[[str], str],
    statements: tuple[str, ...],
) -> None:
    folder = tmp_path / name.replace(" ", "_")
    folder.mkdir()
    copied(written, folder / FILE_NAME, *pragmas, change=change)
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    before = {each: rows for each, rows in rows_of(written).items() if rows}
    database = await used(folder)
    after = rows_of(folder / FILE_NAME)
    after["meta"] = {row for row in after["meta"] if row[0] != "of the test"}
    assert {each: after[each] for each in before} == before
    assert (database.set_aside, database.salvage, database.page_bytes) == (None, None, PAGE_BYTES)
    assert not list(folder.glob("*.corrupt*"))
    assert bool(list(folder.glob("*.before-*Z"))) == (name == "what would refuse rows")


@pytest.mark.parametrize("size", [512, 4096, 65536])
async def test_a_large_database_is_used_with_the_pages_that_it_has(
    tmp_path: Path, written: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletions leave free pages, which the file keeps without `auto_vacuum`."""
    monkeypatch.setattr(database_file, "WRITTEN_ANEW_BYTES", 0)
    monkeypatch.setattr("gateway.storage.engine.writer.SPACE_CHECK_ROWS", 1)
    monkeypatch.setattr("gateway.storage.engine.free_space.RESERVED_PAGES", 0)
    copied(written, tmp_path / FILE_NAME, f"page_size = {size}")
    store = await open_store(tmp_path)
    assert store.database.page_bytes == size
    waiting = store.outbox.rows
    store.outbox.add(outbox_row(1_001, payload=bytes(100_000)))
    await store.settle()
    row = (await store.outbox.fetch(0, 1_000))[-1]
    store.outbox.remove([row], Outcome.DELIVERED)
    store.writer.hand_over()
    await until(lambda: store.outbox.rows == waiting)
    await store.close()
    [found] = [
        each for each in findings_of(Installation(tmp_path, None)) if "auto_vacuum" in each.text
    ]
    assert (found.health, f"{size} bytes" in found.text) == (Health.NOTE, True)


async def test_a_vacuum_without_room_leaves_the_pages_as_they_are(
    tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copied(written, tmp_path / FILE_NAME, "page_size = 4096")

    class Full(sqlite3.Connection):
        def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
            if statement == "VACUUM":
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(statement, parameters)

    connect = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(
            "gateway.storage.engine.database_file.sqlite3.connect",
            lambda *values, **named: connect(*values, **{"factory": Full, **named}),
        )
        database = await open_database(tmp_path, Clock())
        await database.close()
    assert database.page_bytes == 4096
    assert "VACUUM failed: database or disk is full" in caplog.text


@pytest.mark.parametrize("kept", [True, False])
async def test_a_database_of_an_earlier_first_version_keeps_its_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: bool
) -> None:
    of_november_23(tmp_path / FILE_NAME)
    if not kept:
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute("PRAGMA user_version = 0")  # as a dump leaves it
    database = await used(tmp_path)
    found = rows_of(tmp_path / FILE_NAME)
    assert len(found["outbox"]) == ROWS
    assert found["ledger"] == {("e", "main", 1, "", 9, "filtered", '{"a": 9}', 1)}
    assert {row[:5] for row in found["session"]} == {(1, "of-the-time", 3600, None, None)}
    of_all = {row[:10] for row in found["subscription"]}
    assert of_all == {(1, "a/#", 1, 0, 0, None, None, 0, 0, None)}
    assert (database.set_aside, database.salvage) == (None, None)
    earlier = set_aside(tmp_path)
    assert f"saved as {earlier.name}" in caplog.text
    reported = [
        each.text for each in findings_of(Installation(tmp_path, None)) if earlier.name in each.text
    ]
    assert "rows were carried over" in reported[0]
    assert (await used_again(tmp_path)).set_aside is None


async def used_again(folder: Path) -> Database:
    database = await open_database(folder, Clock())
    await database.close()
    return database


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("DROP TABLE history", 0),
        ("ALTER TABLE outbox RENAME COLUMN payload TO body", ROWS),
        ("ALTER TABLE meta ADD COLUMN more TEXT", 0),
    ],
)
async def test_tables_that_somebody_changed(
    tmp_path: Path, written: Path, statement: str, lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What our tables cannot hold is lost, and told; the file is kept."""
    copied(written, tmp_path / FILE_NAME, "page_size = 1024")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute(statement)
    with caplog.at_level(logging.CRITICAL):
        database = await open_database(tmp_path, Clock())
    await database.close()
    assert (database.salvage.all_lost if database.salvage else 0) == lost
    assert (f"{lost} are not" in caplog.text) == bool(lost)
    found = rows_of(tmp_path / FILE_NAME)
    assert len(found["outbox"]) == ROWS - lost
    assert found["session"] == rows_of(written)["session"]


MADE_UP = [
    (2, "ALTER TABLE session ADD COLUMN owner TEXT; ALTER TABLE will ADD COLUMN listener TEXT;"),
    (
        3,
        """CREATE TABLE refused (id INTEGER PRIMARY KEY, why TEXT NOT NULL) STRICT;
        INSERT INTO refused SELECT id, topic FROM rejected; DROP TABLE rejected;
        ALTER TABLE refused RENAME TO rejected;
        CREATE INDEX rejected_why ON rejected (why) WHERE why <> '';""",
    ),
]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("damage", ["none", "no version", "a statement", "the header"])
async def test_a_database_of_any_version_comes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, damage: str
) -> None:
    first = [each for each in migrations() if each[0] == 1]
    monkeypatch.setattr(migrate_module, "migrations", lambda: [*first, *MADE_UP[: version - 1]])
    path = tmp_path / FILE_NAME
    with closing(fresh(path)) as connection:
        for number in range(ROWS):
            more = ", 'me'" if version > 1 else ""
            values = (number, f"client-{number}")
            connection.execute(f"INSERT INTO session VALUES (?, ?, 9, NULL, NULL{more})", values)
        if damage == "no version":
            connection.execute("PRAGMA user_version = 0")
        if damage == "a statement":
            connection.execute("PRAGMA writable_schema = ON")
            changed = "sql = replace(sql, 'expiry_interval', 'expiry#interval')"
            connection.execute(f"UPDATE sqlite_schema SET {changed} WHERE name = 'session'")
    if damage == "the header":
        path.write_bytes(b"?" * 100 + path.read_bytes()[100:])
    monkeypatch.setattr(migrate_module, "migrations", lambda: [*first, *MADE_UP])
    database = await open_database(tmp_path, Clock())
    await database.close()
    owner = "me" if version > 1 else None
    expected = {(number, f"client-{number}", 9, None, None, owner) for number in range(ROWS)}
    assert rows_of(path)["session"] == expected
    assert (database.salvage is None) == (damage in ("none", "no version"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.uncovered
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("vacuum", [0, 2])
@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_salvage_reads_pages_of_any_size(
    tmp_path: Path, written: Path, size: int, vacuum: int, encoding: str
) -> None:
    """A bad header keeps SQLite out: each row is found in its page."""
    path = tmp_path / "damaged.db"
    form = (f"page_size = {size}", f"auto_vacuum = {vacuum}", f"encoding = '{encoding}'")
    copied(written, path, *form)
    before = rows_of(path)
    content = bytearray(path.read_bytes())
    content[:16] = b"?" * 16
    path.write_bytes(content)
    with closing(fresh(tmp_path / "new.db")) as target:
        result = salvage(path, target)
        after = all_rows(target)
    assert {name: after[name] for name in before} == before
    assert not result.all_lost


@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_salvage_reads_a_log_of_pages_of_any_size(tmp_path: Path, written: Path, size: int) -> None:
    """A damaged frame in the middle, or a damaged header, costs what is in it alone."""
    path = tmp_path / "open.db"
    copied(written, path, f"page_size = {size}")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for number in range(1_000, 1_020):
            connection.execute(
                "INSERT INTO meta (name, value) VALUES (?, ?)", (f"late-{number}", number)
            )
        late = rows_of(path)["meta"]
        for name in ("open.db", "open.db-wal"):
            (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
    log = tmp_path / "copy-open.db-wal"
    log.write_bytes(b"?" * 12 + log.read_bytes()[12:])
    with closing(fresh(tmp_path / "new.db")) as target:
        salvage(tmp_path / "copy-open.db", target)
        assert all_rows(target)["meta"] == late


async def test_what_could_not_be_read_is_tried_again_and_added(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, written: Path
) -> None:
    """Nothing is read while the disk gives nothing; what is there by then stays."""
    path = tmp_path / FILE_NAME
    path.write_bytes(b"\xee" * 50_000)
    database = await open_database(tmp_path, Clock())
    aside = database.set_aside
    assert aside is not None
    assert database.unread == [aside]
    assert f"nothing of {aside} could be read" in caplog.text
    session = "INSERT INTO session (id, client_id, expiry_interval) VALUES (1, ?, 60)"
    topic = "INSERT INTO retained (topic, payload, qos, retain, time) VALUES (?, x'', 1, 1, 5)"
    batch = [(session, [("client-3",)]), (topic, [("state/6",)])]
    await database.writer.write(batch)
    await database.close()
    caplog.clear()
    texts = [each for each in findings_of(Installation(tmp_path, None)) if aside.name in each.text]
    assert [each.health for each in texts] == [Health.BAD]
    database = await open_database(tmp_path, Clock())  # still so
    await database.close()
    assert (database.set_aside, database.unread) == (None, [aside])
    assert f"nothing of {aside} could be read" in caplog.text
    shutil.copyfile(written, aside)  # the disk gives it again
    names = ["uplink_paused", "series/a", "starts", "history_keep", "board/x", "uplink_session"]
    with closing(sqlite3.connect(aside)) as connection, connection:
        statement = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, 77)"
        connection.executemany(statement, [(name,) for name in names])
        connection.execute("UPDATE rules SET epoch = 1000 WHERE epoch = 1")
    before = rows_of(written)
    store = await open_store(tmp_path)
    assert (store.database.unread, store.outbox.rows) == ([], ROWS)
    assert not aside.with_name(aside.name + NOTE).exists()
    await store.close()
    after = rows_of(path)
    assert {row[1] for row in after["session"]} == {row[1] for row in before["session"]}
    assert (1, "client-3", 60) in {row[:3] for row in after["session"]}
    # a pause and labels belong to the gateway, a number of starts to its database
    assert {row[0] for row in after["meta"] if row[1] == 77} == {"uplink_paused", "series/a"}
    assert ("rule_epochs", max(int(str(row[0])) for row in after["rules"])) in after["meta"]
    assert len(after["retained"]) == len(before["retained"])
    assert len(after["delivery"]) == len(before["delivery"]) - 1
    assert len(after["message"]) == len(before["message"]) - 1
    clients = {row[0]: row[1] for row in after["session"]}
    owed = {clients[row[0]]: row[2] for row in after["delivery"]}
    assert set(owed) == set(clients.values()) - {"client-3"}
    assert caplog.text.count("was added to the database") == 1


async def test_a_copy_without_room_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_november_23(tmp_path / FILE_NAME)
    before = (tmp_path / FILE_NAME).read_bytes()

    def full(old: Path, new: sqlite3.Connection) -> object:
        (pages,) = new.execute("PRAGMA page_count").fetchone()
        new.execute(f"PRAGMA max_page_count = {pages + 1}")
        return carry_over(old, new)

    with monkeypatch.context() as patched:
        patched.setattr("gateway.salvage.bring_in.carry_over", full)
        database = await open_database(tmp_path, Clock())
        assert "no space for a copy" in database.in_memory
        assert database.may_recover
        await database.close()
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert len(rows_of(tmp_path / FILE_NAME)["outbox"]) == ROWS
    assert (await used(tmp_path)).in_memory == ""
    assert len(rows_of(tmp_path / FILE_NAME)["outbox"]) == ROWS


def test_a_migration_trusts_the_tables_and_not_a_lost_version(tmp_path: Path) -> None:
    with closing(fresh(tmp_path / "whole.db")) as connection:
        connection.execute("PRAGMA user_version = 0")
        migrate(connection)
        newest, _ = migrations()[-1]
        assert connection.execute("PRAGMA user_version").fetchone() == (newest,)
