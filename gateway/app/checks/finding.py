"""What `tidegate doctor` is told about: the gateway it looks at, and what it finds there."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gateway.config.configuration import Configuration


class Health(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    health: Health
    text: str


@dataclass(frozen=True, slots=True)
class Installation:
    """The gateway that is looked at, running or not."""

    data: Path
    configuration: Configuration | None
