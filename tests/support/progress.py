"""How far a run is and how long it takes, in lines such as `34 % · 3 min of about 9`."""

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TextIO

import pytest

Status = tuple[str, str, str | tuple[str, Mapping[str, bool]]]

STEP = 5
"""Per cent between two lines in a log; a terminal is shown each, in one line."""

FIRST = 0.1
"""The share of a run for which the first estimate counts as much as what has been measured."""

SHORTEST = 30.0
"""What is estimated at least, in seconds."""


class Estimate:
    """How long a run takes, by the processor seconds that its tests usually take."""

    def __init__(self, usual: float, processors: int) -> None:
        self._usual = usual
        self._done = 0.0
        self._processors = processors

    def add(self, usual: float) -> None:
        """Count a test that has ended."""
        self._done += usual

    @property
    def percent(self) -> int:
        """Return how far the run is."""
        return int(100 * self._done / self._usual + 1e-6) if self._usual else 100

    def whole(self, elapsed: float) -> float:
        """Return the seconds of the whole run, after so many."""
        first = FIRST * self._usual
        pace = (elapsed + first / self._processors) / (self._done + first or 1.0)
        return max(SHORTEST, elapsed + pace * (self._usual - self._done))


class Progress:
    """A pytest plugin that writes this where pytest writes a letter for each test."""

    def __init__(
        self,
        usual: Callable[[pytest.Item], float],
        output: TextIO,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._usual = usual
        self._output = output
        self._now = now
        self._began = now()
        self._seconds: dict[str, float] = {}
        self._estimate = Estimate(0.0, 1)
        self._shown = 0

    def pytest_collection(self) -> None:
        self._write("collecting the tests", "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.expect(session.items)

    def expect(self, items: Sequence[pytest.Item]) -> None:
        """Begin a run of these tests."""
        self._seconds = {item.nodeid: self._usual(item) for item in items}
        self._estimate = Estimate(sum(self._seconds.values()), os.cpu_count() or 1)
        self._began = self._now()
        about = _minutes(self._estimate.whole(0.0))
        self._write(f"{len(items):,} tests, about {about} min on a machine of its own", "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> Generator[None, Status, Status]:
        category, _, word = yield
        return category, "", word if report.failed else ""  # which the summary begins with

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(f"FAILED {report.nodeid}", "\n")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._estimate.add(self._seconds.get(nodeid, 0.0))
        terminal = self._output.isatty()
        percent = self._estimate.percent
        step = 1 if terminal else min(STEP, 100 - self._shown)  # the end is always a line
        if percent >= self._shown + step and self._shown < 100:
            self._shown = percent
            elapsed = self._now() - self._began
            about = _minutes(self._estimate.whole(elapsed))
            text = f"{percent} % · {_minutes(elapsed)} min of about {about}"
            self._write(text, "\n" if percent == 100 or not terminal else "")

    def _write(self, text: str, end: str) -> None:
        beginning = "\r\x1b[K" if self._output.isatty() else ""
        self._output.write(beginning + text + end)
        self._output.flush()


def _minutes(seconds: float) -> str:
    """Return minutes, with a half where there are few."""
    halves = round(seconds / 30)
    return f"{halves / 2:g}" if halves < 10 else str(round(seconds / 60))
