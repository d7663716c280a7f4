import argparse
from pathlib import Path

import pytest

from pipeline import cli
from pipeline.cli import main
from pipeline.errors import PipelineError
from tests.support.table import table

FILE = """
landing = "/srv/landing"
tables = "/srv/tables"
master = "local[4]"
java_cache = "none"

[run]
every = 30
no_gold = true
batch_files = 500

[compact]
keep = "400d"

[collect]
broker = "mqtt://fleet.example"
rows = 1000

[spark]
driver.memory = "8g"
"spark.sql.shuffle.partitions" = 64
speculation = true
"""


def options(*arguments: str) -> argparse.Namespace:
    return cli._options(arguments)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "pipeline.toml"
    file.write_text(text)
    return str(file)


def test_the_file_says_what_the_command_line_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, FILE)
    run = options("run", "--config", file, "--tables", "here")
    assert (run.landing.folder, run.tables.folder) == (Path("/srv/landing"), Path.cwd() / "here")
    assert (run.every, run.no_gold, run.batch_files, run.master) == (30.0, True, 500, "local[4]")
    assert run.java_cache is None
    assert run.spark == {
        "spark.driver.memory": "8g",
        "spark.sql.shuffle.partitions": "64",
        "spark.speculation": "true",
    }
    monkeypatch.setenv("TIDEGATE_PIPELINE_CONFIG", file)
    assert options("compact").keep == 400
    assert (options("collect").broker, options("collect").rows) == ("mqtt://fleet.example", 1000)
    assert options("once").no_gold is False
    assert str(options("once", "--landing", "s3://fleet/a/").landing) == "s3://fleet/a"
    monkeypatch.delenv("TIDEGATE_PIPELINE_CONFIG")
    assert options("--config", file, "ledger").tables.folder == Path("/srv/tables")
    assert options("run").spark == {}


MISTAKES = [
    ("landing = ", "is not TOML: Invalid value (at "),
    ("landings = 'x'", "landings is not known: did you mean landing?"),
    ("landing = 3", "landing is 3, but a text is needed"),
    ("landing = 'ftp://fleet/a'", "landing: ftp://fleet/a is not s3://BUCKET/…, gs://BUCKET/…"),
    ("[runs]", "runs is not known: did you mean run?"),
    ("[qqqq]", "qqqq is not known; known are assets, backtest, catalog, change_feed, collect, "),
    ("[run]\nevry = 3", "run.evry is not known: did you mean every?"),
    ("[run]\nevery = '3'", "run.every is '3', but a number is needed"),
    ("[run]\nbatch_files = 1.5", "run.batch_files is 1.5, but a whole number is needed"),
    ("[run]\nbatch_files = true", "run.batch_files is 'true', but a whole number is needed"),
    ("[run]\nno_gold = 'yes'", "run.no_gold is 'yes', but true or false is needed"),
    ("run = 3", "run is 3, but a table is needed"),
    ("[compact]\nkeep = '400'", "compact.keep: '400' is not a number of days such as 400d"),
    ("[spark]\na.b = []", "spark.a.b is [], but a text, a number, true or false is needed"),
]


@table("text, said", MISTAKES)
def test_a_mistake_is_told_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(PipelineError) as raised:
        options("status", "--config", file)
    assert str(raised.value).startswith(f"{file}")
    assert said in str(raised.value)


def test_the_example_is_one_of_this_version() -> None:
    file = Path(__file__).parents[2] / "examples" / "pipeline" / "pipeline.toml"
    assert options("run", "--config", str(file)).metrics == Path("/srv/tidegate/pipeline.prom")


def test_a_file_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: No such file or directory" in capsys.readouterr().err
