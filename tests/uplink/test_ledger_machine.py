"""Whatever happens, each number ends once, or waits, or is known to be unrecorded."""

import asyncio
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import gateway.storage.engine.writer as attempts_module
import gateway.storage.engine.writer as writer_module
import gateway.storage.ledger.pages as pages_module
import gateway.uplink.reports.ledger_reports as reports_module
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.ledger.range import parse_reason
from gateway.storage.outbox.row import Outcome
from tests.support.disk.ledger import LedgerStore, open_ledger_store
from tests.support.disk.storage import crash_image, until

T = TypeVar("T")
Name = tuple[str, str, int]

SUCCESS, REFUSAL = ReasonCode.SUCCESS, ReasonCode.NOT_AUTHORIZED

MESSAGES = st.tuples(
    st.sampled_from(["main", "main", "slow"]),
    st.sampled_from(["0@aaaaaaaa", "1@bbbbbbbb", None]),
    st.integers(1, 3),
)
"""A stream, the rule that filters or None, and how many."""

ENDS = st.sampled_from(
    [
        (Outcome.DELIVERED, ""),
        (Outcome.EXPIRED, ""),
        (Outcome.EVICTED, "drop-oldest"),
        (Outcome.REJECTED, "0x87"),
        (Outcome.LOST, "a damaged database"),
    ]
)
OUTCOMES = {outcome.value for outcome in Outcome}


class Fleet:
    """Takes entries in any order, and keeps the first word on each number."""

    def __init__(self) -> None:
        self.said: dict[Name, tuple[str, str]] = {}
        self.previous: dict[str, dict[str, Any] | None] = {}

    def take(self, entry: dict[str, Any]) -> None:
        assert self.previous.setdefault(entry["epoch"], entry["previous"]) == entry["previous"]
        for first, last, outcome, reason in entry["ranges"]:
            assert first <= last
            assert sum(parse_reason(reason, last - first + 1).values()) == last - first + 1
            for number in range(first, last + 1):
                name = (entry["epoch"], entry["stream"], number)
                self.said.setdefault(name, (outcome, reason))


def at_one_moment(reader: sqlite3.Connection) -> list[list[Any]]:
    """Return the rows of outbox, ledger and starts as one commit left them."""
    reader.execute("BEGIN")
    try:
        return [
            reader.execute(statement).fetchall()
            for statement in (
                "SELECT epoch, stream, seq FROM outbox",
                "SELECT epoch, stream, first, last, outcome, reason FROM ledger",
                "SELECT epoch, last, previous FROM starts",
            )
        ]
    finally:
        reader.execute("COMMIT")


class LedgerMachine(RuleBasedStateMachine):
    """Messages, ends, commits, refusals, passes, answers, crashes and stops, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-"))
        self.fleet = Fleet()
        self.ends: dict[Name, set[str]] = {}
        self.epochs: list[str] = []
        self.kept: LedgerStore

    @initialize()
    def first_start(self) -> None:
        self._start(self.folder / "0")

    @rule(messages=st.lists(MESSAGES, min_size=1, max_size=5), commit=st.booleans())
    def accept(self, messages: list[tuple[str, str | None, int]], commit: bool) -> None:
        """Have messages filtered by a rule, or go to the outbox."""
        self._run(self._accept(messages))
        self._commit(commit)

    @rule(
        end=ENDS,
        places=st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True),
        commit=st.booleans(),
    )
    def end(self, end: tuple[Outcome, str], places: list[int], commit: bool) -> None:
        rows = self._run(self.kept.store.outbox.fetch(0, 100))
        left = [row for row in rows if (row.epoch, row.stream, row.seq) not in self._removed]
        chosen = [left[place] for place in places if place < len(left)]
        for row in chosen:
            name = (row.epoch, row.stream, row.seq)
            self._removed.add(name)
            self.ends.setdefault(name, set()).add(end[0].value)
        self._run(self._soon(self.kept.store.outbox.remove, chosen, *end))
        self._commit(commit)

    @rule(answers=st.lists(st.sampled_from([SUCCESS, SUCCESS, REFUSAL, None]), max_size=6))
    def tell(self, answers: list[ReasonCode | None]) -> None:
        """Have the fleet take, refuse, or take and lose the PUBACK with the connection."""
        self.kept.clock.step(reports_module.PASS_SECONDS)
        self._run(self.kept.reports.send_due())
        self._run(self._answer(answers))

    @rule()
    def compact(self) -> None:
        self._run(self.kept.pages.shorten())

    @rule(in_good_order=st.booleans())
    def start_again(self, in_good_order: bool) -> None:
        """Stop, or leave what a crash would."""
        left = self._folder
        if not in_good_order:
            left = crash_image(self._folder, self.folder / str(len(self.epochs)))
        self._run(self.kept.close())
        self._start(left)

    @rule(
        messages=st.lists(MESSAGES, min_size=1, max_size=5),
        refusal=st.sampled_from(["disk I/O error", "database or disk is full"]),
        crash=st.booleans(),
    )
    def refuse(
        self, messages: list[tuple[str, str | None, int]], refusal: str, crash: bool
    ) -> None:
        """Let the disk take no batch for a while, perhaps until a crash."""
        left = self.folder / str(len(self.epochs))
        self._run(self._refuse(messages, refusal, left if crash else None))
        if crash:
            self._run(self.kept.close())
            self._start(left)

    @invariant()
    def every_number_is_accounted_for(self) -> None:
        waiting, kept, last = self._run(self._on_disk())
        for epoch in self.epochs:
            for stream in ("main", "slow"):
                known = range(1, last[epoch].get(stream, 0) + 1)
                for number in known:
                    name = (epoch, stream, number)
                    places = (name in waiting) + (name in kept or name in self.fleet.said)
                    assert places == 1, name
        given = {
            (epoch, stream, n)
            for epoch in self.epochs
            for stream, to in last[epoch].items()
            for n in range(1, to + 1)
        }
        assert waiting | kept.keys() | self.fleet.said.keys() <= given
        for name, (outcome, reason) in (kept | self.fleet.said).items():
            self._is_true(name, outcome, reason)

    def teardown(self) -> None:
        if hasattr(self, "kept"):
            self._run(self.kept.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def _is_true(self, name: Name, outcome: str, reason: str) -> None:
        """One of the ends that the number had, or a compacted range's, which is never `lost`."""
        if "*" in reason and parse_reason(reason, 0).keys() <= OUTCOMES:
            assert outcome != "lost"
            assert self.ends[name] & parse_reason(reason, 0).keys()
        else:
            assert outcome in self.ends[name]

    def _start(self, folder: Path) -> None:
        self._folder = folder
        self._removed: set[Name] = set()
        epoch = f"{len(self.epochs) + 1:010x}"
        self.epochs.append(epoch)
        self.kept = self._run(open_ledger_store(folder, epoch))
        self._run(self._soon(self.kept.reports.announce))

    def _commit(self, wanted: bool) -> None:
        if wanted:
            self._run(self.kept.store.settle())
            self._removed.clear()

    async def _accept(self, messages: list[tuple[str, str | None, int]]) -> None:
        for stream, filtered, count in messages:
            if filtered is None:
                self.kept.take(count, stream)
                continue
            self.kept.filter(count, stream, filtered)
            last = self.kept.last[stream]
            for number in range(last - count + 1, last + 1):
                self.ends[self.kept.epoch, stream, number] = {"filtered"}

    async def _refuse(
        self, messages: list[tuple[str, str | None, int]], refusal: str, image: Path | None
    ) -> None:
        store = self.kept.store
        refused = 0

        def refuse(batch: object) -> None:
            nonlocal refused
            refused += 1
            raise sqlite3.OperationalError(refusal)

        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(store.database.writer, "commit", refuse)
            await self._accept(messages)
            self.kept.ledger.save()
            await store.end_turn()
            await until(lambda: refused > 1)
            if image is not None:
                crash_image(self._folder, image)
        await store.settle()
        self._removed.clear()

    async def _soon(self, call: Any, *arguments: Any) -> None:
        call(*arguments)

    async def _answer(self, answers: list[ReasonCode | None]) -> None:
        own = self.kept.own
        lost = []
        for answer in answers:
            message = own.next()
            if message is None:
                break
            if answer is not REFUSAL:
                self.fleet.take(json.loads(message.payload))
            if answer is None:
                lost.append(message)
            else:
                own.answered(message, answer)
        for message in lost:
            own.requeue(message)
        self.kept.clock.step(60)

    async def _on_disk(
        self,
    ) -> tuple[set[Name], dict[Name, tuple[str, str]], dict[str, dict[str, int]]]:
        """Return the waiting names, the ledger's, and the last numbers, as a crash leaves them."""
        reader = self.kept.store.database.reader
        outbox, ledger, starts = await reader.run(lambda: at_one_moment(reader._connection))
        waiting = {(*row,) for row in outbox}
        ranges: dict[Name, tuple[str, str]] = {}
        for epoch, stream, first, to, outcome, reason in ledger:
            for number in range(first, to + 1):
                assert (epoch, stream, number) not in ranges, "two ranges have one number"
                ranges[epoch, stream, number] = (outcome, reason)
        last: dict[str, dict[str, int]] = {epoch: {} for epoch in self.epochs}
        for epoch, text, before in starts:
            last[epoch] = json.loads(text)
            if before is not None:
                known = json.loads(before)
                last[known["epoch"]] = known["last"]
        for known in self.fleet.previous.values():
            if known is not None:
                last[known["epoch"]] = known["last"]
        return waiting, ranges, last

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(self._quiet_after(call))

    async def _quiet_after(self, call: Coroutine[Any, Any, T]) -> T:
        """Let a commit that has begun end, so that equal steps lead to equal states."""
        result = await call
        if hasattr(self, "kept"):
            writer = self.kept.store.writer
            await until(lambda: not writer._busy)
        return result


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "FIRST_RETRY", 0.001)
    monkeypatch.setattr(writer_module, "SPACE_CHECK_SECONDS", 3_600.0)  # commits nothing by itself
    monkeypatch.setattr(pages_module, "MAX_LEDGER_RANGES", 4)
    monkeypatch.setattr(pages_module, "COMPACTION_PAGE", 3)
    monkeypatch.setattr(pages_module, "GROWTH", 1.0)
    monkeypatch.setattr(reports_module, "PAGE_RANGES", 2)


TestLedger = pytest.mark.uncovered(LedgerMachine.TestCase)
TestLedger.settings = settings(max_examples=settings().max_examples // 3)
