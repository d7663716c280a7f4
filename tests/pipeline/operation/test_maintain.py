"""Status, compaction and retention of tables that real runs made."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families

from pipeline.cli import main
from pipeline.operation import maintain
from pipeline.operation.status import as_prometheus, as_text, read_status
from pipeline.settings import Settings, make_settings
from pipeline.tables import delta
from tests.support.disk.landing_files import (
    EPOCH,
    TIME,
    name_for,
    put,
    put_records,
    reading,
    record,
    text_of,
)
from tests.support.pipeline_tables import contents, sizes, table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

DAY = 86_400_000
NOW = datetime.fromtimestamp(TIME / 1000 + 7200, UTC)

pytestmark = pytest.mark.spark


def made(data: Path, run: "Run") -> Settings:
    """Make tables of three batches, the first of which is 20 days older than the others."""
    old = [record(n, time=TIME - 20 * DAY, received=TIME - 20 * DAY) for n in (1, 2)]
    put_records(data / "landing", [*old, b"{"])
    run(data)
    late = record(3, reading(time=TIME - 300 * DAY))  # of a clock that was never set right
    put_records(data / "landing", [late, record(4)], first=3)
    run(data)
    put_records(data / "landing", [record(6), record(2, received=TIME)], first=5)
    run(data, gold=True)
    return make_settings(data / "landing", data / "tables")


def test_status_compaction_and_retention(
    tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str]
) -> None:
    settings = made(tmp_path, run)
    put_records(tmp_path / "landing", [record(9)], first=9)
    figures = read_status(settings, NOW)
    assert figures["rows"] == {"bronze": 6, "silver": 5, "quarantine": 2}
    assert figures["numbers"] | {"delivered": 5, "not_reported": 1} == figures["numbers"]
    assert (figures["landing_files_waiting"], figures["lag_seconds"]) == (1, 7200.0)
    assert figures["gateways"] == {
        "known": 1,
        "silent_1h": 1,
        "silent_seconds": {"barn": 7200.0},
    }
    assert figures["by_gateway"] == {
        "barn": {
            "lag_seconds": 7200.0, "usual_silence_seconds": 0.0, "silent": True, "cause": "silent",
            "missing": 0, "lost": 0, "not_reported": 1, "unexpected": 0,
        }
    }  # fmt: skip
    assert "  barn: silent for 7,200 s, usually 0 s at most" in as_text(figures)
    assert (figures["last_run"]["new_bronze"], figures["batches"]) == (2, 3)
    assert figures["oldest_waiting_seconds"] is not None
    assert (figures["rates"]["rows_24h"], figures["left"]) == (6, {})
    assert json.loads(json.dumps(figures)) == figures
    assert "2,000" not in as_text(figures)
    families = {f.name: f for f in text_string_to_metric_families(as_prometheus(figures))}
    assert {s.labels["table"]: s.value for s in families["tidegate_pipeline_rows"].samples} == {
        "bronze": 6, "silver": 5, "quarantine": 2,
    }  # fmt: skip
    (lag,) = families["tidegate_pipeline_gateway_lag_seconds"].samples
    assert (lag.labels, lag.value) == ({"gateway": "barn"}, 7200.0)
    (silent,) = families["tidegate_pipeline_gateway_silent"].samples
    assert silent.value == 1

    before = contents(tmp_path)
    silver = (tmp_path / "tables" / "silver").as_uri()
    files = len(DeltaTable(silver).file_uris())
    assert main(["compact", "--tables", str(settings.tables)]) == 0
    assert len(DeltaTable(silver).file_uris()) < files
    assert main(["vacuum", "--tables", str(settings.tables), "--hours", "0"]) == 0
    assert contents(tmp_path) == before
    run(tmp_path, verify=True)
    assert sizes(tmp_path) == (7, 6, 2)
    after = contents(tmp_path)
    assert main(["compact", "--tables", str(settings.tables)]) == 0
    assert contents(tmp_path) == after
    [file] = delta.files(settings.tables / "bronze")
    (tmp_path / "tables" / "bronze" / file["path"]).unlink()
    assert run(tmp_path, verify=True).files == 4, "those that were read into the joined file"
    assert contents(tmp_path) == after
    copy = Path(shutil.copytree(tmp_path, tmp_path.with_name("without batches")))
    shutil.rmtree(copy / "tables" / "batches")
    run(copy)
    assert contents(copy) == after

    maintain.keep(settings, 10, NOW)  # number 3 was received with the others
    assert sizes(tmp_path) == (5, 4, 1)
    put(tmp_path / "landing", text_of([record(1, time=TIME - 20 * DAY)]), name_for(1, 1))
    totals = run(tmp_path, verify=True)
    assert (totals.bronze, totals.silver, totals.reasons.total()) == (6, 4, totals.quarantined)
    capsys.readouterr()
    folders = ["--tables", str(settings.tables), "--landing", str(tmp_path / "landing")]
    assert main(["status", *folders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["silver"] == 4


def test_receipts_that_cannot_be_do_not_decide_what_is_old(tmp_path: Path, run: "Run") -> None:
    """A gateway that lands its own files sets `received` by its own clock."""
    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    old, young = TIME - 20 * DAY, TIME
    batches: list[tuple[list[object], int]] = [
        ([record(1, time=5_000, received=5_300)], young),  # a clock that begins in 1970
        ([record(2, time=young, received=4_060_000_000_000)], young),
        ([record(3, time=old, received=old + 1)], young),
        ([record(4, time=old, received=4_060_000_000_000)], old),
        ([b"{"], old),
    ]
    for seq, (records, written) in enumerate(batches, 1):
        file = put_records(tmp_path / "landing", records, first=seq)
        os.utime(file, (written / 1000, written / 1000))
        run(tmp_path)
    assert sizes(tmp_path) == (4, 4, 1)
    maintain.keep(settings, 10, NOW)
    assert sorted(row["seq"] for row in table_rows(tmp_path, "silver")) == [1, 2]
    assert sizes(tmp_path) == (2, 2, 0)


def test_more_numbers_lost_than_an_integer_of_64_bits_holds(
    tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str]
) -> None:
    """And a reason that would clear the screen of whoever reads the report."""
    for gateway in ("barn", "shed"):
        folder = tmp_path / "landing" / gateway / "ledger"
        folder.mkdir(parents=True)
        reported = {"epoch": EPOCH, "start": 1, "previous": None, "stream": "main"}
        ranges = [[1, 2**63 - 1, "lost", "disk\x1b[2J\r\nfull"]]
        (folder / f"{EPOCH}.1.jsonl").write_text(json.dumps(reported | {"ranges": ranges}) + "\n")
    run(tmp_path)
    tables = str(tmp_path / "tables")
    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    assert read_status(settings)["numbers"]["lost"] == 2**64 - 2
    assert main(["ledger", "--tables", tables]) == 3
    shown = capsys.readouterr().out
    assert "disk?[2J??full" in shown
    assert f"lost {2**64 - 2:,} = emitted {2**64 - 2:,}" in shown


def test_wrong_arguments_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", "--tables", str(tmp_path / "none")]) == 2
    assert "there are no tables" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["compact", "--keep", "400"])
    assert "is not a number of days such as 400d" in capsys.readouterr().err
    assert main(["status", "--tables", str(tmp_path / "none"), "--landing", str(tmp_path)]) == 2
