"""Which tests of a run failed, for who runs them once more (tools/run_tests.py)."""

import json
import os
from pathlib import Path

import pytest


class Failures:
    """A pytest plugin: writes the names of what failed to the file that TIDEGATE_FAILED names.

    A file that could not be collected stands there with its own name. Without a file the run did
    not come to its end.
    """

    def __init__(self) -> None:
        self._failed: dict[str, None] = {}  # setup, call and teardown may all fail

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        if path := os.environ.get("TIDEGATE_FAILED"):
            Path(path).write_text(json.dumps(list(self._failed), indent=1) + "\n")
