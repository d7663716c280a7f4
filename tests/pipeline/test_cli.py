import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest

from pipeline.cli import main
from pipeline.errors import BusyError, JobError, PipelineError
from pipeline.operation.begin import begin
from pipeline.place import place_of
from pipeline.settings import make_settings
from pipeline.tables import delta
from pipeline.tables.columns import SILVER, arrow_schema
from pipeline.tables.lease import held
from pipeline.tables.state import TABLES, Commit, Mark, State, note_files, write_commit
from pipeline.tables.task_files import write_file
from tests.support.disk.landing_files import EPOCH, put_records, record
from tests.support.pipeline_tables import sizes, table_rows
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import How

DEADLINE = 300.0
"""Seconds until a run must have come to where a test waits for it."""


@pytest.fixture
def java_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a java on the path that nobody calls, for runs with nothing to do."""
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")


def once(data: Path, *options: str) -> list[str]:
    if not (data / "landing").exists():
        (data / "landing").mkdir(parents=True)
    return ["once", "--landing", f"{data}/landing", "--tables", f"{data}/tables", *options]


def command(data: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "pipeline.cli", *once(data, *options)]


def test_the_version_is_the_distribution_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tidegate-pipeline {version('tidegate')}\n"


@pytest.mark.uncovered
def test_a_run_with_nothing_new_does_not_load_spark(tmp_path: Path, java_command: None) -> None:
    """Its modules alone take a tenth of a second of a run that shall take less than one."""
    loaded = "; print([name for name in ('pyspark', 'py4j') if name in sys.modules])"
    run = f"import sys; from pipeline.cli import main; main({once(tmp_path)})" + loaded
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_what_the_library_of_tables_raises_is_told_in_a_line(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(once(tmp_path)) == 0
    (log,) = (tmp_path / "tables" / "ledger" / "_delta_log").glob("*.json")
    log.write_text("\x1b[31m{")
    capsys.readouterr()
    assert main(once(tmp_path)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tidegate-pipeline: ")
    assert line.isprintable()
    assert len(line) < 300


def test_a_reader_that_is_gone_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "pipeline.cli", "simulate", "--out", str(tmp_path / "fleet")]
    done = subprocess.run(
        [*command, "--gateways", "1", "--days", "1"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [[], ["twice"], ["once", "--tables"], ["once", "more"]])
def test_wrong_arguments_end_with_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: tidegate-pipeline" in capsys.readouterr().err


@pytest.mark.spark
def test_a_key_that_silver_has_twice_is_told(
    tmp_path: Path,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pipeline.operation.session.open_session", lambda settings: spark)
    assert main(once(tmp_path, "--verify")) == 0
    tables, written = place_of(tmp_path / "tables"), []
    for day in (20, 21):
        key = {"gateway_id": "barn", "epoch": EPOCH, "stream": "main", "batch": 1}
        rows = [key | {"seq": seq, "event_date": date(2025, 11, day)} for seq in (7, 12, day)]
        table = pa.Table.from_pylist(rows, schema=arrow_schema(SILVER))
        written.append(write_file(tables, "silver", table))
    delta.commit(tables / "silver", written, batch=1)
    counts = {"bronze": 0, "quarantine": 0, "silver": 6}
    write_commit(tmp_path / "tables", Commit(1, 0, counts))
    capsys.readouterr()
    assert main(once(tmp_path)) == 0, "nobody looked"
    assert main(once(tmp_path, "--verify", "--json")) == 1
    said = capsys.readouterr()
    assert f"silver has 2 keys more than once (first: barn {EPOCH}.main.7)" in said.err
    assert json.loads(said.out.splitlines()[-1])["doubled"] == 2


def test_without_java_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert main(once(tmp_path)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "install openjdk-17-jre-headless" in said.err
    assert said.err.count("\n") == 1


def test_a_java_that_does_not_start_spark_is_named(tmp_path: Path, java_command: None) -> None:
    put_records(tmp_path / "landing", [record(1)])
    ended = subprocess.run(command(tmp_path), capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "bin/java did not start Spark, which needs Java 17 or 21" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["once", "status"])
def test_a_missing_landing_folder_is_told(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    landing = tmp_path / "landing"
    folders = ["--landing", str(landing), "--tables", str(tmp_path / "tables")]
    assert main([command, *folders]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    missing = f"there is no landing folder {landing}; --landing names it"
    assert said.err == f"tidegate-pipeline: {missing}\n"


def test_an_empty_landing_folder_gives_zeros(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(once(tmp_path)) == 0
    said = capsys.readouterr()
    assert [line.split() for line in said.out.splitlines()] == [
        ["bronze", "0"],
        ["silver", "0"],
        ["quarantined", "0"],
        ["landing", "files", "read", "now", "0"],
    ]
    assert said.err == ""
    assert main(once(tmp_path, "--json")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "bronze": 0,
        "silver": 0,
        "quarantined": 0,
        "doubled": 0,
        "reasons": {},
        "files": 0,
        "left": {},
        "streams": [],
    }


def test_without_options_it_reads_what_the_demonstration_wrote(
    tmp_path: Path, java_command: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "var" / "landing").mkdir(parents=True)
    assert main(["once"]) == 0
    assert sizes(tmp_path / "var") == (0, 0, 0)


def test_what_is_not_read_is_told(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "landing" / "barn").mkdir(parents=True)
    (tmp_path / "landing" / "barn" / "a.csv").touch()
    assert main(once(tmp_path)) == 0
    assert capsys.readouterr().err == (
        f"tidegate-pipeline: not read in {tmp_path}/landing: 1 "
        "(first: barn/a.csv, its name does not end in .jsonl or .parquet)\n"
    )


@pytest.mark.parametrize(
    "place", ["landing", "tables", "tables/bronze", "tables/gaps", "tables/batches"]
)
def test_a_file_in_a_folder_s_place_is_told_in_a_line(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    assert main(once(tmp_path)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{tmp_path / place}" in said.err
    assert said.err.count("\n") == 1


def test_two_runs_do_not_work_on_the_same_tables(
    tmp_path: Path, java_command: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with held(tmp_path / "tables"):
        assert main(once(tmp_path)) == 75
    assert "another tidegate-pipeline works on these tables" in capsys.readouterr().err
    assert main(once(tmp_path)) == 0


WITHOUT_PANDAS = """
import sys
from pipeline.cli import main
assert main(sys.argv[1:]) == 0
assert "pandas" not in sys.modules, "it takes a fifth of the time of such a run"
"""


@pytest.mark.uncovered
def test_a_run_with_nothing_new_does_not_load_pandas(tmp_path: Path) -> None:
    file = put_records(tmp_path / "landing", [record(1)])
    mark = Mark(file.stat().st_size, 1_763_700_000 * 10**9)
    name = file.relative_to(tmp_path / "landing").as_posix()
    settings = make_settings(tables=tmp_path / "tables")
    begin(settings)
    note_files(settings.tables, 1, {name: mark})
    write_commit(settings.tables, Commit(1, 1, dict.fromkeys(TABLES, 0), {"not_json": 1}))
    committed = State(settings.tables, compared=1, golden=1)
    committed.note()
    for path in (tmp_path / "landing").rglob("*"):
        os.utime(path, (1_763_700_000, 1_763_700_000))  # so its folder is settled
    assert main(once(tmp_path)) == 0  # makes the tables of gold
    delta.remove_all(settings.tables / "folders")
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS, *once(tmp_path)], check=True)


ENDS = [
    (PipelineError("no way in"), 2, "no way in"),
    (OSError(28, "No space left on device", "tables/x"), 2, "tables/x: No space left on device"),
    (OSError("odd"), 2, "odd"),
    (BrokenPipeError(32, "Broken pipe"), 2, "Broken pipe"),  # of another than standard output
    (JobError("gave up"), 1, "gave up"),
    (KeyboardInterrupt(), 130, "interrupted; what was committed is complete"),
]


@pytest.mark.parametrize(("error", "status", "line"), ENDS, ids=range(len(ENDS)))
def test_an_error_is_a_status_and_a_line(
    error: BaseException,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(options: object) -> NoReturn:
        raise error

    monkeypatch.setattr("pipeline.commands.once.run_command", failing)
    assert main(["once"]) == status
    assert capsys.readouterr() == ("", f"tidegate-pipeline: {line}\n")


def test_a_service_that_fails_says_so_in_its_metrics(
    tmp_path: Path,
    java_command: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where they cannot be written either, what failed first is told."""

    def failing(*_: object) -> NoReturn:
        raise JobError("gave up")

    monkeypatch.setattr("pipeline.operation.once._run_batches", failing)
    put_records(tmp_path / "landing", [record(1)])
    metrics = tmp_path / "pipeline.prom"
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["run", *once(tmp_path)[1:], "--metrics", str(metrics)]) == 1
        assert main(["run", *once(tmp_path)[1:], "--metrics", str(metrics / "x")]) == 1
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert "tidegate_pipeline_last_run_failed 1\n" in metrics.read_text()
    assert capsys.readouterr().err.count("tidegate-pipeline: gave up\n") == 2


@pytest.mark.parametrize(
    ("options", "gold"),
    [
        ((), [True] * 3),
        (("--gold-every", "3600"), [True, False, False]),
        (("--no-gold",), [False] * 3),
    ],
)
def test_a_service_makes_gold_as_often_as_it_is_told(
    tmp_path: Path,
    java_command: None,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    gold: list[bool],
) -> None:
    made = []

    def counted(_settings: object, _session: object, how: "How", _options: object) -> None:
        made.append(how.gold)
        if len(made) == len(gold):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("pipeline.commands.run._round", counted)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["run", *once(tmp_path)[1:], "--every", "0.01", *options]) == 0
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert made == gold


@pytest.mark.uncovered
@pytest.mark.spark
@pytest.mark.slow
def test_a_service_and_then_a_run(tmp_path: Path) -> None:
    put_records(tmp_path / "landing", [record(seq) for seq in range(1, 1001)])
    put_records(tmp_path / "landing", [record(1000, content=b"z"), b"{"], first=1000)
    left = tmp_path / "checkpoints" / "tables" / "scratch" / "of-a-killed-run"
    left.parent.mkdir(parents=True)
    left.touch()
    metrics = tmp_path / "pipeline.prom"
    config = tmp_path / "pipeline.toml"
    config.write_text(
        f'landing = "{tmp_path}/landing"\ntables = "{tmp_path}/tables"\n'
        f'[run]\nevery = 0.2\nno_gold = true\nmetrics = "{metrics}"\n'
        '[spark]\ndriver.memory = "1g"\n'
    )
    service = [sys.executable, "-m", "pipeline.cli", "run", "--config", str(config)]
    log = tmp_path / "service.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(service, stdout=out, stderr=subprocess.STDOUT) as running,
    ):
        wait_for(tmp_path, metrics.name)
        assert not left.exists()
        assert sizes(tmp_path) == (1001, 1000, 2)
        [scratch] = left.parent.iterdir()
        put_records(tmp_path / "landing", [record(2000)], first=2000)
        runs = tmp_path / "tables" / "runs" / "_delta_log"
        until(lambda: len(list(runs.glob("*.json"))) == 3, "a second run after the schema")
        assert sizes(tmp_path)[0] == 1002
        hold_the_tables(tmp_path / "tables", log)
        running.terminate()
        running.wait(DEADLINE)
    said = log.read_text()
    assert said.count("another tidegate-pipeline works on these tables") == 1
    assert (running.returncode, said.count("read 1 files in")) == (0, 1)
    assert "read 2 files in" in said
    assert list(scratch.glob("blockmgr-*")) == []
    done = subprocess.run(command(tmp_path, "--json"), capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    output = json.loads(done.stdout)
    assert (output["bronze"], output["silver"], output["quarantined"]) == (1002, 1001, 2)
    assert sorted(row["new_bronze"] for row in table_rows(tmp_path, "runs")) == [1, 1001]


def hold_the_tables(tables: Path, log: Path) -> None:
    """Work on the tables between two rounds of a service, until it says that it waits."""
    until(lambda: is_told_while_held(tables, log), "a round that waits")


def is_told_while_held(tables: Path, log: Path) -> bool:
    try:
        with held(tables):
            until(lambda: "another tidegate-pipeline" in log.read_text(), "a word of it")
            time.sleep(0.5)  # a second round
    except BusyError:
        return False
    return True


def wait_for(folder: Path, pattern: str) -> None:
    end = time.monotonic() + DEADLINE
    while not next(folder.glob(pattern), None):
        assert time.monotonic() < end, f"no {pattern} in {folder}"
        time.sleep(0.01)
