"""The list of statements and the tests that name them fit each other."""

from pathlib import Path

import pytest

from tests.conformance.support.kept import VERSIONS, named_by, named_by_rows
from tests.conformance.support.statements import STATEMENTS, version_of

FOLDER = Path(__file__).parent


def test_tests_name_statements_of_the_list(request: pytest.FixtureRequest) -> None:
    unknown = {
        f"{item.nodeid}: {name}"
        for item in request.session.items
        for mark in item.iter_markers("keeps")
        for name in mark.args
        if name not in STATEMENTS or STATEMENTS[name].unseen
    }
    assert not unknown


def test_a_statement_is_one_short_line() -> None:
    for statement in STATEMENTS.values():
        assert statement.says == statement.says.strip()
        assert 0 < len(statement.says) <= 90, statement
        assert not statement.says.endswith("."), statement


def test_each_statement_that_can_be_seen_has_a_test(request: pytest.FixtureRequest) -> None:
    collected = {item.path for item in request.session.items}
    selected = request.config.getoption("keyword") or request.config.getoption("markexpr")
    if selected or set(FOLDER.rglob("test_*.py")) - collected:
        pytest.skip("not all tests of tests/conformance were selected")
    named = {
        name for item in request.session.items for name in named_by(item) | named_by_rows(item)
    }
    seen = {name for name, statement in STATEMENTS.items() if not statement.unseen}
    assert seen - named == set()


def test_versions_are_those_of_the_lists() -> None:
    assert {version_of(name) for name in STATEMENTS} <= set(VERSIONS.values())
