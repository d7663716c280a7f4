"""A back test beside the evaluator run over the same messages by hand."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.mqtt.message import Message
from gateway.where.rule import compile_rule
from pipeline.backtest import result, run
from pipeline.backtest.fold import Row, Sums, TopicFold
from pipeline.cli import main
from pipeline.operation import maintain
from pipeline.settings import make_settings
from pipeline.tables.lease import held
from tests.support.disk.landing_files import (
    TIME,
    name_for,
    put,
    put_records,
    reading,
    record,
    text_of,
)
from tests.support.pipeline_tables import sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

RULE = "payload.value > 30 OR DEADBAND(payload.value, 0.5)"
VALUES = [20.0, 20.2, 20.4, 20.6, 20.7, 31.0, 31.1, 20.0, 20.1, 19.4]
SENT = [True, False, False, True, False, True, True, True, False, True]


def rows(values: list[float], step: int = 1000) -> list[Row]:
    return [
        Row(
            "barn",
            "sensors/n1/t",
            TIME + n * step,
            reading(value),
            1,
            False,
            None,
            None,
            None,
            None,
            value,
        )
        for n, value in enumerate(values)
    ]


def test_the_fold_decides_as_a_gateway_does() -> None:
    rule = compile_rule(RULE)
    expected = []
    for row in rows(VALUES):
        message = Message(row.topic, row.payload, 1, received_at=row.event_ms)
        truth = rule.evaluate(message)
        rule.record(message, truth)
        expected.append(truth is True)
    assert expected == SENT
    fold = TopicFold(RULE, None)
    assert [fold.decide(row) for row in rows(VALUES)] == SENT


def test_days_are_summed_and_the_memory_goes_on() -> None:
    twelve = 43_200_000
    found = list(TopicFold(RULE, "payload.value < 20").days(rows(VALUES, twelve)))
    assert [each.rows for each in found] == [1, 2, 2, 2, 2, 1]
    assert sum(each.sent for each in found) == sum(SENT)
    assert (sum(each.alarms for each in found), sum(each.missed for each in found)) == (1, 0)
    assert max(each.longest_silence_ms for each in found) == 3 * twelve
    assert max(each.largest_error or 0 for each in found) == pytest.approx(0.4)
    missed = list(TopicFold("payload.value > 99", "payload.value < 20").days(rows(VALUES)))
    assert (missed[0].missed, missed[0].sent, missed[0].largest_error) == (1, 0, None)


def test_a_rule_that_sends_nothing_has_the_worst_marks() -> None:
    nothing = list(TopicFold("payload.value > 99", None).days(rows(VALUES)))
    found = result.figures(nothing, 0.0)
    assert (found["unknown"], found["longest_silence_ms"]) == (10, 9_000)
    assert "largest error       no bound: 10 readings before any was sent" in result.as_text(
        "", found
    )
    late = list(TopicFold("payload.value > 30", None).days(rows(VALUES)))
    found = result.figures(late, 0.0)  # 31.0 is the first that is sent, the last but one 31.1
    assert (found["unknown"], found["longest_silence_ms"]) == (5, 5_000)
    assert found["largest_error"] == pytest.approx(31.1 - 19.4)
    assert late[0].worst_ms == TIME + 9_000, "the moment of the largest error"
    assert result.error_words(found) == "no bound: 5 readings before any was sent, else 11.7"
    wide = list(TopicFold("payload.value = 20", None).days(rows(VALUES)))
    assert wide[0].worst_ms == TIME + 6_000


def test_the_report_shows_the_worst_moment_and_not_the_first_readings() -> None:
    values = [20.0] * 3_000 + [29.0] + [20.0] * 3_000
    drawn = [row._replace(payload=b'{"value":1,"unit":"C"}') for row in rows(values)]
    (day,) = TopicFold("value = 20", None).days(rows(values[:1]))
    fold = TopicFold("EVERY(100000)", None)
    units = ["C"] * 2_500 + ["°F"] * 3_501
    found = run.around(zip(drawn, units, strict=True), fold, TIME + 3_000_000)
    points = found.points
    assert (len(points), found.unit, day.rows) == (run.SHOWN_POINTS, "C, °F", 1)
    assert points[1_000][:2] == (TIME + 3_000_000, 29.0)
    assert not any(sent for _, _, sent in points)
    assert found.held == 20.0, "what a reader has since the first reading, long before"
    pairs = [(row, None) for row in rows(values)]
    assert [len(run.around(pairs, fold, moment).points) for moment in (None, TIME)] == [2_000] * 2


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.spark
def test_a_whole_back_test(
    tmp_path: Path,
    run: "Run",
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries: list[object] = [
        record(n, reading(value), time=TIME + n * 1000) for n, value in enumerate(VALUES, 1)
    ]
    other = [record(1, reading(1), gateway_id="mill", time=TIME - 40 * 86_400_000)]
    put_records(tmp_path / "landing", [*other], gateway="mill")
    half = text_of(entries[:6])  # a file that was read while it was copied
    name = name_for(11)
    put(tmp_path / "landing", half, name)
    run(tmp_path)
    lying = record(13, reading(1), topic="sensors/n1/ahead", received=4_060_000_000_000)
    ahead = record(12, reading(20.0, time=4_060_000_000_000), topic="sensors/n1/ahead")
    put(tmp_path / "landing", text_of([*entries, record(3, reading(20.4), resent=True)]), name)
    put(tmp_path / "landing", text_of([ahead, lying]), name_for(2, 12))  # clocks of 2098
    run(tmp_path)
    assert sizes(tmp_path)[:2] == (20, 13)
    maintain.compact(make_settings(tmp_path / "landing", tmp_path / "tables"))
    monkeypatch.setattr("pipeline.operation.session.open_session", lambda settings: spark)
    page = tmp_path / "report.html"
    command = [
        "backtest",
        RULE,
        "--tables",
        str(tmp_path / "tables"),
        "--alarm",
        "payload.value > 30",
    ]
    assert main([*command, "--json", "--tariff", "2", "--last", "30d", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["sent"], found["alarms"], found["missed"]) == (12, 8, 2, 0)
    devices = {name: each["rows"] for name, each in found["by_device"].items()}
    assert devices == {"barn: sensors/n1/temperature": 10, "barn: sensors/n1/ahead": 2}
    assert 0 < found["bytes_sent"] < found["bytes_all"]
    assert found["cost_sent"] == pytest.approx(found["bytes_batched_sent"] * 2e-6, abs=1e-4)
    parsed = Page()
    parsed.feed(page.read_text())
    assert {"bytes", "curves"} <= {a.get("id") for tag, a in parsed.tags if tag == "div"}
    assert "largest error" in page.read_text()
    assert not {tag for tag, _ in parsed.tags} & {"link", "img", "iframe"}
    assert not [a for _, a in parsed.tags if "src" in a or "href" in a]
    with held(tmp_path / "tables"):  # as a run that is under way does
        assert main([*command]) == 0
    assert "would be sent       9 (69.2%)" in capsys.readouterr().out
    assert main([*command, "--gateway", "none"]) == 0


def test_what_cannot_be_tried_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "payload.value >"]) == 2
    assert "$where:" in capsys.readouterr().err
    assert main(["backtest", "TRUE", "--tables", str(tmp_path / "none")]) == 2
    assert "there are no tables" in capsys.readouterr().err
    page = result.as_page("<b>", None, result.figures([], 0.0), result.Worst())
    assert "<b>" not in page.split("<body>")[1]
    assert run.SCHEMA.names == list(Sums._fields)
