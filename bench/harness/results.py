"""What was measured, round by round, in a file that later runs can add to."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.harness.figures import CHECKS, Figures

Key = tuple[str, int, str]
"""Scenario, protocol version, broker."""


@dataclass
class Results:
    """The rounds of each key, why a measurement failed, and the commands that measured."""

    rounds: dict[Key, list[Figures]] = field(default_factory=dict)
    failures: dict[Key, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def add(self, key: Key, figures: Figures) -> None:
        """Take one round."""
        self.rounds.setdefault(key, []).append(figures)

    def forget(self, key: Key) -> None:
        """Make room for a new measurement of the key."""
        self.rounds.pop(key, None)
        self.failures.pop(key, None)

    def values(self, key: Key, name: str) -> list[float]:
        """Return the figure in each round that has it."""
        return [figures[name] for figures in self.rounds.get(key, []) if name in figures]

    def median(self, key: Key, name: str) -> float | None:
        """Return the figure's median over the rounds; None without one."""
        values = self.values(key, name)
        return median(values) if values else None

    def checks(self, key: Key) -> Figures:
        """Return how much was followed over all rounds, and what was wrong."""
        return {name: sum(self.values(key, name)) for name in CHECKS}

    def save(self, file: Path) -> None:
        """Write everything."""
        listed = [[*key, figures] for key, figures in self.rounds.items()]
        failed = [[*key, text] for key, text in self.failures.items()]
        file.parent.mkdir(parents=True, exist_ok=True)
        saved = {"commands": self.commands, "rounds": listed, "failures": failed}
        file.write_text(json.dumps(saved, indent=1))

    @classmethod
    def load(cls, file: Path) -> "Results":
        """Return what was saved; nothing when there is no such file."""
        if not file.exists():
            return cls()
        saved = json.loads(file.read_text())
        return cls(
            {(scenario, version, broker): r for scenario, version, broker, r in saved["rounds"]},
            {(scenario, version, broker): t for scenario, version, broker, t in saved["failures"]},
            saved["commands"],
        )
