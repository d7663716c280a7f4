"""How tests share the machine: which are kept together, run once more, or run without coverage.

xdist gives each test to the next worker that is free. Its own groups do not hold with pytest 9.2,
so that those of TOGETHER are made here.
"""

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any
from zlib import crc32

import pytest
from coverage import Coverage
from xdist.scheduler import LoadFileScheduling

DETERMINISTIC = ("mqtt", "session", "routing", "broker", "conformance")
"""Folders whose tests ask no clock and nobody else: one that fails there is a defect at once."""

TIMED = ("tests/conformance/scenarios/test_time.py", "tests/conformance/test_settings.py")
"""Those of them that wait for a gateway's clock."""

UNMEASURED = frozenset(
    (
        "bench",
        "conformance",
        "contract",
        "crash",
        "end_to_end",
        "firmware",
        "fuzz",
        "judge",
        "systemd",
    )
)
"""Folders whose tests look at programs as a whole, and reach no line that no other test does. To
measure coverage takes more than half of the time of what is measured."""

TOGETHER = (
    "tests/pipeline/",  # one Java for all of them
    "tests/conformance/scenarios/test_time.py",  # its scenarios wait at the same time
    "tests/systemd/test_booted.py",  # one system is booted
    "tests/test_setup.py",  # one source distribution is built
)
"""What the path of tests begins with that have one worker, one after the other, since they share
what takes long to make or would disturb each other."""

MOST_REPEATED = 3
"""Tests that may pass in a second run: a machine that is busy upsets few of them at a time."""

IMPORTING = "gw0"
"""The worker that measures while modules are imported: in the others they do the same."""

PROCESS_COVERAGE = "COVERAGE_PROCESS_CONFIG"
"""What coverage tells the processes of its `subprocess` patch by."""


class SideBySide:
    """A pytest plugin for all of that; TIDEGATE_TESTS=strict allows no second run."""

    def __init__(self, config: pytest.Config) -> None:
        self._strict = os.environ.get("TIDEGATE_TESTS") == "strict"
        self._worker = hasattr(config, "workerinput")
        self._repeated: dict[str, None] = {}
        self._process_coverage = os.environ.get(PROCESS_COVERAGE, "")
        self._coverage = Coverage.current() if self._process_coverage else None
        self._measuring = True
        if self._strict and hasattr(config.option, "reruns"):
            config.option.reruns = 0
        if self._worker and os.environ.get("PYTEST_XDIST_WORKER") != IMPORTING:
            self._measure(False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadFileScheduling:
        return Scheduler(config, log)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_deterministic(item):
                item.add_marker(pytest.mark.flaky(reruns=0))
        if self._worker:
            items.sort(key=_turn)

    def pytest_collection_finish(self) -> None:
        """Spare the garbage collector what stays to the end: it looked at all of it again."""
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measure(is_measured(item))
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        return _sendable((yield))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if outcome == "rerun":  # what rerunfailures adds to pytest's
            self._repeated[report.nodeid] = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        gc.unfreeze()  # libraries complain at exit of what cannot be freed
        if self._worker:
            self._save()
        if len(self._repeated) > MOST_REPEATED and not self._worker:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self._repeated:
            terminalreporter.write_line(f"FAILED ONCE, RUN ONCE MORE: {name}")
        if len(self._repeated) > MOST_REPEATED:
            terminalreporter.write_line(
                f"{len(self._repeated)} tests had a second run, and no more than {MOST_REPEATED}"
                " are put down to a busy machine"
            )

    def _measure(self, wanted: bool) -> None:
        """Go on with coverage, or pause it, here and in the processes of tests."""
        if self._coverage is None or wanted == self._measuring:
            return
        self._measuring = wanted
        if wanted:
            os.environ[PROCESS_COVERAGE] = self._process_coverage
            self._coverage.start()
        else:
            self._coverage.stop()
            del os.environ[PROCESS_COVERAGE]

    def _save(self) -> None:
        """Write what was measured: a worker is not left the time to do so at its end."""
        if self._coverage is not None:
            self._measure(False)
            self._coverage.save()


class Scheduler(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives the tests of TOGETHER to one worker, and any other by itself."""

    def _split_scope(self, nodeid: str) -> str:
        return next((path for path in TOGETHER if nodeid.startswith(path)), nodeid)


def _turn(item: pytest.Item) -> tuple[bool, int]:
    """Return what orders tests: nothing long is left for the end, and folders are mixed.

    So tests that wait run beside others that compute.
    """
    file = item.nodeid.partition("::")[0]
    return item.get_closest_marker("slow") is None, crc32(file.encode())


def _sendable(value: Any) -> Any:
    """Return a report's data with escapes for what no text may hold, such as half a character."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(each) for each in value]
    return value


def is_deterministic(item: pytest.Item) -> bool:
    """Return whether a test that fails does so for a reason of its own."""
    return _folder(item) in DETERMINISTIC and not item.nodeid.startswith(TIMED)


def is_measured(item: pytest.Item) -> bool:
    """Return whether the lines that a test reaches count."""
    return _folder(item) not in UNMEASURED and item.get_closest_marker("uncovered") is None


def _folder(item: pytest.Item) -> str:
    return item.nodeid.split("/")[1] if item.nodeid.count("/") > 1 else ""
