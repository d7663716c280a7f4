"""Copies of tables in an object store, which readers see whole: killed, refused, and followed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, Schema
from pyarrow.fs import SubTreeFileSystem

from pipeline.cli import main
from pipeline.errors import JobError
from pipeline.operation import maintain
from pipeline.operation import publish as module
from pipeline.operation.publish import TRIES, Published, ReplacedError, SourceFile, publish
from pipeline.place import URLS, Place, place_of, store_errors
from pipeline.settings import Settings, make_settings
from pipeline.tables import delta, lease, on_disk
from pipeline.tables.columns import SILVER, arrow_schema
from pipeline.tables.lease import held
from pipeline.tables.lock import COPY, locked
from pipeline.tables.state import Commit, write_commit
from pipeline.tables.task_files import write_file
from tests.support.object_store import S3Server
from tests.support.ports import free_port
from tests.support.waiting import until

SHOWN = ("bronze", "quarantine", "silver")
PUBLISH = [sys.executable, "-m", "pipeline.cli", "publish"]


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def url(server: S3Server, request: pytest.FixtureRequest) -> str:
    bucket = request.node.originalname.replace("_", "-")[:60].rstrip("-")
    server.files.create_dir(bucket)
    return f"s3://{bucket}/fleet/tables"


@pytest.fixture(scope="module")
def two_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("two batches")
    made(data, batches=2)
    return data


@pytest.fixture
def settings(tmp_path: Path, two_batches: Path) -> Settings:
    """Bronze, quarantine and silver of two batches, of rows without an event time too."""
    shutil.copytree(two_batches, tmp_path, dirs_exist_ok=True)
    return make_settings(tmp_path / "landing", tmp_path / "tables")


def made(data: Path, batches: int) -> Settings:
    settings = make_settings(data / "landing", data / "tables")
    settings.checkpoints.mkdir(parents=True)
    delta.create(settings.tables / "silver", SILVER)
    for batch in range(1, batches + 1):
        add(settings, batch)
    return settings


def add(settings: Settings, batch: int, first_seq: int | None = None) -> None:
    """Commit a batch with two rows in each table, one of them in another file of silver."""
    root = settings.tables
    first = 2 * batch if first_seq is None else first_seq
    seqs = (first, first + 1)
    rows: list[dict[str, object]] = [{"seq": seq, "received": batch} for seq in seqs]
    for table in ("bronze", "quarantine"):
        delta.create(root / table, on_disk.TABLES[table])
        delta.append(root / table, on_disk.TABLES[table], [row | {"batch": batch} for row in rows])
    written = []
    for row, day in zip(rows, (date(2025, 11, 20 + batch), None), strict=True):
        dated = row | {"batch": batch, "event_date": day}
        table = pa.Table.from_pylist([dated], schema=arrow_schema(SILVER))
        written.append(write_file(root, "silver", table))
    delta.commit(root / "silver", written)
    counts = dict.fromkeys(on_disk.COUNTED, len(rows))
    delta.create(root / "batches", on_disk.TABLES["batches"])
    write_commit(root, Commit(batch, 1, counts))


def copy(server: S3Server, url: str, table: str, version: int | None = None) -> ds.Dataset:
    """Return a copy as a reader sees it, read by Arrow's own file system as in `delta.read`."""
    found = DeltaTable(f"{url}/{table}", version=version, storage_options=server.options)
    files = SubTreeFileSystem(f"{url.removeprefix('s3://')}/{table}", server.files)
    return found.to_pyarrow_dataset(filesystem=files)


def version(server: S3Server, url: str, table: str) -> int:
    found: int = DeltaTable(f"{url}/{table}", storage_options=server.options).version()
    return found


def numbers(found: ds.Dataset) -> list[Any]:
    return sorted(found.to_table()["seq"].to_pylist())


def copied(server: S3Server, url: str) -> dict[str, list[Any]]:
    """Return the numbers of the rows that a reader sees in the copies."""
    return {table: numbers(copy(server, url, table)) for table in SHOWN}


def of_batches(count: int) -> dict[str, list[int]]:
    return {table: list(range(2, 2 * count + 2)) for table in SHOWN}


@pytest.mark.uncovered
def test_copies_follow_their_tables(
    settings: Settings, server: S3Server, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    on_disk.create(settings.tables)
    command = ["publish", "--to", url, "--tables", str(settings.tables)]
    assert main(command) == 0
    assert "13 of 13 copies brought up to date, 10 files with" in capsys.readouterr().out
    assert copied(server, url) == of_batches(2)
    first = version(server, url, "silver")

    assert server.writes()
    assert main(command) == 0
    assert "0 of 13 copies brought up to date, 0 files with 0 bytes" in capsys.readouterr().out
    assert server.writes() == []

    add(settings, 3)
    assert publish(settings, url)[::2] == (5, 4)
    assert copied(server, url) == of_batches(3)
    assert numbers(copy(server, url, "silver", first)) == [2, 3, 4, 5]
    dates = copy(server, url, "silver")
    asked = "SELECT seq FROM dates WHERE event_date = '2025-11-23' OR gateway_id = 'x'"
    assert duckdb.connect().execute(asked).fetchall() == [(6,)], (
        "which needs the names of the folders"
    )
    assert dates.count_rows() == 6


@pytest.mark.uncovered
def test_a_column_of_a_later_version_is_null_in_older_rows(
    settings: Settings, server: S3Server, url: str
) -> None:
    publish(settings, url)
    delta.create(settings.tables / "silver", (*SILVER, ("mood", "string")))
    add(settings, 3)
    publish(settings, url)
    found = copy(server, url, "silver")
    assert found.to_table()["mood"].null_count == found.count_rows() == 6
    assert copied(server, url) == of_batches(3)


@pytest.mark.uncovered
def test_a_batch_that_is_made_again_under_its_names_is_followed(
    settings: Settings, server: S3Server, url: str
) -> None:
    publish(settings, url)
    before = version(server, url, "bronze")
    for table in SHOWN:
        delta.remove(settings.tables / table, "batch", {2})
    add(settings, 2, first_seq=8)
    publish(settings, url)
    assert copied(server, url) == {table: [2, 3, 8, 9] for table in SHOWN}
    assert numbers(copy(server, url, "bronze", before)) == [2, 3, 4, 5]


@pytest.mark.uncovered
def test_files_that_compaction_joins_and_vacuum_removes(
    settings: Settings, server: S3Server, url: str
) -> None:
    publish(settings, url)
    before = version(server, url, "bronze")
    maintain.compact(settings)
    maintain.vacuum(settings, 0)
    done = publish(settings, url)
    assert copied(server, url) == of_batches(2)
    assert done.files == 4, "one of each table"
    assert numbers(copy(server, url, "bronze", before)) == [2, 3, 4, 5]
    held = server.objects(url)
    assert main(["publish", "--to", url, "--tables", str(settings.tables), "--vacuum", "1"]) == 0
    assert server.objects(url) == held
    publish(settings, url, vacuum=0)
    assert len(server.objects(url)) == len(held) - 10
    assert copied(server, url) == of_batches(2)


KILLED_AFTER = 2
"""Requests that change something and are answered before the publisher is killed."""


@pytest.mark.uncovered
def test_killed_again_and_again_it_goes_on_and_readers_see_whole_tables(
    settings: Settings, server: S3Server, url: str
) -> None:
    publish(settings, url)
    add(settings, 3)
    command = [*PUBLISH, "--to", url, "--tables", str(settings.tables)]
    seen = []
    statuses: list[int] = []
    while statuses[-1:] != [0]:
        assert len(statuses) < 9, "it begins anew each time"
        with server.holding(), subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            for _ in range(KILLED_AFTER):
                until(lambda: server.held() or process.poll() is not None, "requests")
                seen.append(copied(server, url))
                server.let_go()
            process.kill()
        statuses.append(process.returncode)
    assert len(statuses) > 2, "killed twice at least"
    wrong = [
        (table, rows)
        for each in seen
        for table, rows in each.items()
        if rows not in (of_batches(2)[table], of_batches(3)[table])
    ]
    assert wrong == []
    assert copied(server, url) == of_batches(3)


@pytest.mark.uncovered
def test_what_an_interrupted_upload_left_is_not_taken_for_the_file(
    settings: Settings, server: S3Server, url: str
) -> None:
    silver = next(t for t in module._listed(settings.tables) if t.name == "silver")
    key = min(silver.files)
    with server.files.open_output_stream(f"{url.removeprefix('s3://')}/silver/{key}") as half:
        half.write(b"PAR1")
    publish(settings, url)
    assert copied(server, url) == of_batches(2)


def meanwhile(monkeypatch: pytest.MonkeyPatch, acts: Sequence[Callable[[], object]]) -> None:
    """Let other commands act between each listing of the tables and the copying."""
    bring_up, acting = module._bring_up, iter(acts)

    def after_others(*arguments: Any, **options: Any) -> Published:
        next(acting, lambda: None)()
        return bring_up(*arguments, **options)

    monkeypatch.setattr(module, "_bring_up", after_others)


def file_of(settings: Settings, batch: int) -> Path:
    """Return bronze's file of a batch."""
    root = settings.tables / "bronze"
    [file] = delta.within(delta.files(root), "batch", {batch})
    return Path(root.name, str(file["path"]))


def test_files_that_others_replace_are_listed_anew(
    settings: Settings, server: S3Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_of(settings, 1)

    def replaced() -> None:
        maintain.compact(settings)
        maintain.vacuum(settings, 0)

    acts = [lambda: os.utime(file, (1, 1)), replaced]
    meanwhile(monkeypatch, acts)
    assert publish(settings, url).tables == 4
    assert copied(server, url) == of_batches(2)
    with pytest.raises(ReplacedError):
        module._put(
            place_of(url), SourceFile(place_of(file.parent), file.name, 1, 1), "silver/x.parquet"
        )

    add(settings, 3)
    new = file_of(settings, 3)
    meanwhile(monkeypatch, [partial(os.utime, new, (n, n)) for n in range(TRIES)])
    with pytest.raises(JobError, match="replaced repeatedly"):
        publish(settings, url)
    publish(settings, url)
    assert copied(server, url) == of_batches(3)


def test_it_waits_for_commands_that_work_and_two_do_not_copy_at_once(
    settings: Settings,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["publish", "--to", url, "--tables", str(settings.tables)]
    with locked(settings.checkpoints, COPY):
        assert main(command) == 75
    assert "publish.lock is held: another tidegate-pipeline does this" in capsys.readouterr().err
    working = ExitStack()
    working.enter_context(held(settings.tables))
    taken, tries = lease._taken, iter((False, True))

    def ending(root: Place) -> lease._Lease:
        """End the other command's work once it is waited for."""
        if next(tries, False):
            working.close()
        return taken(root)

    monkeypatch.setattr(lease, "_taken", ending)
    assert main(command) == 0


@pytest.mark.uncovered
def test_copies_of_other_tables_are_left_alone_unless_they_shall_be_replaced(
    settings: Settings,
    server: S3Server,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(settings, url)
    others = made(tmp_path / "others", batches=1)
    command = ["publish", "--to", url, "--tables", str(others.tables)]
    assert main(command) == 2
    assert f"{url}/batches is no copy of these tables" in capsys.readouterr().err
    assert copied(server, url) == of_batches(2)
    assert main([*command, "--replace"]) == 0
    assert copied(server, url) == of_batches(1)
    assert main(command) == 0
    assert copied(server, url) == of_batches(1)
    schema, place = Schema.from_arrow(arrow_schema(SILVER)), f"{url}/old"
    DeltaTable.create(
        f"{place}/gaps", schema, partition_by=["batch"], storage_options=server.options
    )
    delta.create(others.tables / "gaps", SILVER)
    assert main([*command[:2], place, *command[3:], "--replace"]) == 2
    assert f"{place}/gaps is of an earlier version: name another" in capsys.readouterr().err


def test_tables_in_a_store_are_copied_to_another_place(
    server: S3Server,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = made(tmp_path, batches=1)
    publish(own, f"{url}/own")
    tables = f"{url}/own"
    command = ["publish", "--tables", tables, "--to", f"{url}/copies"]
    assert main(command) == 0
    assert copied(server, f"{url}/copies") == of_batches(1)
    add(own, 2)
    publish(own, tables)
    assert main(command) == 0
    assert copied(server, f"{url}/copies") == of_batches(2)
    assert main([*command[:-1], f"{tables}/more", "--replace"]) == 2
    assert "/more is where the tables are: name another place" in capsys.readouterr().err


def test_what_is_wrong_is_one_line(
    settings: Settings,
    server: S3Server,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reported(to: str, *more: str, tables: Place | Path = settings.tables) -> tuple[int, str]:
        status = main(["publish", "--to", to, "--tables", str(tables), *more])
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return status, said.removeprefix("tidegate-pipeline: ").rstrip()

    with server.asking_for_credentials():
        unknown = "The AWS Access Key Id you provided does not exist in our records."
        assert reported(url) == (1, f"cannot write to {url}: {unknown} (InvalidAccessKeyId)")
    nowhere = "s3://no-such-bucket/tables"
    refusal = "The specified bucket does not exist (NoSuchBucket)"
    assert reported(nowhere) == (1, f"cannot write to {nowhere}: {refusal}")
    for wrong in ("https://host/bucket", "s3://", "s3://Bucket", str(tmp_path)):
        assert reported(wrong) == (2, f"{wrong} is not {URLS}")
    assert reported(url, "--vacuum", "-1") == (2, "--vacuum -1 is less than 0")
    assert reported(url, tables=tmp_path / "none")[0] == 2
    assert reported(url, tables=tmp_path) == (2, f"there are no tables in {tmp_path}")
    assert server.objects(url) == {}, "whatever went wrong, nothing was written"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    status, said = reported(url)
    assert (status, said.startswith(f"cannot write to {url}: ")) == (1, True)
    assert "Connection refused" in said


def test_a_store_that_fails_while_files_go_up_is_told_too(server: S3Server, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    file = module._found(place_of(tmp_path), path.name)
    url = "s3://no-such-bucket/tables"
    with (
        pytest.raises(JobError, match=r"NO_SUCH_BUCKET.*does not exist"),
        store_errors("no"),
    ):
        module._put(place_of(url), file, "silver/file")


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({}, {}),
        ({"AWS_DEFAULT_REGION": "eu-north-1"}, {"region": "eu-north-1"}),
        (
            {"AWS_ENDPOINT_URL": "https://store", "AWS_ENDPOINT_URL_S3": "http://s3:9000"},
            {"endpoint_url": "http://s3:9000", "region": "us-east-1", "allow_http": "true"},
        ),
        (
            {"AWS_ENDPOINT_URL": "https://store", "AWS_REGION": "fsn1"},
            {"endpoint_url": "https://store", "region": "fsn1"},
        ),
    ],
)
def test_the_environment_says_where_the_store_is(
    variables: dict[str, str], options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    store = place_of("s3://fleet/a/b/")
    assert (str(store), store.options) == ("s3://fleet/a/b", {"max_retries": "5"} | options)
