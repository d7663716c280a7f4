"""One made-up gateway: what it lands, and what is true of it."""

import random
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from msgspec.json import encode

from pipeline.simulate import clock
from pipeline.simulate.clock import Span

DAY = 86_400_000
BEGIN = 1_760_000_000_000
"""When the simulation begins: 2025-10-09, in ms since 1970."""
STREAM = "main"
HOSTILE = (
    b"", b"\xff\xfe\x00", b"null", b"[[[[", b'{"value":1e999}', b'{"value":null}', b'{"value":NaN}',
    b'{"value":"\\ud800"}', b'{"value":' + b"9" * 400 + b"}", b"'; DROP TABLE silver; --",
)  # fmt: skip
Record = dict[str, Any]
Told = tuple[int, int, str, str]
WAITING = 5
"""Messages that a backup has in its outbox."""


@dataclass
class Truth:
    """What the tables must say."""

    silver: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Gateway, epoch, number and event time in ms of each message that landed whole."""
    bronze: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class Landed:
    """Files by name below the landing folder."""

    files: dict[str, bytes] = field(default_factory=dict)


class Gateway:
    """Lives some days: restarts, outages with a backlog, clocks that are wrong, old backups."""

    def __init__(self, name: str, chance: random.Random, truth: Truth) -> None:
        self.name = name
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

    def live(self, days: int, rows: int) -> Landed:
        """Return what it lands in so many days of so many messages each."""
        day = 0
        while day < days:
            self._restore()
            lasting = min(days - day, self._chance.randint(3, 12))
            self._one_start(BEGIN + day * DAY, lasting, rows)
            day += lasting
        entry = {"epoch": "ffffffffff", "start": self._start + 1, "previous": self._previous}
        last = _lines([entry | {"stream": STREAM, "ranges": []}])  # it tells how far the last went
        self._landed.files[f"{self.name}/ledger/ffffffffff.1.jsonl"] = last
        return self._landed

    def _one_start(self, begins: int, days: int, rows: int) -> None:
        self._start += 1
        epoch = f"{self._chance.getrandbits(40):010x}"
        spans = clock.spans(self._chance, begins, days * rows, clockless=self._clockless)
        told: list[Told] = []
        sent: dict[int, list[Record]] = {}
        number = 0
        for day in range(days):
            late = self._outage(days)
            for index in range(rows):
                number += 1
                happened = begins + day * DAY + (index + 1) * (DAY // (rows + 1))
                outcome = self._outcome(away=late > 0)
                told.append((number, number, outcome, _CAUSES[outcome]))
                if outcome != "delivered":
                    self._truth.outcomes[outcome] += 1
                    continue
                received = happened + 200 + late * DAY
                time = happened - clock.offset_of(spans, number)
                record = self._record(epoch, number, time, received, resent=late > 0)
                sent.setdefault(day + late, []).append(record)
        for records in sent.values():
            self._land(epoch, records, spans)
        self._tell(epoch, told, number)
        self._put("clock", epoch, clock.records(epoch, spans, begins, days * DAY))

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
        self._truth.outcomes["not_told"] -= self._unnamed
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
        hostile = self._chance.random() < 0.01
        reading = b'{"value":%.2f,"unit":"C"}' % (20 + 5 * self._chance.random())
        payload = self._chance.choice(HOSTILE) if hostile else reading
        return {
            "gateway_id": self.name,
            "epoch": epoch,
            "stream": STREAM,
            "seq": number,
            "time": time,
            "received": received,
            "topic": f"sensors/n{number % 5}/temperature",
            "payload": b64encode(payload).decode(),
            "qos": 1,
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
                truth.outcomes["missing"] += 1
            count -= 1
        elif chance.random() < 0.01:  # something else wrote into it
            content += b'{"gateway_id": "' + self.name.encode() + b'"}\nnot json\n'
            truth.reasons.update({"key_incomplete": 1, "not_json": 1})
            lines += [b"", b""]
        truth.bronze += count
        truth.outcomes["delivered"] += len(whole)
        truth.silver += [
            (self.name, epoch, seq, each["time"] + clock.offset_of(spans, seq))
            for seq, each in whole.items()
        ]
        self._waiting = [each | {"resent": True} for each in whole.values()][-WAITING:]
        seqs = [each["seq"] for each in records]
        name = f"{epoch}.{STREAM}.{min(seqs)}-{max(seqs)}.{len(lines)}.jsonl"
        self._landed.files[f"{self.name}/{name}"] = content

    def _tell(self, epoch: str, told: list[Told], last: int) -> None:
        entry = {"epoch": epoch, "start": self._start, "previous": self._previous, "stream": STREAM}
        silent = self._chance.randint(1, 5) if self._chance.random() < 0.05 else 0
        kept = [list(each) for each in _joined(told[: len(told) - silent])]
        for _, _, outcome, _ in told[len(told) - silent :]:
            if outcome != "delivered":
                self._truth.outcomes.update({outcome: -1, "not_told": 1})
        self._truth.outcomes["missing"] -= self._untell(epoch, told[len(told) - silent :])
        self._put("ledger", epoch, [entry | {"ranges": []}, entry | {"ranges": kept}])
        self._backups.append(self._waiting)
        self._previous = {"epoch": epoch, "last": {STREAM: last}}

    def _put(self, folder: str, epoch: str, lines: list[dict[str, Any]]) -> None:
        if lines:
            self._landed.files[f"{self.name}/{folder}/{epoch}.1.jsonl"] = _lines(lines)

    def _untell(self, epoch: str, silent: list[Told]) -> int:
        """Return how many missing numbers nobody told of; those are not told instead."""
        came = {seq for _, of, seq, _ in self._truth.silver if of == epoch}
        after = takewhile(lambda each: each[0] not in came, reversed(silent))
        self._unnamed = sum(1 for _ in after)
        gone = [n for n, _, outcome, _ in silent if outcome == "delivered" and n not in came]
        self._truth.outcomes["not_told"] += len(gone)
        return len(gone)


_CAUSES = {
    "delivered": "",
    "filtered": "0@4c1d20aa",
    "expired": "maximum_age",
    "evicted": "drop-oldest",
    "lost": "a damaged database",
}


def _joined(told: list[Told]) -> Iterator[Told]:
    """Yield neighbours of one outcome as one range."""
    before: Told | None = None
    for each in told:
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
