"""How tests share the machine: which are kept together, run once more, or run without coverage."""

import gc
import os
from collections.abc import Iterator

import pytest
from coverage import Coverage

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
        "hostile",
        "judge",
        "systemd",
        "",  # what lies in no folder looks at files
    )
)
"""Folders whose tests look at programs as a whole, and reach no line that no other test does. To
measure coverage takes more than half of the time of what is measured."""

TOGETHER = (
    "tests/conformance/scenarios/test_time.py",  # its scenarios wait at the same time
    "tests/systemd/test_booted.py",  # one system is booted
    "tests/packaging/test_release_files.py",  # another one
    "tests/test_setup.py",  # one source distribution is built
)
"""What the path of tests begins with that have one worker, one after the other, since they share
what takes long to make or would disturb each other. So do those that run Spark, with one Java."""

SECONDS = {
    "": 0.2,
    "app": 0.12,
    "bench": 0.2,
    "bridges": 0.04,
    "broker": 0.04,
    "cli": 0.2,
    "config": 0.03,
    "conformance": 0.02,
    "contract": 0.12,
    "crash": 1.0,
    "crashtest": 0.5,
    "end_to_end": 1.3,
    "firmware": 0.1,
    "flashing": 0.4,
    "hostile": 1.0,
    "judge": 0.5,
    "mqtt": 0.05,
    "pipeline": 0.4,
    "routing": 0.25,
    "salvage": 0.4,
    "server": 0.05,
    "session": 0.04,
    "storage": 0.06,
    "systemd": 0.5,
    "telemetry": 0.06,
    "tui": 0.1,
    "uplink": 0.1,
    "where": 0.08,
}
OTHER = 0.1
SLOW = 5.0
"""What a test takes of one processor: of each folder's on average, of a new one, if it is slow."""

SECOND_LOOP = "[asyncio"
"""Part of the names of tests that run under asyncio's own loop after the gateway's."""

MOST_REPEATED = 3
"""Tests that may pass in a second run: a machine that is busy upsets few of them at a time."""

PROCESS_COVERAGE = "COVERAGE_PROCESS_CONFIG"
"""What coverage tells the processes of its `subprocess` patch by."""


class SideBySide:
    """A pytest plugin for all of that; TIDEGATE_TESTS=strict allows no second run."""

    def __init__(self, config: pytest.Config) -> None:
        self._strict = os.environ.get("TIDEGATE_TESTS") == "strict"
        self._repeated: dict[str, None] = {}
        self._process_coverage = os.environ.get(PROCESS_COVERAGE, "")
        self._coverage = Coverage.current() if self._process_coverage else None
        self._measuring = True
        if self._strict and hasattr(config.option, "reruns"):
            config.option.reruns = 0
        gc.disable()  # what is collected stays

    def begin_work(self) -> None:
        """Measure what a worker does: its process has been forked, and coverage in it is new."""
        if self._coverage is not None:
            self._coverage = Coverage.current()

    def end_work(self) -> None:
        """Write what was measured."""
        if self._coverage is not None:
            self._measure(False)
            self._coverage.save()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_deterministic(item):
                item.add_marker(pytest.mark.flaky(reruns=0))

    def pytest_collection_finish(self) -> None:
        """Spare the garbage collector what stays to the end."""
        gc.collect()
        gc.freeze()
        gc.enable()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measure(is_measured(item))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if outcome == "rerun":  # what rerunfailures adds to pytest's
            self._repeated[report.nodeid] = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        gc.unfreeze()  # libraries complain at exit of what cannot be freed
        if len(self._repeated) > MOST_REPEATED:
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


def is_deterministic(item: pytest.Item) -> bool:
    """Return whether a test that fails does so for a reason of its own."""
    return _folder(item) in DETERMINISTIC and not item.nodeid.startswith(TIMED)


def is_measured(item: pytest.Item) -> bool:
    """Return whether the lines that a test reaches count."""
    if _folder(item) in UNMEASURED or SECOND_LOOP in item.nodeid:
        return False
    return item.get_closest_marker("uncovered") is None


def _folder(item: pytest.Item) -> str:
    return item.nodeid.split("/")[1] if item.nodeid.count("/") > 1 else ""


def usual_seconds(item: pytest.Item) -> float:
    """Return about what a test takes of one processor."""
    return SLOW if is_slow(item) else SECONDS.get(_folder(item), OTHER)


def together(item: pytest.Item) -> str:
    """Return the name of the tests that one worker runs with this one; empty if there are none."""
    if item.get_closest_marker("spark") is not None:
        return "spark"
    return next((path for path in TOGETHER if item.nodeid.startswith(path)), "")


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None
