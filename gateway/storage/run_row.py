"""The row that messages of a run share in the journal of a session."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.session.delivery import Delivery
from gateway.session.message_run import MessageRun
from gateway.session.waiting_run import WaitingRun
from gateway.storage.kept_size import DIFFERENCE, kept_size

if TYPE_CHECKING:
    from gateway.storage.session_journal import SessionJournal


WRITTEN = -1
"""The batch of a row that an earlier run of the gateway wrote, or that was forgotten since."""


class RunRow:
    """Fulfils `session.waiting_run.RunRow` for the messages of `run`; `place` is the first one's.

    Bits of `gone` are set for those that are not owed any more, or have rows of their own. The
    row is there with the first batch behind which one is left, and until none is; on disk it
    stands for `written` messages. Once the journal is closed nothing is noted any more.
    """

    __slots__ = ("_journal", "batch", "count", "gone", "place", "run", "whole", "written")

    def __init__(
        self, journal: "SessionJournal", place: int, run: MessageRun, gone: int = 0
    ) -> None:
        self.place = place
        self.run = run
        self.count = run.packets.count
        self.gone = gone
        self.batch = 0
        self.written = 0
        self.whole = gone == 0  # no other row has a place between its first and its last
        self._journal = journal

    @property
    def last(self) -> int:
        """The place of the last message, which is that of the row."""
        return self.place + self.count - 1

    @property
    def left(self) -> int:
        """How many messages it stands for."""
        return self.count - self.gone.bit_count()

    @property
    def messages(self) -> list[int]:
        """The rows of its messages: one, and one of each that others are owed by itself."""
        run = self.run
        single = [each.row for each in run.messages if each.owed] if run.opened else []
        return [run.row, *single]

    def done(self, place: int, count: int) -> None:
        """Take messages out of it."""
        if not self._journal.open:
            return
        self.gone |= ((1 << count) - 1) << (place - self.place)
        self._journal.changed_run(self)

    def opened(self, place: int, deliveries: Sequence[Delivery]) -> None:
        """Stand for these from now on."""
        for number, delivery in enumerate(deliveries, place):
            delivery.kept = kept_size(delivery.message)
            if self._journal.open:
                delivery.place = number
                delivery.batch = self.batch
                self._journal.in_runs[number] = self

    def waiting(self) -> list[WaitingRun]:
        """Return what it stands for, in order."""
        if not self.gone:
            return [WaitingRun(self.run, self.place, self, DIFFERENCE)]
        parts = [self.run.part(first, end) for first, end in self._left()]
        places = [self.place + first for first, _ in self._left()]
        return [
            WaitingRun(part, place, self, DIFFERENCE)
            for part, place in zip(parts, places, strict=True)
        ]

    def values(self, session: int) -> tuple[object, ...]:
        """Return the values of `session_rows.OWE_RUN`."""
        kept, alone = self._kept(), not self.run.shared
        row = (session, self.last, self.run.row, 1, False, 0, False)
        return (*row, kept, alone, self.left, self._gone_bytes())

    def part_values(self, session: int) -> tuple[object, ...]:
        """Return the values of `session_rows.PART_OF_RUN`."""
        return (self.left, self._kept(), self._gone_bytes(), session, self.last)

    def _kept(self) -> int:
        return sum(part.kept for part in self.waiting())

    def _gone_bytes(self) -> bytes | None:
        return self.gone.to_bytes((self.count + 7) // 8, "little") if self.gone else None

    def _left(self) -> list[tuple[int, int]]:
        """Return first and end of the numbers that are not gone, run by run."""
        found: list[tuple[int, int]] = []
        for number in range(self.count):
            if self.gone >> number & 1:
                continue
            if found and found[-1][1] == number:
                found[-1] = found[-1][0], number + 1
            else:
                found.append((number, number + 1))
        return found


def gone_bits(data: bytes | None) -> int:
    """Return the bits of a row's column."""
    return 0 if data is None else int.from_bytes(data, "little")
