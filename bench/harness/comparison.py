"""The command line that benchmarks share which measure scenarios beside Mosquitto."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import builds
from bench.harness.machine import describe
from bench.harness.markdown import README, replace_section
from bench.harness.report import VERSIONS, report
from bench.harness.results import Results
from bench.harness.rounds import measure_rounds
from bench.harness.scenario import Scenario
from bench.harness.selection import BROKERS, USUAL, found, labelled_tree, words


def versions(text: str) -> list[int]:
    """Return the protocol versions between the commas."""
    return [int(word) for word in words(text)]


@dataclass(frozen=True)
class Comparison:
    """A benchmark: the module's name, which its section and its file have too, and scenarios."""

    name: str
    description: str | None
    scenarios: Mapping[str, Scenario]
    word: str = "scenarios"
    """What the command line calls them."""

    @property
    def file(self) -> Path:
        """Where what was measured is kept."""
        return builds.BUILD / f"{self.name}.json"

    def usual(self) -> list[str]:
        """Return the scenarios that are measured unless others are asked for."""
        return [name for name, scenario in self.scenarios.items() if not scenario.big]

    def named(self, text: str) -> list[str]:
        """Return the scenarios between the commas; a capital letter stands for all it begins."""
        chosen = []
        for word in words(text):
            letter = word.isupper() and word not in self.scenarios
            matching = [name for name in self.scenarios if letter and name.startswith(word)]
            chosen += matching or [word]
        return chosen

    def parser(self) -> argparse.ArgumentParser:
        """Return the command line."""
        parsed = argparse.ArgumentParser(
            prog=f"python -m bench.{self.name}",
            description=self.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add = parsed.add_argument
        add("--rounds", type=int, default=3)
        add("--seconds", type=float, default=2.5, help="publishing, in a round")
        add(f"--{self.word}", dest="scenarios", type=self.named, metavar="A,B")
        add("--mqtt", type=versions, default=[4, 5], metavar="4,5")
        add("--only", type=words, default=words(USUAL), help=", ".join(BROKERS))
        add("--tidegate", metavar="COMMAND", help="with {port} and {dir} in it")
        add("--tree", type=labelled_tree, action="append", default=[], metavar="LABEL=FOLDER")
        add("--write", action="store_true", help="the tables into bench/README.md")
        add("--add", action="store_true", help="to what the last run measured")
        add("--list", action="store_true", help=f"the {self.word}, and end")
        return parsed

    def command(self, options: argparse.Namespace) -> str:
        """Return the command line that measures the same, defaults written out."""
        words = [f"--rounds {options.rounds} --seconds {options.seconds:g}"]
        words += [f"--mqtt {','.join(map(str, options.mqtt))} --only {','.join(options.only)}"]
        if options.scenarios != self.usual():
            words += [f"--{self.word} {','.join(options.scenarios)}"]
        words += [f"--tree {label}={root.name}" for label, root in options.tree]
        return " ".join([f".venv/bin/python -m bench.{self.name}", *words])

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure, print the tables, and write them where that was asked for."""
        options = self.parser().parse_args(arguments)
        options.scenarios = self.usual() if options.scenarios is None else options.scenarios
        self._check(options)
        if options.list:
            for name, scenario in self.scenarios.items():
                print(f"{name:17} {scenario.text}")
            return 0
        self._measure(options)
        return 0

    def _check(self, options: argparse.Namespace) -> None:
        unknown = [name for name in options.scenarios if name not in self.scenarios]
        unknown += [name for name in options.only if name not in BROKERS]
        unknown += [str(version) for version in options.mqtt if version not in VERSIONS]
        if unknown:
            self.parser().error(f"unknown: {', '.join(unknown)}")

    def _measure(self, options: argparse.Namespace) -> None:
        brokers = found(options.only, options.tidegate, dict(options.tree))
        results = Results.load(self.file) if options.add else Results()
        results.commands += [self.command(options)] if options.scenarios else []
        for name in options.scenarios:
            scenario = self.scenarios[name]
            measure_rounds(
                results, name, scenario, options.mqtt, brokers, options.rounds, options.seconds
            )
            results.save(self.file)
        tables = report(results, [broker.name for broker in brokers], self.scenarios)
        print(f"\n{tables}\n")
        if options.write:
            commands = "\n".join(f"    {line}" for line in results.commands)
            text = f"\n{commands}\n\n{describe(dict(options.tree))}\n\n{tables}\n"
            replace_section(README, self.name, text)
