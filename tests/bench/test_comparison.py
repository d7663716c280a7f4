from pathlib import Path

import pytest

from bench.harness.brokers import Broker, Keeping
from bench.harness.comparison import Comparison
from bench.harness.figures import Figures
from bench.harness.results import Results
from bench.harness.rounds import measure_rounds
from bench.harness.scenario import Scenario, Settings


def measure(broker: Broker, settings: Settings) -> Figures:
    return {"cpu_us": float(settings.version)}


def command(port: int, folder: Path, keeping: Keeping) -> list[str]:
    return []


SCENARIOS = {
    "E0": Scenario("at most once", measure),
    "E1": Scenario("at least once", measure),
    "F": Scenario("big", measure, big=True),
    "few": Scenario("only one", measure, versions=(5,), own=True),
}
COMPARISON = Comparison("kinds", "What?", SCENARIOS, "kinds")


@pytest.mark.parametrize(
    ("text", "names"),
    [("F,E", ["F", "E0", "E1"]), ("E1", ["E1"]), ("few", ["few"]), ("f,X", ["f", "X"])],
)
def test_a_letter_stands_for_all_that_begin_with_it(text: str, names: list[str]) -> None:
    assert COMPARISON.named(text) == names


def test_what_is_not_known_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        COMPARISON.main(["--kinds", "E,X", "--only", "mosquito", "--mqtt", "3"])
    assert "unknown: X, mosquito, 3" in capsys.readouterr().err


def test_the_command_says_what_is_not_usual(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    words = ["--only", "tidegate", "--kinds", "E0", "--tree", f"before={tmp_path}"]
    options = COMPARISON.parser().parse_args([*words, "--rounds", "2"])
    assert COMPARISON.command(options) == (
        ".venv/bin/python -m bench.kinds --rounds 2 --seconds 2.5 --mqtt 4,5 --only tidegate "
        f"--kinds E0 --tree before={tmp_path.name}"
    )


def test_what_only_tidegate_has_is_not_measured_of_others() -> None:
    results = Results()
    brokers = [Broker("mosquitto", command), Broker("tidegate", command, own=True)]
    for name in ("E0", "few"):
        measure_rounds(results, name, SCENARIOS[name], [4, 5], brokers, 1, 1.0)
    assert list(results.rounds) == [
        ("E0", 4, "mosquitto"),
        ("E0", 4, "tidegate"),
        ("E0", 5, "mosquitto"),
        ("E0", 5, "tidegate"),
        ("few", 5, "tidegate"),
    ]
