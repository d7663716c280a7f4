"""A gateway's own database, written by the gateway's own code, as records."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipeline.cli import main
from pipeline.errors import PipelineError
from pipeline.outbox.rows import ids, records
from pipeline.tables.columns import RECORD, names
from tests.support.disk.storage import open_store, outbox_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = (
    "INSERT INTO history (id, start, rules, payload_is_json, epoch, time, topic, payload, qos,"
    " retain) VALUES (9, 1, '[[\"main\",4,[]],[\"slow\",2,[]]]', 0, '00a1b2c3d4',"
    " 5, 'a', x'FF', 0, 1)"
)


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    store = await open_store(tmp_path)
    for seq in range(1, 21):
        store.outbox.add(outbox_row(seq, user_properties=(("site", "A"), ("site", "B"))))
    await store.settle()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "tidegate.db")) as connection:
        connection.execute(HISTORY)
        connection.commit()
    return tmp_path / "tidegate.db"


async def test_what_waits_comes_as_records(database: Path) -> None:
    first, last = ids(database, "outbox")
    (found,) = records(database, "outbox", "barn", first, last)
    rows = [dict(zip(names(RECORD), row, strict=True)) for row in found]
    assert [row["seq"] for row in rows] == list(range(1, 21))
    assert rows[0] | {"seq": 1} == dict.fromkeys(names(RECORD)) | {
        "gateway_id": "barn",
        "epoch": "00a1b2c3d4",
        "stream": "main",
        "seq": 1,
        "time": 1_763_740_000_001,
        "topic": "sensors/n1/temperature",
        "payload": b'{"value":1}',
        "qos": 1,
        "retain": False,
        "resent": True,
        "properties": [{"name": "site", "value": "A"}, {"name": "site", "value": "B"}],
    }
    assert ids(database, "rejected") == (1, 0)


async def test_a_message_of_the_history_has_a_record_for_each_stream(database: Path) -> None:
    (found,) = records(database, "history", "barn", 1, 99)
    assert [row[1:4] for row in found] == [("00a1b2c3d4", "main", 4), ("00a1b2c3d4", "slow", 2)]


async def test_it_can_be_imported(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    landing = database.parent / "landing"
    arguments = ["import", str(database), "--gateway", "barn", "--landing", str(landing)]
    assert main(arguments) == 0
    assert "landed 20 records" in capsys.readouterr().out
    (file,) = landing.glob("*/import-*.parquet")
    assert pq.read_metadata(file).num_rows == 20
    assert main([*arguments[:2], "--gateway", "../x"]) == 2
    assert main(["import", str(landing), "--gateway", "barn"]) == 2


@pytest.mark.uncovered
@pytest.mark.spark
async def test_spark_reads_it_by_its_format(database: Path, spark: "SparkSession") -> None:
    from pipeline.outbox.data_source import TidegateDataSource

    spark.dataSource.register(TidegateDataSource)
    read = spark.read.format("tidegate").option("gateway", "barn")
    rows = read.load(str(database))
    assert rows.selectExpr("count(*)", "sum(seq)", "min(decode(payload, 'utf-8'))").first() == (
        20, 210, '{"value":10}',
    )  # fmt: skip
    assert read.option("table", "history").load(str(database)).count() == 2


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database at all, but text that is long enough to be read")
    for file, said in (("x.db", "is no gateway's database"), ("gone", "is not a file")):
        with pytest.raises(PipelineError, match=said):
            ids(tmp_path / file, "outbox")
    with pytest.raises(PipelineError, match="is none of outbox"):
        ids(tmp_path / "x.db", "users")
