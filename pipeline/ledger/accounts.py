"""The numbers of each stream, each with the first outcome that its gateway reported."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.ledger.entry import OUTCOMES, Entry, Range, counts_of
from pipeline.ledger.files import LedgerLine, in_order, ledger_files, read_ledger
from pipeline.ledger.spans import Spans, holes

Key = tuple[str, str, str]
"""Gateway, epoch and stream."""


@dataclass
class Account:
    """The numbers of one stream: how many ended how, up to `last`, the highest that is known.

    `missing` have no outcome in the ledger: they still wait at the gateway, or their entry does.
    """

    key: Key
    last: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    ended: int | None = None
    """The last number that was on disk when the epoch had ended, None if it may go on."""
    reported: Spans[Range] = field(default_factory=Spans)
    """What the ledger says of each number."""
    several: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    """The counts by outcome of ranges whose numbers do not have one each."""

    @property
    def missing(self) -> int:
        """How many numbers the ledger says nothing of."""
        return self.last - sum(self.outcomes.values())

    def __str__(self) -> str:
        parts = " + ".join(
            f"{outcome} {self.outcomes[outcome]:,}"
            for outcome in OUTCOMES
            if self.outcomes[outcome]
        )
        return (
            f"{'/'.join(self.key)}: {parts or '0'} = last {self.last:,}, missing {self.missing:,}"
        )

    def add(self, reported: Range) -> None:
        """Add a range; what was reported before of its numbers stays."""
        self.last = max(self.last, reported.last)
        known = self.reported.overlapping(reported.first, reported.last)
        free = holes(known, reported.first, reported.last)
        outcomes = _outcomes(reported, free, bool(known))
        if len(outcomes) > 1:
            self.several[reported.first, reported.last] = dict(outcomes)
        self.outcomes += outcomes
        for first, last in free:
            self.reported.put(first, last, reported)


def accounts(landing: Path) -> list[Account]:
    """Return an account for each gateway, epoch and stream that a ledger in the folder names.

    Lines that are no entry (docs/understand/schemas/ledger-entry.schema.json) are passed over.
    """
    lines = read_ledger(landing, ledger_files(landing))
    return accounts_of(reported for reported in lines if isinstance(reported, LedgerLine))


def accounts_of(reported: Iterable[LedgerLine], keys: Iterable[Key] = ()) -> list[Account]:
    """Return an account for each of `keys`, and for each stream of which the entries name a number.

    A stream that the start behind its epoch does not name had no number on disk. Of several
    starts that say how far an epoch went, as after a restored backup, the farthest holds.
    """
    wanted = set(keys)
    found = {key: Account(key) for key in wanted}
    ends: dict[tuple[str, str], dict[str, int]] = {}
    for each in in_order(reported):
        _add(found, each.gateway_id, each.entry)
        if each.entry.previous is not None:
            epoch, last = each.entry.previous
            end = ends.setdefault((each.gateway_id, epoch), {})
            for stream, number in last.items():  # a restored gateway tells of its old backup
                end[stream] = max(number, end.get(stream, 0))
    for (gateway, epoch, stream), account in found.items():
        if (gateway, epoch) in ends:
            account.ended = ends[gateway, epoch].get(stream, 0)
    return [found[key] for key in sorted(found) if found[key].last or key in wanted]


def _add(found: dict[Key, Account], gateway: str, entry: Entry) -> None:
    key = (gateway, entry.epoch, entry.stream)
    account = found.setdefault(key, Account(key))
    for reported in entry.ranges:
        account.add(reported)
    if entry.previous is not None:
        epoch, last = entry.previous
        for stream, number in last.items():
            before = (gateway, epoch, stream)
            account = found.setdefault(before, Account(before))
            account.last = max(account.last, number)


def _outcomes(reported: Range, free: list[tuple[int, int]], partly: bool) -> Counter[str]:
    """Count the numbers that were not reported before.

    A range of several outcomes does not say which number had which, so its counts stand only
    where all of its numbers are new.
    """
    numbers = sum(last - first + 1 for first, last in free)
    several = None if partly else counts_of(reported.cause, numbers)
    return Counter(several or {reported.outcome: numbers})
