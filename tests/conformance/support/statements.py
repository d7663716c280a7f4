"""The specifications' normative statements that concern a server, and what a test says of them.

A statement's name is the version of MQTT, a colon and its number: `5:3.1.0-1`, `3.1.1:3.1.0-1`.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

FILES = {"5": "mqtt_5.toml", "3.1.1": "mqtt_3_1_1.toml"}
FOLDER = Path(__file__).with_name("statements")


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said, in our words, and why it cannot be seen from outside; "" if it can."""

    name: str
    says: str
    unseen: str = ""


def keeps(*names: str) -> pytest.MarkDecorator:
    """Say which statements a test holds the gateway to."""
    return pytest.mark.keeps(*names)


def _read(version: str) -> Iterable[Statement]:
    tables = tomllib.loads((FOLDER / FILES[version]).read_text(encoding="utf-8"))
    for number, says in tables["seen"].items():
        yield Statement(f"{version}:{number}", says)
    for number, (says, unseen) in tables["unseen"].items():
        yield Statement(f"{version}:{number}", says, unseen)


STATEMENTS = {statement.name: statement for version in FILES for statement in _read(version)}
"""By name, in the order of the specifications' chapters within each version and table."""


def version_of(name: str) -> str:
    """Return the version of MQTT whose statement this is."""
    return name.partition(":")[0]
