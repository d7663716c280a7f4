"""What has changed of one persistent session since it was last written."""

from gateway.session.delivery import Delivery
from gateway.session.inflight_run import InflightRun
from gateway.session.kept import KeptSubscription
from gateway.storage.run_row import RunRow


class Changes:
    """What is to be written of a session, beside its row.

    Deliveries stand for themselves by their places.
    """

    __slots__ = (
        "begun_runs",
        "gone",
        "gone_messages",
        "gone_runs",
        "incoming",
        "lent",
        "lent_runs",
        "owed",
        "owed_runs",
        "packet_ids",
        "released",
        "runs",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.owed: dict[int, Delivery] = {}  # to be written with the next batch
        self.lent: dict[int, Delivery] = {}  # to be written with the one after that
        self.owed_runs: dict[int, InflightRun] = {}  # both by the place of the first
        self.lent_runs: dict[int, InflightRun] = {}
        self.runs: dict[int, RunRow] = {}  # rows to be written with the next batch
        self.begun_runs: dict[int, RunRow] = {}  # rows of which a part is gone
        self.gone_runs: list[tuple[int, int]] = []  # first and last places of rows that are gone
        self.gone: list[int] = []  # rows that are written, and to be deleted
        self.gone_messages = 0  # that both stand for
        self.packet_ids: dict[int, int] = {}
        self.released: set[int] = set()
        self.incoming: dict[int, bool] = {}  # True: to be kept, False: to be forgotten
        self.subscriptions: dict[str, KeptSubscription | None] = {}  # None: to be forgotten

    @property
    def owes(self) -> bool:
        """Whether anything that the session is owed is to be written with the next batch."""
        return bool(self.owed or self.owed_runs or self.runs)

    def open_runs(self) -> None:
        """Go on with single deliveries: some are about to be written."""
        for sent in [*self.owed_runs.values(), *self.lent_runs.values()]:
            sent.open()

    def owed_messages(self) -> list[int]:
        """Return the rows of the messages that are to be written with the next batch."""
        rows = [each.message.row for each in self.owed.values()]
        for row in self.runs.values():
            rows += row.messages
        return rows

    def lent_before(self, messages: set[int]) -> set[int]:
        """Return the rows of lent messages that one to be written now stands behind.

        A crash must not leave the later one alone: the earlier one, which its publisher sends
        again, would come behind it [MQTT-4.6.0-6]. Order is that of one QoS; only QoS 1 is lent.
        """
        if not self.lent:
            return set()
        written = [place for place, each in self.owed.items() if each.qos == 1]
        written += [row.last for row in self.runs.values()]
        lent = {place: each.message.row for place, each in self.lent.items()}
        written += [place for place, row in lent.items() if row in messages]
        last = max(written, default=0)
        return {row for place, row in lent.items() if place < last}

    def count_runs(self) -> int:
        """Return by how much the messages on disk become more, or fewer, by the rows of runs."""
        more = 0
        for row in (*self.runs.values(), *self.begun_runs.values()):
            left = row.left
            more += left - row.written
            row.written = left
        return more
