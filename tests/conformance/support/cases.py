"""Tables of bytes that end a connection, made into tests."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.conformance.support import wire
from tests.conformance.support.codes import MALFORMED
from tests.conformance.support.kept import VERSIONS
from tests.conformance.support.statements import STATEMENTS, version_of
from tests.support.table import Test, table

BOTH = (wire.MQTT_3_1_1, wire.MQTT_5)
ONLY_3 = (wire.MQTT_3_1_1,)
ONLY_5 = (wire.MQTT_5,)


class Case(NamedTuple):
    """What a client sends in each of `versions`, and the reason code that answers it in MQTT 5.

    `statements` are names with spaces between them.
    """

    statements: str
    name: str
    data: bytes | Callable[[int], bytes]
    code: int = MALFORMED
    versions: tuple[int, ...] = BOTH


def case_table(*cases: Case) -> Callable[[Test], Test]:
    """Run a test of (version, data, code) for each case and version, as one test.

    The name of a row begins with the statements that it is for, and `kept.py` takes account of it.
    """
    rows = [_row(case, version) for case in cases for version in case.versions]
    return table(("version", "data", "code"), rows)


def _row(case: Case, version: int) -> object:
    data = case.data if isinstance(case.data, bytes) else case.data(version)
    names = [name for name in case.statements.split() if version_of(name) == VERSIONS[version]]
    assert names, f"{case.name!r} names no statement of MQTT {VERSIONS[version]}"
    assert set(names) <= STATEMENTS.keys(), f"{case.name!r} names a statement that is not listed"
    return pytest.param(version, data, case.code, id=f"{' '.join(names)} {case.name}")
