"""A PUBLISH in flight with its rows or control message."""

from collections.abc import Sequence

from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.reports.control_messages import ControlMessage


class Sent:
    """A packet of `size` bytes with rows of the outbox, or with a message of the gateway's own.

    Without either it is `status`, the retained message. It counts as `messages` in the window.
    `paced` is how many of its bytes the backlog's pacing counts; `at` and `deadline`, in monotonic
    seconds, are set when it is sent.
    """

    __slots__ = ("at", "batched", "deadline", "messages", "own", "paced", "rows", "size", "status")

    def __init__(
        self,
        size: int,
        rows: Sequence[OutboxRow] = (),
        own: ControlMessage | None = None,
        status: bytes = b"",
        batched: bool = False,
        paced: int = 0,
    ) -> None:
        self.size = size
        self.rows = rows
        self.messages = len(rows) or 1
        self.own = own
        self.status = status
        self.batched = batched
        self.paced = paced
        self.at = self.deadline = 0.0

    @property
    def is_status(self) -> bool:
        """Whether it is the status message."""
        return not self.rows and self.own is None
