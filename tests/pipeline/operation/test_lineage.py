"""Runs that report to a server of OpenLineage, to none, and to one that does not answer."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

import tidegate_pipeline
from pipeline import cli
from pipeline.cli import main
from pipeline.errors import BusyError, PipelineError
from pipeline.place import place_of
from pipeline.settings import make_settings
from tests.support.disk.landing_files import put_records, record
from tests.support.pipeline_tables import table_rows
from tests.support.table import table

pytest.importorskip("openlineage", reason="pip install 'openlineage-python>=1.54,<2'")

from pipeline.operation import lineage  # the library is there only now
from pipeline.operation.lineage_events import dataset_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URI = {"type": "string", "pattern": "^[a-z]+:"}
TEXT = {"type": "string", "minLength": 1}
FACETS = {
    "additionalProperties": {
        "required": ["_producer", "_schemaURL"],
        "properties": {"_producer": URI, "_schemaURL": URI},
    }
}
NAMED = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": TEXT,
        "name": TEXT,
        "facets": FACETS,
        "inputFacets": FACETS,
        "outputFacets": FACETS,
    },
}
RUN_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": URI,
        "schemaURL": {"pattern": "RunEvent$"},
        "run": {
            "required": ["runId"],
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": FACETS},
        },
        "job": NAMED,
        "inputs": {"type": "array", "items": NAMED},
        "outputs": {"type": "array", "items": NAMED},
    },
}
"""What OpenLineage 2-0-2 asks of an event of a run: https://openlineage.io/apidocs/openapi."""


class Server:
    """A server of OpenLineage: it takes what is posted, and answers with a status."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.status = 201
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/api/v1/lineage"
                server.keys.append(self.headers["Authorization"])
                server.events.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )
                self.send_response(server.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    there = Server()
    yield there
    there.close()


def states(events: list[dict[str, Any]]) -> list[str]:
    """Return the states, of events that are as OpenLineage has them."""
    for event in events:
        jsonschema.validate(event, RUN_EVENT, format_checker=jsonschema.FormatChecker())
    return [event["eventType"] for event in events]


@pytest.mark.spark
def test_a_run_reports_what_it_read_and_wrote(
    tmp_path: Path, spark: "SparkSession", server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "plant")

    def run(first: int) -> None:
        put_records(tmp_path / "landing", [record(first), record(first + 1)], first=first)
        for _ in range(2):  # the second time nothing is new
            tidegate_pipeline.run(spark, tmp_path / "landing", tmp_path / "tables",
                                  openlineage=server.url)  # fmt: skip

    run(1)
    run(3)
    assert states(server.events) == ["START", "COMPLETE"] * 2
    assert set(server.keys) == {"Bearer secret"}
    assert len({event["run"]["runId"] for event in server.events}) == 2
    ended = server.events[-1]
    assert (ended["job"]["namespace"], ended["job"]["name"]) == (
        "plant",
        "tidegate-pipeline.tables",
    )
    assert ended["inputs"][0]["name"] == str(tmp_path / "landing")
    assert ended["inputs"][0]["inputFacets"]["inputStatistics"]["fileCount"] == 1
    outputs = {Path(each["name"]).name: each for each in ended["outputs"]}
    assert outputs["silver"]["name"] == str(tmp_path / "tables/silver")
    written = {name: each["outputFacets"]["outputStatistics"] for name, each in outputs.items()}
    assert {name: written[name]["rowCount"] for name in ("bronze", "silver", "runs")} == {
        "bronze": 2,
        "silver": 2,
        "runs": 1,
    }
    days = table_rows(tmp_path, "readings_1d")
    assert written["readings_1d"]["rowCount"] == len(days), "the day was made anew"
    assert all(each["size"] > 0 and each["fileCount"] > 0 for each in written.values())
    assert "quarantine" not in outputs, "nothing was written there"
    fields = {
        name: {field["name"]: field["type"] for field in each["facets"]["schema"]["fields"]}
        for name, each in outputs.items()
    }
    assert fields["bronze"]["seq"] == "long"
    assert fields["bronze"]["properties"] == "array<struct<name:string,value:string>>"
    assert fields["readings_1d"]["states"] == "map<string,long>"


@pytest.mark.spark
def test_a_run_that_cannot_be_done_reports_why(
    tmp_path: Path, spark: "SparkSession", server: Server
) -> None:
    put_records(tmp_path / "landing", [record(1)])
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/silver").touch()
    with pytest.raises(PipelineError, match="silver is a file"):
        tidegate_pipeline.run(
            spark, tmp_path / "landing", tmp_path / "tables", openlineage=server.url
        )
    assert states(server.events) == ["START", "FAIL"]
    assert "silver is a file" in server.events[1]["run"]["facets"]["errorMessage"]["message"]


@table(
    ("error", "ended"),
    [
        (KeyboardInterrupt(), ["START", "ABORT"]),
        (PipelineError("why"), ["START", "FAIL"]),
        (BusyError("another run"), []),
    ],
)
def test_how_a_run_ends(tmp_path: Path, error: BaseException, ended: list[str]) -> None:
    file = tmp_path / f"{type(error).__name__}.jsonl"
    settings = make_settings(tmp_path / "landing", tmp_path / "tables")
    with (
        pytest.raises(type(error)),
        lineage.Run(settings, lineage.Lineage(str(file))),
    ):
        raise error
    lines = file.read_text().splitlines() if file.exists() else []
    assert states(list(map(json.loads, lines))) == ended


def reported(target: lineage.Lineage, data: Path, runs: int = 1) -> float:
    """Let runs report that do nothing; returns the seconds that takes."""
    begun = time.monotonic()
    for _ in range(runs):
        with lineage.Run(make_settings(data / "landing", data / "tables"), target) as run:
            run.watched(lambda *_: None)("landing files", 0, 1)
    return time.monotonic() - begun


def test_a_server_that_is_away_is_reported_once(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    target = lineage.Lineage(server.url)
    server.status = 503
    reported(target, tmp_path, 2)
    said = capsys.readouterr().err
    assert said.count("tidegate-pipeline: cannot report to http://127.0.0.1:") == 1
    assert "503 Server Error" in said
    server.status = 201
    reported(target, tmp_path)
    assert capsys.readouterr().err == ""
    server.close()
    reported(target, tmp_path, 2)
    assert capsys.readouterr().err.count("Connection refused; runs continue without it") == 1


def test_a_server_that_never_answers_holds_a_run_up_for_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = lineage.Lineage(f"http://127.0.0.1:{silent.getsockname()[1]}")
        reported(target, tmp_path, 3)
    assert capsys.readouterr().err.count("tidegate-pipeline: cannot report to ") == 1


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reported(lineage.Lineage(str(tmp_path / "missing/events.jsonl")), tmp_path)
    assert "events.jsonl" in capsys.readouterr().err


@table(
    ("place", "name"),
    [
        ("/srv/landing", ("file", "/srv/landing")),
        ("s3://fleet/a/b", ("s3://fleet", "a/b")),
        ("gs://fleet", ("gs://fleet", "/")),
        ("abfss://c@acc.dfs.core.windows.net/a", ("abfss://c@acc.dfs.core.windows.net", "a")),
    ],
)
def test_names_of_places(place: str, name: tuple[str, str]) -> None:
    assert dataset_name(place_of(place)) == name


def test_it_is_an_option_of_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text('openlineage = "http://lineage.example:5000"\n')
    for command in ("once", "run"):
        options = cli._options([command, "--config", str(file)])
        assert options.openlineage == "http://lineage.example:5000"
    landing = ["--landing", str(tmp_path), "--tables", str(tmp_path / "tables")]
    assert main(["once", *landing, "--openlineage", "kafka://broker/topic"]) == 2
    assert "--openlineage kafka://broker/topic is neither" in capsys.readouterr().err
