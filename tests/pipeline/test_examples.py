"""The examples beside what they are made of."""

import ast
import json
import re
from pathlib import Path

from pipeline import cli
from pipeline.ledger.completeness import OUTCOMES
from pipeline.operation import status
from pipeline.records.declarations import read_declared
from pipeline.settings import make_settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipeline"


def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path) -> None:
    figures = status.read_status(make_settings(tmp_path / "landing", tmp_path / "tables"))
    figures["lag_seconds"] = 1.0
    figures["last_run"] = {"started": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "error": None}
    reported = set(re.findall(r"^# TYPE (\w+)", status.as_prometheus(figures), re.MULTILINE))
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text())
    asked = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for query in asked:
        assert set(re.findall(r"tidegate_pipeline_\w+", query)) <= reported, query
    for outcomes in re.findall(r'outcome=~"([^"]*)"', "".join(asked)):
        assert set(outcomes.split("|")) <= set(OUTCOMES)


def test_airflow_s_commands_are_ours() -> None:
    tree = ast.parse((EXAMPLES / "airflow_dag.py").read_text())
    lines = [
        keyword.value.value
        for keyword in ast.walk(tree)
        if isinstance(keyword, ast.keyword)
        and keyword.arg == "bash_command"
        and isinstance(keyword.value, ast.Constant)
    ]
    assert len(lines) == 3
    for line in lines:
        for command in str(line).split(" && "):
            program, *arguments = command.split()
            assert program == "tidegate-pipeline"
            assert cli._options(arguments).command == arguments[0]


def test_declared_readings_can_be_read() -> None:
    zigbee, chirpstack, own = read_declared(EXAMPLES / "readings.toml").mapping
    assert (zigbee.preset, chirpstack.preset, own.time) == ("zigbee2mqtt", "chirpstack", "at")
