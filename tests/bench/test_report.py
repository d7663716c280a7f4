from pathlib import Path

from bench.harness.figures import METRICS
from bench.harness.report import report
from bench.harness.results import Results
from bench.side_by_side.scenarios import SCENARIOS


def results() -> Results:
    made = Results(commands=["python -m bench.side_by_side"])
    for cpu, lost in ((8.0, 0), (10.0, 0), (12.0, 5)):
        made.add(("qos0", 4, "mosquitto"), {"cpu_us": cpu, "checked": 1_000, "lost": lost})
    for cpu in (1.0, 1.5, 1.25):
        made.add(("qos0", 4, "tidegate"), {"cpu_us": cpu, "checked": 1_000, "lost": 0})
    made.failures["qos0", 4, "compiled"] = "no compiler"
    return made


def test_a_line_has_medians_extremes_the_ratio_and_what_was_wrong() -> None:
    line = report(results(), ["mosquitto", "tidegate", "compiled"], SCENARIOS).splitlines()[-1]
    assert line == (
        "| `qos0` | CPU, µs a message | 10.00 [8.00 to 12.00], 5 lost "
        "| 1.25 [1.00 to 1.50] **0.125** | no compiler | 6,000 |"
    )


def test_without_the_reference_there_are_no_ratios() -> None:
    made = results()
    made.forget(("qos0", 4, "mosquitto"))
    assert "**" not in report(made, ["tidegate"], SCENARIOS)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "results.json"
    results().save(file)
    assert Results.load(file) == results()
    assert Results.load(tmp_path / "none") == Results()


def test_a_key_is_forgotten_with_its_rounds_and_failures() -> None:
    made = results()
    made.forget(("qos0", 4, "mosquitto"))
    made.forget(("qos0", 4, "compiled"))
    assert list(made.rounds) == [("qos0", 4, "tidegate")]
    assert not made.failures


def test_every_scenario_shows_figures_that_have_a_form() -> None:
    assert all(name in METRICS for scenario in SCENARIOS.values() for name in scenario.shown)
