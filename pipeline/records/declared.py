"""What is declared of payloads: which are readings, and what is expected of them.

It is here without what reads the file (declarations), so that a run that has nothing to do does not
load that.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.records.declarations import Expectation, FleetMapping

MARK, QUARANTINE = "mark", "quarantine"


@dataclass(frozen=True)
class Declared:
    """The content of a file; nothing without one."""

    mapping: "tuple[FleetMapping, ...]" = ()
    expectation: "tuple[Expectation, ...]" = ()
    kinds: tuple[tuple[str, str], ...] = ()
    """Quantities that have another kind than by their names."""

    def mapped(self) -> str:
        """Return a hash of the mappings; another one reads payloads in another way."""
        return sha256(repr(self.mapping).encode()).hexdigest()


NOTHING = Declared()
