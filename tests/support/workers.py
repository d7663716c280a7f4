"""Runs tests side by side, in forks of the process that has collected them.

Imports and collection are done once, and memory is shared. Each worker has one group of tests at
a time and asks for the next when it begins the last test: so it knows which fixtures both need.
"""

import gc
import os
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe, wait
from signal import SIGINT
from typing import Any, NoReturn

import pytest

from tests.support.processes.fork_server import leave

Group = Sequence[int]
"""Places in `session.items` of tests that one worker runs one after the other."""

ENDED = (pytest.ExitCode.OK, pytest.ExitCode.INTERRUPTED)
"""How a worker ends that has run its tests or was asked to stop."""


class Worker:
    """What a worker of these tests does, in its own process."""

    def __init__(self, session: pytest.Session, parent: Connection):
        self._config = session.config
        self._session = session
        self._parent = parent
        self._reports: list[pytest.TestReport] = []

    def work(self, name: str) -> NoReturn:
        """Run tests until there are no more, and end the process."""
        status = pytest.ExitCode.INTERNAL_ERROR
        try:
            self._separate(name)
            status = self._run()
            self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=status)
        except BaseException:  # noqa: BLE001  # which the parent fails for
            traceback.print_exc()
        leave(status)

    def _separate(self, name: str) -> None:
        """Use no terminal, temporary folder or captured output of the parent."""
        plugins = self._config.pluginmanager
        plugins.unregister(name="terminalreporter")
        capture: Any = plugins.get_plugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        folders: Any = self._config._tmp_path_factory  # type: ignore[attr-defined]  # no hook has it
        folders._basetemp = folders.mktemp(name, numbered=False)
        plugins.register(self, "worker")

    def _run(self) -> pytest.ExitCode:
        group = self._next()
        try:
            while group:
                for place, following in pairwise(group):
                    self._run_test(place, following)
                last, group = group[-1], self._next()
                self._run_test(last, group[0] if group else None)
        except (KeyboardInterrupt, EOFError):
            return pytest.ExitCode.INTERRUPTED
        return pytest.ExitCode.OK

    def _next(self) -> Group:
        self._parent.send(None)
        group: Group = self._parent.recv()
        return group

    def _run_test(self, place: int, following: int | None) -> None:
        items = self._session.items
        item, next_item = items[place], None if following is None else items[following]
        self._config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def pytest_runtest_logfinish(self) -> None:
        """Report a test; rows of one that is run again count in its last run."""
        reports, self._reports = self._reports, []
        if any(str(each.outcome) == "rerun" for each in reports):
            reports = [each for each in reports if not isinstance(each, pytest.SubtestReport)]
        to_data = self._config.hook.pytest_report_to_serializable
        self._parent.send([to_data(config=self._config, report=each) for each in reports])


class Workers:
    """What their parent knows of the workers: what waits, what each was given."""

    def __init__(self, session: pytest.Session, groups: Sequence[Group]):
        self._session = session
        self._waiting = deque(groups)
        self._processes: dict[Connection, int] = {}
        self._given: dict[Connection, deque[int]] = {}
        self._started = 0

    def run(self, count: int) -> None:
        """Run all tests in so many workers; those that still run at an error are interrupted."""
        try:
            for _ in range(count):
                self._start()
            while self._processes:
                for ready in wait(list(self._processes)):
                    assert isinstance(ready, Connection)
                    self._serve(ready)
        finally:
            for process in self._processes.values():
                os.kill(process, SIGINT)
            for process in self._processes.values():
                os.waitpid(process, 0)

    def _start(self) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # else collecting writes to, and so copies, what is shared
        with warnings.catch_warnings():  # of numpy's threads, which wait for work and are made anew
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if not process:
            for other in (ours, *self._processes):
                other.close()
            Worker(self._session, theirs).work(f"worker{self._started}")
        theirs.close()
        self._started += 1
        self._processes[ours] = process
        self._given[ours] = deque()

    def _serve(self, worker: Connection) -> None:
        try:
            message = worker.recv()
            if message is None:
                group = self._waiting.popleft() if self._waiting else ()
                self._given[worker].extend(group)
                worker.send(group)
        except (EOFError, OSError):
            self._bury(worker)
        else:
            if message is not None:
                self._report(self._given[worker], message)

    def _report(self, given: deque[int], reports: Sequence[dict[str, Any]]) -> None:
        """Have plugins note how the first test of these has ended."""
        hook = self._session.config.hook
        for each in reports:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=each)
            hook.pytest_runtest_logreport(report=report)
        if any(each["outcome"] == "rerun" for each in reports):
            return
        item = self._session.items[given.popleft()]
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _bury(self, worker: Connection) -> None:
        """Fail the test that has ended its worker, and start another for those after it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._processes.pop(worker), 0)[1])
        worker.close()
        given = self._given.pop(worker)
        if not given:
            if status not in ENDED:
                raise RuntimeError(f"a worker of the tests ended with status {status}")
            return
        item = self._session.items[given[0]]
        text = f"it ended its worker, with status {status}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        to_data = self._session.config.hook.pytest_report_to_serializable
        self._report(given, [to_data(config=self._session.config, report=report)])
        if given:
            self._waiting.appendleft(tuple(given))
        self._start()
