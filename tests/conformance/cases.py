"""Tables of bytes that end a connection, made into parameters of tests."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from tests.conformance import wire
from tests.conformance.codes import MALFORMED
from tests.conformance.kept import VERSIONS
from tests.conformance.statements import keeps, version_of

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


Parameters = Iterable[object]
"""What pytest.mark.parametrize takes for ("version", "data", "code")."""


def params(*cases: Case) -> list[Parameters]:
    """Return a parameter set for each case and version, its id with the statements' numbers."""
    return [_param(case, version) for case in cases for version in case.versions]


def _param(case: Case, version: int) -> Parameters:
    data = case.data if isinstance(case.data, bytes) else case.data(version)
    names = [name for name in case.statements.split() if version_of(name) == VERSIONS[version]]
    assert names, f"{case.name!r} names no statement of MQTT {VERSIONS[version]}"
    name = f"{' '.join(names)} {case.name}"
    parameters: Parameters = pytest.param(version, data, case.code, id=name, marks=keeps(*names))
    return parameters
