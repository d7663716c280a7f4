"""How much does a message, a connection, a subscription cost, beside Mosquitto in the same run?

    .venv/bin/python -m bench.side_by_side [--rounds N] [--scenarios qos0,offline] [--mqtt 4,5]
        [--only mosquitto,tidegate] [--tidegate "command"] [--seconds S] [--write] [--add]

Each broker is started anew for each measurement and pinned to one core, the load generator to
another. Rounds are interleaved, and tables have medians, and ratios to Mosquitto in bold.
"""

import argparse

from bench.harness import builds
from bench.harness.machine import describe
from bench.harness.markdown import README, replace_section
from bench.harness.selection import BROKERS, USUAL, found, words
from bench.side_by_side.report import VERSIONS, report
from bench.side_by_side.results import Results
from bench.side_by_side.rounds import measure_rounds
from bench.side_by_side.scenarios import SCENARIOS

FILE = builds.BUILD / "side_by_side.json"
USUAL_SCENARIOS = [name for name, scenario in SCENARIOS.items() if not scenario.big]


def versions(text: str) -> list[int]:
    """Return the protocol versions between the commas."""
    return [int(word) for word in words(text)]


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parsed = argparse.ArgumentParser(prog="python -m bench.side_by_side", description=__doc__)
    parsed.formatter_class = argparse.RawDescriptionHelpFormatter
    parsed.add_argument("--rounds", type=int, default=3)
    parsed.add_argument("--seconds", type=float, default=2.5, help="publishing, in a round")
    parsed.add_argument("--scenarios", type=words, default=USUAL_SCENARIOS, metavar="A,B")
    parsed.add_argument("--mqtt", type=versions, default=[4, 5], metavar="4,5")
    parsed.add_argument("--only", type=words, default=words(USUAL), help=", ".join(BROKERS))
    parsed.add_argument("--tidegate", metavar="COMMAND", help="with {port} and {dir} in it")
    parsed.add_argument("--write", action="store_true", help="the tables into bench/README.md")
    parsed.add_argument("--add", action="store_true", help="to what the last run measured")
    parsed.add_argument("--list", action="store_true", help="the scenarios, and end")
    return parsed


def command(options: argparse.Namespace) -> str:
    """Return the command line that measures the same, defaults written out."""
    words = [f"--rounds {options.rounds} --seconds {options.seconds:g}"]
    words += [f"--mqtt {','.join(map(str, options.mqtt))} --only {','.join(options.only)}"]
    if options.scenarios != USUAL_SCENARIOS:
        words += [f"--scenarios {','.join(options.scenarios)}"]
    return " ".join([".venv/bin/python -m bench.side_by_side", *words])


def main() -> int:
    """Measure, print the tables, and write them where that was asked for."""
    options = parser().parse_args()
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    unknown += [name for name in options.only if name not in BROKERS]
    unknown += [str(version) for version in options.mqtt if version not in VERSIONS]
    if unknown:
        parser().error(f"unknown: {', '.join(unknown)}")
    if options.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:17} {scenario.text}")
        return 0
    brokers = found(options.only, options.tidegate)
    results = Results.load(FILE) if options.add else Results()
    results.commands += [command(options)] if options.scenarios else []
    for scenario in options.scenarios:
        measure_rounds(results, scenario, options.mqtt, brokers, options.rounds, options.seconds)
        results.save(FILE)
    tables = report(results, [broker.name for broker in brokers])
    print(f"\n{tables}\n")
    if options.write:
        commands = "\n".join(f"    {line}" for line in results.commands)
        replace_section(README, "side_by_side", f"\n{commands}\n\n{describe()}\n\n{tables}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
