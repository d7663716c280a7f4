"""One made-up gateway: what it lands, and what is true of it."""

import random
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.json import encode

from pipeline.simulate import clock
from pipeline.simulate.clock import Span
from pipeline.simulate.sensors import Said, Sensors

DAY = 86_400_000
BEGIN = 1_760_000_000_000
"""When the simulation begins: 2025-10-09, in ms since 1970."""
STREAM = "main"
Record = dict[str, Any]
OutcomeRange = tuple[int, int, str, str]
Before = tuple[int, dict[str, Any] | None]
AHEAD = 400 * DAY
WAITING = 5
"""Messages that a backup has in its outbox."""


@dataclass
class Truth:
    """What the tables must say."""

    silver: list[tuple[object, ...]] = field(default_factory=list)
    """fleet.SILVER of each message that landed whole."""
    boards: list[tuple[str, str, str]] = field(default_factory=list)
    """Gateway and two epochs of one card image that ran at one time."""
    bronze: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    lacking: list[tuple[str, str, int, bool]] = field(default_factory=list)
    """fleet.LACKING of numbers that somebody names."""


@dataclass
class Landed:
    """Files by name below the landing folder."""

    files: dict[str, bytes] = field(default_factory=dict)


class Gateway:
    """Lives some days: restarts, backlogs, wrong clocks, old backups, copied cards."""

    def __init__(self, index: int, chance: random.Random, truth: Truth) -> None:
        self.name = f"g{index:06d}"
        self._sensors = Sensors(chance, index)
        self._said: dict[int, Said] = {}
        """What the sensors said by number, of a start."""
        self._chance = chance
        self._truth = truth
        self._landed = Landed()
        self._clockless = chance.random() < 0.2
        self._start = 0
        self._previous: dict[str, Any] | None = None
        self._backups: list[list[Record]] = []
        """What waited when each start's backup was made, in the order of the starts."""
        self._waiting: list[Record] = []
        self._unnamed = 0
        """The last numbers of the start before, which only the next start names."""
        self._lacking: dict[str, dict[int, bool]] = {}
        """Numbers of each epoch that did not arrive, and whether its ledger names a rule for it."""
        self._named: Counter[str] = Counter()
        """The highest number of each epoch that arrived or that a ledger names."""

    def live(self, days: int, rows: int) -> Landed:
        """Return what it lands in so many days of so many messages each."""
        day = 0
        while day < days:
            self._restore()
            lasting = min(days - day, self._chance.randint(3, 12))
            before = self._start, self._previous
            ahead = self._chance.random() < 0.05
            epoch = self._one_start(BEGIN + day * DAY, lasting, rows, ahead=ahead)
            if self._chance.random() < 0.05:
                self._twin(before, epoch, BEGIN + day * DAY, lasting, rows, ahead=ahead)
            day += lasting
        self._foreign()
        entry = {"epoch": "ffffffffff", "start": self._start + 1, "previous": self._previous}
        last = _lines([entry | {"stream": STREAM, "ranges": []}])  # it tells how far the last went
        self._landed.files[f"{self.name}/ledger/ffffffffff.1.jsonl"] = last
        self._name(self._previous)
        self._truth.lacking += [
            (self.name, epoch, number, by_rule)
            for epoch, numbers in self._lacking.items()
            for number, by_rule in sorted(numbers.items())
            if number <= self._named[epoch]
        ]
        return self._landed

    def _name(self, previous: dict[str, Any] | None) -> None:
        """Note how far a start says that the one before went."""
        if previous is not None:
            epoch, last = previous["epoch"], previous["last"][STREAM]
            self._named[epoch] = max(self._named[epoch], last)

    def _twin(
        self, before: Before, epoch: str, begins: int, days: int, rows: int, *, ahead: bool
    ) -> None:
        """Let another board run the same card image at the same time; nobody follows it."""
        after = self._start, self._previous, self._unnamed
        self._start, self._previous = before
        other = self._one_start(begins, days, rows, twin=True, ahead=ahead)
        self._truth.boards.append((self.name, min(epoch, other), max(epoch, other)))
        self._backups.pop()
        self._start, self._previous, self._unnamed = after

    def _foreign(self) -> None:
        """Put a Parquet file of another program into the folder now and then."""
        if self._chance.random() < 0.1:
            rows = {"gateway_id": [self.name], "time": [datetime.fromtimestamp(BEGIN // 1000, UTC)]}
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table(rows), sink)
            self._landed.files[f"{self.name}/report.parquet"] = sink.getvalue().to_pybytes()
            self._truth.reasons["file_unreadable"] += 1

    def _one_start(
        self, begins: int, days: int, rows: int, *, twin: bool = False, ahead: bool = False
    ) -> str:
        """Land what a start sends; `ahead` is a clock of next year, which nobody corrects.

        The first day of such a clock goes out at once, or nobody could know when the start ran.
        """
        self._start += 1
        self._said = {}
        epoch = f"{self._chance.getrandbits(40):010x}"
        spans = clock.spans(self._chance, begins, days * rows, clockless=self._clockless)
        if ahead:
            spans = [(1, days * rows, -AHEAD)]
        ranges: list[OutcomeRange] = []
        sent: dict[int, list[Record]] = {}
        number = 0
        for day in range(days):
            late = 0 if ahead and day == 0 else self._outage(days)
            for index in range(rows):
                number += 1
                happened = begins + day * DAY + (index + 1) * (DAY // (rows + 1))
                outcome = self._outcome(away=late > 0)
                ranges.append((number, number, outcome, _CAUSES[outcome]))
                if outcome != "delivered":
                    self._truth.outcomes[outcome] += 1
                    self._lacking.setdefault(epoch, {})[number] = outcome == "filtered"
                    continue
                received = happened + 200 + late * DAY
                time = happened - clock.offset_of(spans, number)
                record = self._record(epoch, number, time, received, resent=late > 0)
                sent.setdefault(day + late, []).append(record)
        for records in sent.values():
            self._land(epoch, records, spans)
        self._write_ledger(epoch, ranges, number, whole=twin)
        if not ahead:
            self._put("clock", epoch, clock.records(epoch, spans, begins, days * DAY))
        return epoch

    def _restore(self) -> None:
        """Go back to the backup of the start before the last now and then.

        What waited in it comes again, and the next start tells of its epoch as if no numbers
        had followed.
        """
        if len(self._backups) < 2 or not self._backups[-2] or self._chance.random() < 0.9:
            return
        records = self._backups[-2]
        epoch, seqs = records[0]["epoch"], [each["seq"] for each in records]
        self._start -= 1
        self._truth.outcomes["not_reported"] -= self._unnamed
        self._previous = {"epoch": epoch, "last": {STREAM: max(seqs)}}
        name = f"{epoch}.{STREAM}.{min(seqs)}-{max(seqs)}.{len(seqs)}.jsonl"
        if f"{self.name}/{name}" not in self._landed.files:
            self._landed.files[f"{self.name}/{name}"] = _lines(records)
            self._truth.bronze += len(records)

    def _outage(self, days: int) -> int:
        """Return the days that today's messages wait for the link; a month now and then."""
        if self._chance.random() < 0.9:
            return 0
        return self._chance.choice((1, 2, days, 30))

    def _outcome(self, *, away: bool) -> str:
        rest = (0.97, 0.02, 0.006, 0.0035, 0.0005) if not away else (0.9, 0.02, 0.02, 0.055, 0.005)
        return self._chance.choices(tuple(_CAUSES), rest)[0]

    def _record(self, epoch: str, number: int, time: int, received: int, *, resent: bool) -> Record:
        said = self._said[number] = self._sensors.say(number)
        return {
            "gateway_id": self.name,
            "epoch": epoch,
            "stream": STREAM,
            "seq": number,
            "time": time,
            "received": received,
            "topic": said.topic,
            "payload": b64encode(said.payload).decode(),
            "qos": self._chance.choice((0, 1)),
            "retain": False,
            "resent": resent,
            "content_type": None,
            "properties": [],
        }

    def _land(self, epoch: str, records: list[Record], spans: list[Span]) -> None:
        """Put a day's records into a file, some again, and damage one now and then."""
        chance, truth = self._chance, self._truth
        again = [each | {"resent": True} for each in records if chance.random() < 0.02]
        conflict = []
        if chance.random() < 0.01:
            other = {"payload": b64encode(b"other").decode(), "received": 4_000_000_000_000}
            conflict.append(records[0] | other)
            truth.reasons["key_conflict"] += 1
        lines = [encode(each) for each in (*records, *again, *conflict)]
        whole = {each["seq"]: each for each in records}
        count = len(lines)
        content = b"".join(line + b"\n" for line in lines)
        if chance.random() < 0.01:  # the disk lost the end of the file
            content = content[: -len(lines[-1]) // 2]
            truth.reasons["truncated"] += 1
            gone = (*records, *again, *conflict)[-1]
            if gone["payload"] == b64encode(b"other").decode():
                truth.reasons["key_conflict"] -= 1
            elif not again:
                del whole[gone["seq"]]
                self._lacking.setdefault(epoch, {})[gone["seq"]] = False
                truth.outcomes["missing"] += 1
            count -= 1
        elif chance.random() < 0.01:  # something else wrote into it
            content += b'{"gateway_id": "' + self.name.encode() + b'"}\nnot json\n'
            truth.reasons.update({"key_incomplete": 1, "not_json": 1})
            lines += [b"", b""]
        truth.bronze += count
        truth.outcomes["delivered"] += len(whole)
        for seq, each in whole.items():
            ms = each["time"] + clock.offset_of(spans, seq)
            ahead = each["time"] > each["received"] + DAY
            said = self._said[seq]
            key = (self.name, epoch, seq, each["received"] if ahead else ms, each["received"])
            truth.silver.append((*key, len(said.payload), *said[2:]))
        self._waiting = [each | {"resent": True} for each in whole.values()][-WAITING:]
        self._named[epoch] = max(self._named[epoch], *whole)
        seqs = [each["seq"] for each in records]
        name = f"{epoch}.{STREAM}.{min(seqs)}-{max(seqs)}.{len(lines)}.jsonl"
        self._landed.files[f"{self.name}/{name}"] = content

    def _write_ledger(
        self, epoch: str, ranges: list[OutcomeRange], last: int, *, whole: bool
    ) -> None:
        entry = {"epoch": epoch, "start": self._start, "previous": self._previous, "stream": STREAM}
        silent = self._chance.randint(1, 5) if self._chance.random() < 0.05 else 0
        silent = 0 if whole else silent
        kept = [list(each) for each in _joined(ranges[: len(ranges) - silent])]
        self._name(self._previous)
        self._named[epoch] = max(self._named[epoch], last - silent)
        for number, _, outcome, _ in ranges[len(ranges) - silent :]:
            if outcome != "delivered":
                self._lacking[epoch][number] = False
                self._truth.outcomes.update({outcome: -1, "not_reported": 1})
        self._truth.outcomes["missing"] -= self._move_unreported(
            epoch, ranges[len(ranges) - silent :]
        )
        self._put("ledger", epoch, [entry | {"ranges": []}, entry | {"ranges": kept}])
        self._backups.append(self._waiting)
        self._previous = {"epoch": epoch, "last": {STREAM: last}}

    def _put(self, folder: str, epoch: str, lines: list[dict[str, Any]]) -> None:
        if lines:
            self._landed.files[f"{self.name}/{folder}/{epoch}.1.jsonl"] = _lines(lines)

    def _move_unreported(self, epoch: str, silent: list[OutcomeRange]) -> int:
        """Return how many missing numbers no ledger has yet; which count as not reported."""
        came = {row[2] for row in self._truth.silver if row[1] == epoch}
        after = takewhile(lambda each: each[0] not in came, reversed(silent))
        self._unnamed = sum(1 for _ in after)
        gone = [n for n, _, outcome, _ in silent if outcome == "delivered" and n not in came]
        self._truth.outcomes["not_reported"] += len(gone)
        return len(gone)


_CAUSES = {
    "delivered": "",
    "filtered": "0@4c1d20aa",
    "expired": "maximum_age",
    "evicted": "drop-oldest",
    "lost": "a damaged database",
}


def _joined(ranges: list[OutcomeRange]) -> Iterator[OutcomeRange]:
    """Yield neighbours of one outcome as one range."""
    before: OutcomeRange | None = None
    for each in ranges:
        if before is not None and before[2] == each[2]:
            before = (before[0], each[1], before[2], before[3])
            continue
        if before is not None:
            yield before
        before = each
    if before is not None:
        yield before


def _lines(entries: list[dict[str, Any]]) -> bytes:
    return b"".join(encode(entry) + b"\n" for entry in entries)
