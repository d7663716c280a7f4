"""The examples for Prometheus and Grafana: their names are metrics, and promtool takes them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from gateway.telemetry.certificates import NOT_AFTER
from gateway.telemetry.metrics import ALARM, FIGURES, INFO, RULE, exposition
from gateway.telemetry.process_metrics import process_metrics
from tests.support.broker.sys_topics import documented
from tests.support.requirements import PROMTOOL

FOLDER = Path(__file__).parents[2] / "examples/observe"
NAME = re.compile(r"\b(?:tidegate|process)_\w+")
KNOWN = {figure.metric for figure in (*FIGURES, INFO, NOT_AFTER, ALARM, RULE)} | set(
    re.findall(r"^# TYPE (\w+)", process_metrics(), re.MULTILINE)
)


@pytest.mark.parametrize("file", ["alerts.yml", "alerts_test.yml", "grafana.json"])
def test_names_are_metrics(file: str) -> None:
    named = set(NAME.findall((FOLDER / file).read_text()))
    assert len(named) >= 5
    assert named <= KNOWN


def test_the_dashboard_asks_prometheus() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    panels = dashboard["panels"]
    assert len(panels) == len({panel["id"] for panel in panels}) > 8
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            assert 'instance=~"$instance"' in target["expr"]


def promtool(*arguments: str, text: str | None = None) -> None:
    done = subprocess.run(
        [str(PROMTOOL), *arguments],
        cwd=FOLDER,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not text or not done.stdout + done.stderr


@pytest.mark.promtool
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_takes_the_examples(arguments: tuple[str, ...]) -> None:
    promtool(*arguments)


@pytest.mark.promtool
def test_promtool_takes_every_name() -> None:
    values = {re.sub("[<>]", "", name): 1 for name in documented()}
    text = exposition(values) + process_metrics()
    assert text.count("# TYPE") > 150
    promtool("check", "metrics", text=text)
