"""What has changed of one persistent session since it was last written."""

from gateway.session.kept import KeptSubscription
from gateway.storage.sessions.delivery_row import DeliveryRow


class Changes:
    """What is to be written of a session, beside its row; delivery rows by their last number."""

    __slots__ = (
        "attempts",
        "begun",
        "deferred",
        "enqueued",
        "gone",
        "gone_messages",
        "incoming",
        "progress",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.enqueued: dict[int, DeliveryRow] = {}  # to be written with the next batch
        self.deferred: dict[int, DeliveryRow] = {}  # to be written with the one after that
        self.begun: dict[int, DeliveryRow] = {}  # written, and now in part gone
        self.progress: dict[int, DeliveryRow] = {}  # written, and sent or released since
        self.gone: list[tuple[int, int]] = []  # first and last numbers of rows to be deleted
        self.gone_messages = 0  # that these stood for
        self.attempts: dict[int, int] = {}  # by sequence number; 0: to be forgotten
        self.incoming: dict[int, bool] = {}  # True: to be kept, False: to be forgotten
        self.subscriptions: dict[str, KeptSubscription | None] = {}  # None: to be forgotten

    def deferred_before(self, messages: set[int]) -> set[int]:
        """Return the rows of deferred messages that one to be written now stands behind.

        A crash must not leave the later one alone: the earlier one, which its publisher sends
        again, would come behind it [MQTT-4.6.0-6]. Order is that of one QoS; only writes of QoS 1
        are deferred.
        """
        if not self.deferred:
            return set()
        written = [last for last, row in self.enqueued.items() if row.qos == 1]
        written += [last for last, row in self.deferred.items() if row.publication.row in messages]
        latest = max(written, default=0)
        return {row.publication.row for last, row in self.deferred.items() if last < latest}

    def count(self, batch: int) -> int:
        """Return by how much the messages on disk become more, or fewer, with this batch."""
        more = -self.gone_messages
        for row in self.begun.values():
            more += row.left - row.written
            row.written = row.left
        for row in self.enqueued.values():
            more += row.left
            row.written = row.left
            row.batch = batch
            row.barrier = None  # the batch is what the publisher waits for now
        return more
