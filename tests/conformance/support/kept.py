"""Which statements the tests of a run hold the gateway to, and how that went."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.conformance.support import wire
from tests.conformance.support.statements import FILES, STATEMENTS, version_of

VERSIONS = {wire.MQTT_3_1: "3.1", wire.MQTT_3_1_1: "3.1.1", wire.MQTT_5: "5"}


def named_by(item: pytest.Item) -> set[str]:
    """Return the statements that a test names, of its own version if it is run for several."""
    names = {name for mark in item.iter_markers("keeps") for name in mark.args}
    return {name for name in names if version_of(name) in versions_of(item)}


def named_by_rows(item: pytest.Item) -> set[str]:
    """Return the statements that rows of a test's table name."""
    _, cases = getattr(getattr(item, "function", None), "table", (None, ()))
    names = {name for case in cases for name in statements_in(case.name)}
    return {name for name in names if version_of(name) in versions_of(item)}


def statements_in(row: str) -> set[str]:
    """Return the statements that the name of a table's row begins with."""
    return {word for word in row.split() if word in STATEMENTS}


def versions_of(item: pytest.Item) -> set[str]:
    """Return the versions of MQTT that a test is run for."""
    callspec = getattr(item, "callspec", None)
    version = VERSIONS.get(callspec.params.get("version")) if callspec else None
    return {version} if version else set(VERSIONS.values())


class Restored:
    """A pytest plugin: takes account of the statements that were named, and prints it."""

    def __init__(self, *, whole_list: bool) -> None:
        self._whole_list = whole_list
        self._names: dict[str, set[str]] = {}
        self._versions: dict[str, set[str]] = {}
        self._passed: defaultdict[str, int] = defaultdict(int)
        self._failed: defaultdict[str, int] = defaultdict(int)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._names = {item.nodeid: named_by(item) for item in items}
        self._versions = {item.nodeid: versions_of(item) for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            count = self._passed if report.passed else self._failed
            for name in self._named_in(report):
                count[name] += 1

    def _named_in(self, report: pytest.TestReport) -> set[str]:
        """Return the statements of a test, or of a row of one's table."""
        if isinstance(report, pytest.SubtestReport):
            names = statements_in(report.context.msg or "")
            return {n for n in names if version_of(n) in self._versions.get(report.nodeid, ())}
        return self._names.get(report.nodeid, set())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._passed and not self._failed:
            return
        terminalreporter.section("normative statements")
        for line in self._lines():
            terminalreporter.write_line(line)

    def _lines(self) -> Iterator[str]:
        for version in FILES:
            names = [name for name in STATEMENTS if version_of(name) == version]
            seen = [name for name in names if not STATEMENTS[name].unseen]
            kept = [name for name in seen if self._passed[name] and not self._failed[name]]
            if self._whole_list:
                yield from (self._line(name) for name in names)
            yield (
                f"MQTT {version}: {len(kept)} of {len(seen)} statements tested and kept; "
                f"{len(names) - len(seen)} more cannot be seen from outside"
            )

    def _line(self, name: str) -> str:
        statement = STATEMENTS[name]
        if statement.unseen:
            return f"  unseen  {name:20} {statement.says} ({statement.unseen})"
        if self._failed[name]:
            return f"  BROKEN  {name:20} {statement.says}"
        if not self._passed[name]:
            return f"  -       {name:20} {statement.says}"
        tests = self._passed[name]
        return f"  {tests:4}    {name:20} {statement.says}"
