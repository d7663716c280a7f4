"""Rules that are proposed keep the error that was asked for, and a gateway takes them."""

import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.cli.main import main as tidegate
from gateway.mqtt.message import Message
from gateway.where.rule import compile_rule
from pipeline.backtest.suggest import NO_COMMAND
from pipeline.cli import main
from tests.support.disk.landing_files import TIME, put_records, reading, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

DOOR = 'sensors/n1/do"or \x1b[2J\U0001f6aa\x7f'


@pytest.mark.spark
def test_the_rules_keep_the_bound(
    tmp_path: Path,
    run: "Run",
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries: list[object] = [
        record(n, reading(round(20 + 5 * math.sin(n / 30), 3)), time=TIME + n * 1000)
        for n in range(1, 301)
    ]
    entries += [
        record(n, reading("open" if n % 50 < 25 else "closed"), topic=DOOR, time=TIME + n)
        for n in range(301, 401)
    ]
    unfit = enumerate(("a+b", "#", "a\0b", "power/set", "command/answer"), 401)
    entries += [record(n, reading(1), topic=f"sensors/n1/{name}") for n, name in unfit]
    entries += [
        record(n, reading(n), topic=f"sensors/n1/{name}", time=TIME + n)
        for n, name in enumerate(("power", "power/a", "power/b"), 406)
    ]
    put_records(tmp_path / "landing", entries)
    run(tmp_path)
    monkeypatch.setattr("pipeline.operation.session.open_session", lambda settings: spark)
    command = ["suggest", "--tables", str(tmp_path / "tables"), "--error"]
    assert main([*command, "0.5", "--json"]) == 0
    door, power, temperature = json.loads(capsys.readouterr().out)
    assert temperature["rule"] == "DEADBAND(payload.value, 0.5) OR EVERY(3600)"
    assert 0 < temperature["found"]["largest_error"] < 0.5
    assert (power["topic"], power["found"]["rows"]) == ("sensors/+/power/#", 3)
    assert power["rule"] == f"{NO_COMMAND} AND (DEADBAND(payload.value, 0.5) OR EVERY(3600))"
    rule = compile_rule(power["rule"])
    sent = ("power", "power/a", "power/set", "power/answer")
    passed = [
        name
        for name in sent
        if rule.evaluate(Message(f"sensors/n1/{name}", b'{"value":1}')) is True
    ]
    assert passed == ["power", "power/a"]
    assert temperature["topic"] == "sensors/+/temperature"
    assert temperature["found"]["sent"] < 0.3 * temperature["found"]["rows"]
    assert (door["rule"], door["found"]["sent"]) == ("CHANGED(payload.value) OR EVERY(3600)", 5)
    assert main([*command, "2%", "--heartbeat", "60"]) == 0
    rules = capsys.readouterr().out
    assert tomllib.loads(rules)["uplink"]["rule"][0]["topic"] == DOOR.replace("n1", "+")
    assert rules.count("[[uplink.rule]]") == 3
    assert "\x1b" not in rules
    config = tmp_path / "gateway.toml"
    config.write_text(f'[uplink]\nurl = "mqtt://fleet.example:1883"\n\n{rules}')
    assert tidegate(["check", str(config)]) == 0
    for wrong in ("0", "x", "-1", "nan", "%"):
        assert main([*command, wrong]) == 2
