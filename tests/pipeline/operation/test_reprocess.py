"""Payloads of one's own: in silver and gold when they arrive, or when they are read again."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pipeline.cli import main
from pipeline.operation import reprocess as reprocessing
from pipeline.operation.once import How
from pipeline.operation.reprocess import Selection, reprocess
from pipeline.records.declarations import read_declared
from pipeline.records.declared import NOTHING, Declared
from pipeline.settings import make_settings
from pipeline.tables import delta
from tests.support.disk.landing_files import TIME, put_records, reading, record
from tests.support.pipeline_tables import table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

DECLARED = """
[[mapping]]
preset = "zigbee2mqtt"

[[mapping]]
topics = ["plant/{node}/{instance}/state"]
time = "at"
map = { t = { quantity = "temperature", unit = "°C", scale = 0.1 }, mode = "mode", "*" = false }
"""
DAY = 86_400_000
ZIGBEE = {"temperature": 21.5, "humidity": 40, "linkquality": 99, "contact": False}
PLANT = {"t": 215, "mode": "auto", "debug": 7, "at": TIME - DAY}
SENT: list[tuple[str, bytes]] = [
    ("sensors/n1/temperature", reading(1.5, unit="°C")),
    ("zigbee2mqtt/kitchen", json.dumps(ZIGBEE).encode()),
    ("plant/oven/left/state", json.dumps(PLANT).encode()),
    ("plant/oven/left/state", b'{"t": 21'),
    ("plant/oven/left/state", b"offline"),
    ("zigbee2mqtt/kitchen", json.dumps(ZIGBEE | {"temperature": None}).encode()),
]
EXPECTED = Counter({
    (1, "n1", "temperature", None, 1.5, None): 1,
    (2, "kitchen", "temperature", None, 21.5, None): 1,
    (2, "kitchen", "humidity", None, 40.0, None): 1,
    (2, "kitchen", "link_quality", None, 99.0, None): 1,
    (2, "kitchen", "opening", None, None, "true"): 1,
    (3, "oven", "temperature", "left", 21.5, None): 1,
    (3, "oven", "mode", "left", None, "auto"): 1,
    (4, None, None, None, None, '{"t": 21'): 1,
    (5, None, None, None, None, "offline"): 1,
    (6, "kitchen", "humidity", None, 40.0, None): 1,
    (6, "kitchen", "link_quality", None, 99.0, None): 1,
    (6, "kitchen", "opening", None, None, "true"): 1,
})  # fmt: skip
EVERYTHING = Selection()
GOLD = ("readings_1h", "readings_1d", "gateway_day", "node_day", "freshness", "streams", "gaps")


def land(data: Path) -> None:
    records: list[object] = [
        record(seq, topic=topic, content=content) for seq, (topic, content) in enumerate(SENT, 1)
    ]
    put_records(data / "landing", records)
    put_records(data / "landing", records[1:3], first=2)  # sent again


def found(data: Path) -> Counter[Any]:
    names = ("seq", "node", "quantity", "instance", "value", "value_text")
    return Counter(tuple(row[name] for name in names) for row in table_rows(data, "silver"))


def content(data: Path, *tables: str) -> dict[str, Counter[str]]:
    """Return the rows of tables; `made` and batches differ between two ways to the same."""
    return {
        table: Counter(
            json.dumps({n: v for n, v in row.items() if n != "batch"}, default=str, sort_keys=True)
            for row in table_rows(data, table)
        )
        for table in tables
    }


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Declared:
    file = tmp_path_factory.mktemp("declared") / "readings.toml"
    file.write_text(DECLARED)
    return read_declared(file)


@pytest.fixture(scope="module")
def rebuilt(
    tmp_path_factory: pytest.TempPathFactory, run: "Run", declared: Declared
) -> "tuple[Path, Totals]":
    data = tmp_path_factory.mktemp("rebuilt")
    land(data)
    return data, run(data, gold=True, declared=declared)


def again(
    data: Path, spark: "SparkSession", declared: Declared, chosen: Selection = EVERYTHING
) -> reprocessing.Done:
    settings = make_settings(data / "landing", data / "tables")
    return reprocess(settings, lambda: spark, chosen, How(declared=declared))


def test_each_reading_of_a_message_is_a_row(
    rebuilt: "tuple[Path, Totals]", run: "Run", declared: Declared
) -> None:
    data, totals = rebuilt
    assert found(data) == EXPECTED
    assert (totals.bronze, totals.silver, totals.quarantined) == (8, 6, 0)
    rows = table_rows(data, "silver")
    sizes = {row["seq"]: row["bytes"] for row in rows if row["bytes"] is not None}
    assert sizes == {seq: len(payload) for seq, (_, payload) in enumerate(SENT, 1)}
    errors = {row["seq"]: row["decode_error"] for row in rows if row["decode_error"]}
    assert list(errors) == [4]
    assert {row["event_date"].isoformat() for row in rows if row["node"] == "oven"} == {
        "2025-11-20"  # a day before the gateway got it: its own time
    }
    (day,) = (r for r in table_rows(data, "gateway_day") if str(r["date"]) == "2025-11-21")
    assert (day["rows"], day["bytes"]) == (5, sum(sizes.values()) - sizes[3])
    hours = (row for row in table_rows(data, "readings_1h") if row["count"])
    (hour,) = (r for r in hours if r["node"] == "oven" and r["quantity"] == "temperature")
    assert (hour["mean"], hour["unit"], hour["instance"]) == (21.5, "°C", "left")
    put_records(data / "landing", [record(2, topic=SENT[1][0], content=SENT[1][1])], first=2)
    again = run(data, verify=True, declared=declared)  # another batch repeats a message
    assert (again.bronze, again.silver, again.doubled) == (9, 6, None)
    assert found(data) == EXPECTED


def test_reading_payloads_again_gives_what_a_rebuild_gives(
    tmp_path: Path, run: "Run", spark: "SparkSession", declared: Declared,
    rebuilt: "tuple[Path, Totals]", monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    land(tmp_path)
    before = run(tmp_path, gold=True)
    text = found(tmp_path)
    changed = [run(tmp_path, declared=which).remapped for which in (declared, declared, NOTHING)]
    assert [before.remapped, *changed] == [False, True, False, True]
    assert again(tmp_path, spark, declared, Selection(gateway="shed")).messages == 0
    done = again(tmp_path, spark, declared, Selection(topic="zigbee2mqtt/+"))
    assert (done.messages, done.rows) == (2, 7)
    assert {row for row in found(tmp_path) if row[0] in (2, 6)} == {
        row for row in EXPECTED if row[0] in (2, 6)
    }
    assert {row for row in found(tmp_path) if row[0] == 3} < set(text)

    def killed(*_: object, **__: object) -> NoReturn:
        raise RuntimeError

    half = found(tmp_path)
    for name in ("commit", "derive"):  # before silver is replaced, and after it
        with monkeypatch.context() as patch:
            patch.setattr(delta if name == "commit" else reprocessing, name, killed)
            with pytest.raises(RuntimeError):
                again(tmp_path, spark, declared)
        assert found(tmp_path) == (half if name == "commit" else EXPECTED)
    after = run(tmp_path, gold=True, verify=True, declared=declared)
    assert (after.bronze, after.silver, after.remapped) == (before.bronze, before.silver, False)
    assert content(tmp_path, "silver", *GOLD) == content(rebuilt[0], "silver", *GOLD)
    again(tmp_path, spark, NOTHING)
    assert found(tmp_path) == text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--topic", "a/#/b"], "--topic: topic filter 'a/#/b' has a # that is not"),
        (["--from", "2025-11-22", "--to", "2025-11-21"], "--from 2025-11-22 is later than"),
        (["--tables", "/nowhere"], "there are no tables in /nowhere"),
    ],
)
def test_what_cannot_be_chosen(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reprocess", *arguments]) == 2
    assert error in capsys.readouterr().err
