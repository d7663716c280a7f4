"""How tests share the machine: which are kept together, run once more, or run without coverage."""

import gc
import importlib
import itertools
import os
import pkgutil
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from coverage import Coverage
from coverage.config import CoverageConfig
from hypothesis import strategies
from pytest_rerunfailures import StatusDB
from xdist.scheduler import LoadFileScheduling

from tests.support.processes.fork_server import MEASURED

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

SPARK = tuple(
    f"tests/pipeline/{path}"
    for path in (
        "backtest/",
        "batches/test_silver.py",
        "clock/test_timing.py",
        "gold/test_expected.py",
        "gold/test_instances.py",
        "gold/test_local_days.py",
        "gold/test_own.py",
        "gold/test_readings_over_time.py",
        "gold/test_silences.py",
        "operation/test_catalogs.py",
        "operation/test_derive.py",
        "operation/test_full_disk.py",
        "operation/test_lineage.py",
        "operation/test_maintain.py",
        "operation/test_migrate.py",
        "operation/test_once.py",
        "operation/test_reprocess.py",
        "operation/test_recovery.py",
        "operation/test_views.py",
        "outbox/test_rows.py",
        "simulate/test_fleet.py::test_the_tables_say_what_is_true",
        "tables/test_task_files.py",
        "test_in_a_session.py",
        "test_cli.py::test_a_key_that_silver_has_twice_is_told",
        "test_place.py::test_a_run_reads_what_was_put",
        "test_readers.py",
        "test_schema_evolution.py",
        "test_tables_in_stores.py",
    )
)
"""What the names of tests begin with that share one Java, and so one worker."""

SPREAD = (
    "tests/pipeline/test_cli.py",
    "tests/flashing/test_flash.py",
    "tests/uplink/fleet/test_scripts.py",
    "tests/hostile/test_attacks.py",
    "tests/judge/test_mixes.py",
)
"""Files whose tests have no fixture in common and wait for minutes in all: any worker runs each."""

LONG = (
    *SPREAD,
    "tests/test_setup.py",
    "tests/pipeline/operation/test_publish.py",
    "tests/storage/outbox/test_outbox_model.py",
    "tests/storage/engine/test_any_damage.py",
    "tests/crash/test_faults.py",
    "tests/firmware/test_package.py",
    "tests/end_to_end/test_retained_up.py",
    "tests/end_to_end/test_stuck_standard_error.py",
)
"""What takes longest begins first, then files with tests marked `slow`."""

SECOND_LOOP = "[asyncio"
"""Part of the names of tests that run under asyncio's own loop after the gateway's."""

MOST_REPEATED = 3
"""Tests that may pass in a second run: a machine that is busy upsets few of them at a time."""

WHOLE = "tests/conformance/"
"""What one worker collects with all folders below it: tests there ask which others there are."""

FIRST = "gw0"
"""The worker that has the tests with Spark. It also measures the imports of all modules: in the
others they do the same."""

SHARES = 2
"""Workers that collect a folder. To collect all takes ten seconds in each; of two, one still finds
work when the other has more."""

PATIENCE = 5
"""By how much the others are nicer. Two fifths of all computing are tests with Spark, one after
another: they would be half done when the others end, and then leave processors idle."""


class Scheduler(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives the tests of a file to one worker unless they are SPREAD, and all of SPARK to FIRST.

    A worker has collected its share of the files. It gets the first that nobody else has.
    """

    assigned_work: dict[Any, Any]
    collection: list[str] | None

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._indexes: dict[Any, dict[str, int]] = {}
        self._files: dict[Any, tuple[str, ...]] = {}

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Note what a worker can run. One that replaces another has collected all."""
        self.registered_collections[node] = list(collection)
        self._indexes[node] = {name: index for index, name in enumerate(collection)}
        self._files[node] = tuple(dict.fromkeys(map(self._split_scope, collection)))

    def schedule(self) -> None:
        """Begin with FIRST: another worker may have been ready sooner."""
        if self.collection is None:
            for name in itertools.chain(*self.registered_collections.values()):
                self.workqueue.setdefault(self._split_scope(name), {})[name] = False
            found = [name for unit in self.workqueue.values() for name in unit]
            session = self.config.pluginmanager.getplugin("session")
            session.testscollected = len(found)  # xdist counts the last worker's
            self.collection = found
        nodes = sorted(self.nodes, key=lambda node: node.gateway.id != FIRST)
        for node in (*nodes, *nodes):  # with one test, a worker waits for the next
            self._reschedule(node)

    def _reschedule(self, node: Any) -> None:
        work = self.assigned_work[node]
        if node.shutting_down or self._pending_of(work) > 2:
            return
        scope = next((each for each in self._files[node] if each in self.workqueue), None)
        if scope is None:
            node.shutdown()
            return
        unit = work[scope] = self.workqueue.pop(scope)
        indexes = self._indexes[node]
        node.send_runtest_some([indexes[name] for name, done in unit.items() if not done])

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(SPARK):
            return "spark"
        return nodeid if nodeid.startswith(SPREAD) else str(super()._split_scope(nodeid))


class SideBySide:
    """A pytest plugin for all of that; TIDEGATE_TESTS=strict allows no second run."""

    def __init__(self, config: pytest.Config) -> None:
        self._strict = os.environ.get("TIDEGATE_TESTS") == "strict"
        self._worker = hasattr(config, "workerinput")
        self._name = os.environ.get("PYTEST_XDIST_WORKER", "")
        self._workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        self._repeated: dict[str, None] = {}
        self._process_coverage = os.environ.get(MEASURED, "")
        self._coverage = Coverage.current() if self._process_coverage else None
        if self._process_coverage and not self._worker:
            os.environ[MEASURED] = reached_alone(self._process_coverage)
        if self._coverage and not self._worker and config.getoption("numprocesses", None):
            self._coverage.stop()  # nothing is tested here: workers do that
        self._measuring = True
        if self._strict and hasattr(config.option, "reruns"):
            config.option.reruns = 0
        if self._worker:
            if self._name != FIRST:
                os.nice(PATIENCE)
            elif self._coverage:
                import_all(self._process_coverage)
            self._measure(False)
        gc.disable()  # most of what is made while tests are collected stays

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Have rerunfailures not note each test in case its worker dies.

        It writes twice to a socket and then reads, so that TCP waits 40 ms.
        """
        if self._worker and hasattr(session.config, "failures_db"):
            session.config.failures_db.sock.close()
            session.config.failures_db = StatusDB()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """While workers collect, have Hypothesis note which characters there are.

        It takes three seconds, in a clean clone, and each worker would find none noted.
        """
        if session.config.getoption("numprocesses", None):
            strategies.text().validate()
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadFileScheduling:
        config.option.loadscopereorder = False  # they stand in the order of `_turn`
        return Scheduler(config, log)

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out what other workers run; one that replaces another collects all."""
        number = int(self._name.removeprefix("gw") or 0)
        if number >= self._workers or not collection_path.name.startswith("test_"):
            return None
        path = collection_path.relative_to(config.rootpath).as_posix()
        return None if is_shared(path, number, self._workers) else True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_deterministic(item):
                item.add_marker(pytest.mark.flaky(reruns=0))
        if self._worker:
            items.sort(key=_turn)

    def pytest_collection_finish(self) -> None:
        """Spare the garbage collector what stays to the end.

        A fifth of it is garbage, 30 MB; to find that first takes each worker a second.
        """
        gc.freeze()
        gc.enable()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        return _sendable((yield))

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
        if self._worker and self._coverage is not None:  # it is not left the time at its end
            self._measure(False)
            self._coverage.save()
        elif len(self._repeated) > MOST_REPEATED:
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
            os.environ[MEASURED] = self._process_coverage
            self._coverage.start()
        else:
            self._coverage.stop()
            del os.environ[MEASURED]


def import_all(process_coverage: str) -> None:
    """Import all modules that are measured, but for those that are programs."""
    config = CoverageConfig.deserialize(process_coverage)
    for source in (Path(pattern).parent for pattern in config.run_include or ()):
        for module in pkgutil.walk_packages([str(source)], f"{source.name}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)


def is_shared(path: str, worker: int, workers: int) -> bool:
    """Return whether a file of tests is among those that a worker, one of so many, collects."""
    if path.startswith(SPREAD):
        return True
    if path.startswith(SPARK):
        return worker == 0
    folder = WHOLE if path.startswith(WHOLE) else path.rpartition("/")[0]
    first = crc32(folder.encode()) % workers
    has_spark = worker == 0 and any(name.startswith(path) for name in SPARK)
    return (worker - first) % workers < SHARES or has_spark


def reached_alone(process_coverage: str) -> str:
    """Return the same for processes that report only the files that they reach.

    To list all files of the sources takes longer than a short command. The first process does it.
    """
    config = CoverageConfig.deserialize(process_coverage)
    config.run_include = [f"{source}/*" for source in config.source or ()]
    config.source = None
    return str(config.serialize())


def is_deterministic(item: pytest.Item) -> bool:
    """Return whether a test that fails does so for a reason of its own."""
    return _folder(item) in DETERMINISTIC and not item.nodeid.startswith(TIMED)


def is_measured(item: pytest.Item) -> bool:
    """Return whether the lines that a test reaches count.

    Those that random examples reach do not: another run would reach others.
    """
    if _folder(item) in UNMEASURED or SECOND_LOOP in item.nodeid:
        return False
    return not any(item.get_closest_marker(name) for name in ("hypothesis", "uncovered"))


def _folder(item: pytest.Item) -> str:
    return item.nodeid.split("/")[1] if item.nodeid.count("/") > 1 else ""


def _turn(item: pytest.Item) -> tuple[int, int]:
    """Return what orders tests: nothing long is left for the end, and folders are mixed.

    So tests that wait run beside others that compute. The first goes to the worker FIRST.
    """
    file = item.nodeid.partition("::")[0]
    if item.nodeid.startswith(SPARK):
        rank = 0
    elif item.nodeid.startswith(LONG):
        rank = 1
    else:
        rank = 2 if item.get_closest_marker("slow") is not None else 3
    return rank, crc32(file.encode())


def _sendable(value: Any) -> Any:
    """Return a report's data with escapes for what no text may hold, such as half a character."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):  # the reason of a skip is in a tuple
        return type(value)(map(_sendable, value))
    return value
