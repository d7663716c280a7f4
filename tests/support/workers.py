"""`pytest -n COUNT` runs tests in workers, forked from the process that has collected them."""

import os
import random
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.capture import CaptureManager
from _pytest.terminal import TerminalReporter

from tests.support.side_by_side import SideBySide, is_slow, together, usual_seconds

UNIT_SECONDS = 5.0
"""Of the tests of one file that a worker takes at a time: they share what its fixtures start."""

PROGRESS = "progress"
"""The name of the plugin that only the first process has."""

PATIENCE = 20.0
"""Seconds in which a worker that is interrupted puts away what its test has started."""

NICE = 4
"""By how much all workers but the first stand back; a process's weight halves at three."""

Unit = list[int]
"""Numbers of tests that one worker runs, one after the other."""


class Worker:
    """What the first process knows of a worker."""

    def __init__(self, process: int, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.unit: Unit = []
        self.running: int | None = None

    def interrupt(self) -> None:
        """Let it give up its test, and what that has started."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGINT)

    def stop(self) -> None:
        """Return once it has ended, which it must within PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        while not os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > deadline:
                os.kill(self.process, signal.SIGKILL)
            time.sleep(0.05)
        self.wait()

    def wait(self) -> int:
        """Return the exit status of a worker that has ended, or is about to."""
        self.connection.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


class Workers:
    """A pytest plugin: the first process deals units, and reports what its workers report."""

    def __init__(self, config: pytest.Config, beside: SideBySide) -> None:
        self._config = config
        self._beside = beside
        self._items: list[pytest.Item] = []
        self._units: deque[Unit] = deque()
        self._workers: dict[Connection, Worker] = {}
        self._started = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own loop says why it runs nothing
        # A shell that starts a run in the background has it ignore interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._items = session.items
        self._units = deque(units(session.items))
        _reporter(self._config)._show_progress_info = False
        _reporter(self._config).showfspath = False
        _folders(self._config).getbasetemp()
        try:
            for _ in range(min(self._config.option.workers, len(self._units))):
                self._start(session)
            while self._workers:
                for connection in wait(list(self._workers)):
                    assert isinstance(connection, Connection)
                    self._hear(session, self._workers[connection])
        finally:
            for worker in self._workers.values():
                worker.interrupt()
            for worker in self._workers.values():
                worker.stop()
        return True

    def _start(self, session: pytest.Session) -> None:
        self._started += 1
        here, there = Pipe()
        process = os.fork()
        if not process:
            here.close()
            for connection in self._workers:
                connection.close()
            work(session, self._beside, there, self._started)
        there.close()
        self._workers[here] = Worker(process, here)

    def _hear(self, session: pytest.Session, worker: Worker) -> None:
        hook = self._config.hook
        try:
            kind, value = worker.connection.recv()
        except (EOFError, ConnectionError):
            self._bury(session, worker)
            return
        if kind == "next":
            worker.unit = self._units.popleft() if self._units else []
            worker.connection.send(worker.unit)
        elif kind == "start":
            worker.running = value
            item = self._items[value]
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self._config, data=value)
            hook.pytest_runtest_logreport(report=report)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
        else:
            item = self._items[value]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            worker.unit.remove(value)
            worker.running = None

    def _bury(self, session: pytest.Session, worker: Worker) -> None:
        """Take leave of a worker; one that died fails its test, and another takes its place."""
        del self._workers[worker.connection]
        status = worker.wait()
        if not worker.unit:
            session.testsfailed += bool(status)  # it has said why
            return
        number = worker.running if worker.running is not None else worker.unit[0]
        item = self._items[number]
        text = f"the worker died of {status} in this test"
        for when in ("setup", "call", "teardown"):
            report = pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords={},
                outcome="failed" if when == "call" else "passed",
                longrepr=text if when == "call" else None,
                when=when,
            )
            self._config.hook.pytest_runtest_logreport(report=report)
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if rest := [each for each in worker.unit if each != number]:
            self._units.appendleft(rest)
        self._start(session)


class Reports:
    """Sends a worker's reports, those of a test together once it has ended."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if outcome == "rerun":  # its rows that failed count no more
            self._reports = [each for each in self._reports if not each.failed]
        self._reports.append(report)

    def send(self) -> None:
        for report in self._reports:
            data = self._config.hook.pytest_report_to_serializable(
                config=self._config, report=report
            )
            self._connection.send(("report", data))
        self._reports.clear()


def work(session: pytest.Session, beside: SideBySide, connection: Connection, number: int) -> None:
    """Be a worker until nothing is left to do; never return."""
    status = 1
    try:
        _be_another(session.config, number)
        if number > 1:  # the first takes what takes longest, and all others leave it the time
            os.nice(NICE)
        beside.begin_work()
        reports = Reports(session.config, connection)
        session.config.pluginmanager.register(reports, "sent-reports")
        for unit in _asked(connection):
            _run(session, unit, connection, reports)
        session._setupstate.teardown_exact(None)
        beside.end_work()
        status = 0
    except KeyboardInterrupt:  # it comes from the terminal, and from the first process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001  # a fork has nobody above it to catch anything
        traceback.print_exc()
    finally:
        os._exit(status)


def _be_another(config: pytest.Config, number: int) -> None:
    """Have output, folders and chances of one's own."""
    capture: CaptureManager = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.unregister(name=PROGRESS)
    _reporter(config)._tw._file = Path(os.devnull).open("w")  # noqa: SIM115  # for good
    folders = _folders(config)
    folders._basetemp = folders.getbasetemp() / f"worker{number}"
    folders._basetemp.mkdir()
    random.seed()


def _reporter(config: pytest.Config) -> TerminalReporter:
    found: TerminalReporter = config.pluginmanager.getplugin("terminalreporter")
    return found


def _folders(config: pytest.Config) -> pytest.TempPathFactory:
    found: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]  # pytest's own
    return found


def _asked(connection: Connection) -> Iterator[Unit]:
    while True:
        connection.send(("next", None))
        unit = connection.recv()
        if not unit:
            return
        yield unit


def _run(session: pytest.Session, unit: Unit, connection: Connection, reports: Reports) -> None:
    items = [session.items[number] for number in unit]
    for number, item, following in zip(unit, items, [*items[1:], session], strict=True):
        connection.send(("start", number))
        # After the last one only what is the whole session's stays.
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        reports.send()
        connection.send(("finish", number))


def units(items: list[pytest.Item]) -> list[Unit]:
    """Return all tests in units, those that take long first."""
    numbers = sorted(range(len(items)), key=lambda number: turn(items[number]))
    made: list[Unit] = []
    for _, group in groupby(numbers, lambda number: _unit(items[number])):
        seconds = 0.0
        made.append([])
        for number in group:
            if seconds >= UNIT_SECONDS and not together(items[number]):
                seconds = 0.0
                made.append([])
            made[-1].append(number)
            seconds += usual_seconds(items[number])
    return made


def turn(item: pytest.Item) -> tuple[int, int, str]:
    """Return what orders tests: nothing long is left for the end, and folders are mixed.

    So tests that wait run beside others that compute.
    """
    file = item.nodeid.partition("::")[0]
    if group := together(item):
        return 0, 0, group
    return (1 if is_slow(item) else 2), crc32(file.encode()), file


def _unit(item: pytest.Item) -> str:
    """Return a name that tests have in common which one worker runs at once."""
    return together(item) or (item.nodeid if is_slow(item) else item.nodeid.partition("::")[0])
