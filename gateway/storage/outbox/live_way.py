"""What the outbox needs of an uplink that sends live rows as they are added."""

from dataclasses import dataclass
from typing import Protocol

from gateway.storage.outbox.outbox_row import OutboxRow


class LiveWay(Protocol):
    """The uplink while its link is up."""

    def takes(self, row: OutboxRow) -> bool:
        """Return whether `send` may follow; if not, the row is read from the outbox later."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether the row can be acknowledged soon: nothing older waits to go up."""
        ...

    def send(self, row: OutboxRow) -> None:
        """Send the row in this turn, or keep it until there is room for it in the window."""
        ...


@dataclass(slots=True)
class Live:
    """An uplink that is up, by its bit.

    `delay` is how many seconds its last PUBACK took, and infinite after a row had to be written
    since none came: then rows are written at once until one comes in time.
    """

    uplink: int
    way: LiveWay
    delay: float = 0.0
