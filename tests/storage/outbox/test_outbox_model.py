"""An outbox, bounded or not, with crashes, against a model."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import gateway.storage.outbox.bounds as totals_module
from gateway.settings.outbox import Mode
from gateway.settings.when_full import WhenFull
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings
from gateway.storage.outbox.row import OutboxRow, Outcome, row_size
from tests.support.disk.storage import crash_image, open_store, outbox_row

PRIORITIES = {"low": 1, "main": 5, "high": 9}

Name = tuple[str, int]
"""Stream and number."""

BOUND = st.fixed_dictionaries(
    {}, optional={"maximum_messages": st.integers(0, 6), "maximum_bytes": st.integers(200, 6_000)}
)
OWN_POLICIES = [WhenFull.REJECT, WhenFull.DROP_OLDEST, WhenFull.DROP_NEWEST]


@st.composite
def outbox_settings(draw: st.DrawFn) -> OutboxSettings:
    streams = [
        StreamSettings(
            name,
            priority,
            Retention(**draw(BOUND), when_full=draw(st.sampled_from(OWN_POLICIES))),
            draw(st.sampled_from([Mode.ALL, Mode.LATEST])),
        )
        for name, priority in PRIORITIES.items()
    ]
    whole = Retention(**draw(BOUND), when_full=draw(st.sampled_from(list(WhenFull))))
    return OutboxSettings(whole, tuple(streams))


class Waiting(NamedTuple):
    """A row of the model."""

    stream: str
    seq: int
    topic: str
    size: int

    @property
    def name(self) -> Name:
        return self.stream, self.seq


class Model:
    """The outbox as a list, oldest first, with the policies of docs/use/configuration.md."""

    def __init__(self, outbox: OutboxSettings) -> None:
        whole = outbox.retention
        size = whole.maximum_bytes
        bound = None if size is None else size - size // 4
        self.whole = Retention(bound, whole.maximum_messages, None, whole.when_full)
        self.streams = {stream.name: stream for stream in outbox.streams}
        self.rows: list[Waiting] = []
        self.sent: set[Name] = set()
        self.newest: dict[tuple[str, str], Waiting] = {}
        self.ended: dict[Name, tuple[Outcome, str]] = {}
        self.last: dict[str, Name] = {}  # the newest row of each stream that was taken in
        self.last_of_all: Name | None = None

    @property
    def names(self) -> set[Name]:
        """What waits."""
        return {row.name for row in self.rows}

    def restart(self) -> None:
        self.sent = set()
        latest = [row for row in self.rows if self.streams[row.stream].mode is Mode.LATEST]
        self.newest = {(row.stream, row.topic): row for row in latest}

    def admits(self, row: Waiting) -> bool:
        """Whether it is taken, now or after others have left."""
        rest = [each for each in self.rows if each != self._older(row)] + [row]
        own = [each for each in rest if each.stream == row.stream]
        bounds = [(self.streams[row.stream].retention, own), (self.whole, rest)]
        return not any(
            retention.when_full is WhenFull.REJECT and over(retention, rows)
            for retention, rows in bounds
        )

    def add(self, row: Waiting) -> None:
        older = self._older(row)
        if older is not None:
            self.end(older, Outcome.EVICTED, "latest")
        own = self.streams[row.stream].retention
        while over(own, [*(each for each in self.rows if each.stream == row.stream), row]):
            if not self._one_leaves(row, own, [row.stream]):
                break
        while row.name not in self.ended and over(self.whole, [*self.rows, row]):
            if not self._one_leaves(row, self.whole, list(self.streams)):
                break
        if row.name not in self.ended:
            self.rows.append(row)
            self.last[row.stream] = self.last_of_all = row.name
            if self.streams[row.stream].mode is Mode.LATEST:
                self.newest[row.stream, row.topic] = row

    def end(self, row: Waiting, outcome: Outcome, reason: str = "") -> None:
        self.ended[row.name] = (outcome, reason)
        if row in self.rows:
            self.rows.remove(row)
        if self.newest.get((row.stream, row.topic)) == row:
            del self.newest[row.stream, row.topic]

    def keep_bounds(self) -> None:
        """Give up what is too much now, as sent rows have come back or restarts have freed them."""
        while (found := self._surplus()) is not None:
            self.end(found[0], Outcome.EVICTED, found[1])

    def _surplus(self) -> tuple[Waiting, WhenFull] | None:
        for name, stream in self.streams.items():
            own = [row for row in self.rows if row.stream == name]
            policy = stream.retention.when_full
            if policy is WhenFull.DROP_OLDEST and over(stream.retention, own):
                row = self._first(own)
                if row is not None and row.name != self.last.get(name):
                    return row, policy
        policy = self.whole.when_full
        if policy in (WhenFull.REJECT, WhenFull.DROP_NEWEST) or not over(self.whole, self.rows):
            return None
        rows = self.rows
        if policy is WhenFull.DROP_LOWEST_PRIORITY:
            lowest = min(PRIORITIES[row.stream] for row in rows)
            rows = [row for row in rows if PRIORITIES[row.stream] == lowest]
        row = self._first(rows)
        return None if row is None or row.name == self.last_of_all else (row, policy)

    def _first(self, rows: list[Waiting]) -> Waiting | None:
        return next((row for row in rows if row.name not in self.sent), None)

    def _older(self, row: Waiting) -> Waiting | None:
        older = self.newest.get((row.stream, row.topic))
        return None if older is None or older.name in self.sent else older

    def _one_leaves(self, row: Waiting, bound: Retention, streams: list[str]) -> bool:
        """Give one up; False when there is none, or when it was the new row itself."""
        policy = bound.when_full
        if policy is WhenFull.REJECT:
            return False
        if policy is WhenFull.DROP_NEWEST or over(bound, [row]):
            self.end(row, Outcome.EVICTED, policy)
            return False
        if policy is WhenFull.DROP_LOWEST_PRIORITY and self.rows:
            lowest = min(PRIORITIES[each.stream] for each in self.rows)
            if PRIORITIES[row.stream] < lowest:
                self.end(row, Outcome.EVICTED, policy)
                return False
            streams = [name for name in streams if PRIORITIES[name] == lowest]
        for each in self.rows:
            if each.stream in streams and each.name not in self.sent:
                self.end(each, Outcome.EVICTED, policy)
                return True
        return False


def over(bound: Retention, rows: list[Waiting]) -> bool:
    return bound.over(len(rows), sum(row.size for row in rows))


class BoundedOutbox(RuleBasedStateMachine):
    """Each number that was taken waits or has ended, in memory and in what a crash leaves.

    That is the outbox as of the end of one batch: never a part of a batch, and never less than
    was said to be on disk.
    """

    @initialize(outbox=outbox_settings(), scan_rows=st.sampled_from([2, 10_000]))
    def begin(self, outbox: OutboxSettings, scan_rows: int) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(totals_module, "SCAN_ROWS", scan_rows)
        self._folders = tempfile.TemporaryDirectory()
        self._crashes = 0
        self._folder = Path(self._folders.name) / "0"
        self._folder.mkdir()
        self._runner = asyncio.Runner()
        self._settings = outbox
        self.model = Model(outbox)
        self._last = dict.fromkeys(PRIORITIES, 0)
        self._start()

    def _start(self) -> None:
        self.store = self._runner.run(open_store(self._folder, settings=self._settings))
        self.ended: dict[Name, tuple[Outcome, str]] = {}
        self._held: list[OutboxRow] = []
        self.model.ended = {}
        self.model.restart()
        self.by_batch: dict[int, list[set[Name]]] = {0: [self.model.names]}
        self.store.outbox.on_outcome.append(self._on_outcome)

    def _on_outcome(self, rows: Sequence[OutboxRow], outcome: Outcome, reason: str) -> None:
        """Keep a ledger as simple as can be, in the table `meta`."""
        for row in rows:
            assert (row.stream, row.seq) not in self.ended, "ended twice"
            self.ended[row.stream, row.seq] = (outcome, reason)
            name = f"{row.stream}.{row.seq}"
            self.store.writer.add("INSERT INTO meta VALUES (?, 1)", (name,))

    @rule(
        stream=st.sampled_from(list(PRIORITIES)),
        topic=st.sampled_from(["a", "b"]),
        size=st.sampled_from([0, 100, 1_500, 5_000]),
        count=st.integers(1, 3),
    )
    def publish(self, stream: str, topic: str, size: int, count: int) -> None:
        for _ in range(count):
            row = outbox_row(self._last[stream] + 1, stream, topic=topic, payload=bytes(size))
            waiting = Waiting(stream, row.seq, topic, row_size(row))
            admitted = self.store.outbox.admits([row])
            assert admitted == self.model.admits(waiting)
            if admitted:
                self._last[stream] += 1
                self.store.outbox.add(row)
                self.model.add(waiting)
        self.by_batch[self.store.writer.batch] = [self.model.names]

    @rule(places=st.lists(st.integers(0, 100), max_size=4))
    def send(self, places: list[int]) -> None:
        """Some rows that are on disk are on their way to the fleet."""
        rows = self._runner.run(self.store.outbox.fetch(0, 1_000))
        for row in {
            rows[place % len(rows)].id: rows[place % len(rows)] for place in places if rows
        }.values():
            assert self.store.outbox.claim(row, row.time)
            if (row.stream, row.seq) not in self.model.sent:
                self._held.append(row)
                self.model.sent.add((row.stream, row.seq))

    @rule(count=st.integers(1, 3))
    def acknowledge(self, count: int) -> None:
        for row in self._held[:count]:
            self._leave_sent(row)
            self.store.outbox.remove([row], Outcome.DELIVERED)
            waiting = next(each for each in self.model.rows if each.name == (row.stream, row.seq))
            self.model.end(waiting, Outcome.DELIVERED)
        self.by_batch[self.store.writer.batch] = [self.model.names]
        self.look()

    @rule(count=st.integers(1, 3))
    def put_off(self, count: int) -> None:
        for row in self._held[:count]:
            self._leave_sent(row)
            row.claimed = 0
        self.look()

    def _leave_sent(self, row: OutboxRow) -> None:
        self._held.remove(row)
        self.model.sent.remove((row.stream, row.seq))

    @rule()
    def end_turn(self) -> None:
        self._runner.run(self.store.end_turn())

    @rule()
    def settle(self) -> None:
        self._runner.run(self.store.settle())
        assert self._on_disk() == self.model.rows

    @rule()
    def look(self) -> None:
        """What the outbox does from time to time: nothing but where rows may be given up again."""
        first = self.store.writer.batch
        self._runner.run(self.store.outbox.sweep(0, 0.0))
        self.model.keep_bounds()
        before = self.by_batch.get(first, [])
        for number in range(first, self.store.writer.batch + 1):
            self.by_batch[number] = [self.model.names, *(before if number == first else [])]

    @rule()
    def restart(self) -> None:
        self._runner.run(self.store.close())
        self._start()
        self.look()
        self._runner.run(self.store.settle())
        assert self._on_disk() == self.model.rows

    @rule(count=st.sampled_from([0, 2]), stream=st.sampled_from(list(PRIORITIES)))
    def crash(self, count: int, stream: str) -> None:
        """At any moment, also in the midst of a turn or while a commit runs in its thread."""
        self.publish(stream, "a", 0, count)
        promised, states = self.store.writer.committed, self.by_batch
        self._crashes += 1
        image = crash_image(self._folder, Path(self._folders.name) / str(self._crashes))
        self._runner.run(self.store.close())
        self._folder = image
        self.model.rows = []
        self._start()
        self.model.rows = self._on_disk()
        meta = self._runner.run(self._ended_on_disk())
        waiting = self.model.names
        before = max(number for number in states if number <= promised)
        assert any(waiting in each for number, each in states.items() if number >= before)
        self.by_batch = {0: [waiting]}
        assert not waiting & meta
        for each in PRIORITIES:
            numbers = [number for name, number in waiting | meta if name == each]
            self._last[each] = max(numbers, default=0)
            assert sorted(numbers) == list(range(1, self._last[each] + 1))
        self.model.restart()
        self.look()

    def _on_disk(self) -> list[Waiting]:
        rows = self._runner.run(self.store.outbox.fetch(0, 10_000, up_to=2**62))
        return [Waiting(row.stream, row.seq, row.message.topic, row.size) for row in rows]

    async def _ended_on_disk(self) -> set[Name]:
        rows = await self.store.database.reader.query(
            "SELECT name FROM meta WHERE name GLOB '*.*'", (), lambda cursor: cursor.fetchall()
        )
        pairs = (name.split(".") for (name,) in rows)
        return {(stream, int(number)) for stream, number in pairs}

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        outbox = self.store.outbox
        assert self.ended == self.model.ended
        assert outbox.rows == len(self.model.rows)
        assert outbox.bounds.bytes == sum(row.size for row in self.model.rows)
        self.store.counters.refresh()
        for stream in PRIORITIES:
            rows = [row for row in self.model.rows if row.stream == stream]
            prefix = f"tidegate/outbox/stream/{stream}"
            assert self.store.counters.count(f"{prefix}/rows") == len(rows)
            assert self.store.counters.count(f"{prefix}/bytes") == sum(row.size for row in rows)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self._runner.run(self.store.close())
            self._runner.close()
            self._folders.cleanup()
            self._patch.undo()


TestBoundedOutbox = pytest.mark.uncovered(BoundedOutbox.TestCase)
TestBoundedOutbox.settings = settings(max_examples=settings().max_examples // 3)


@pytest.mark.parametrize("ending", ["put off", "restart"])
@pytest.mark.parametrize("own", [False, True])
def test_what_was_sent_and_comes_back_is_given_up_again(ending: str, *, own: bool) -> None:
    bound = Retention(maximum_messages=3, when_full=WhenFull.DROP_OLDEST)
    free = Retention(when_full=WhenFull.REJECT)
    low = StreamSettings("low", 1, bound if own else free, Mode.ALL)
    machine = BoundedOutbox()
    machine.begin(OutboxSettings(free if own else bound, (low,)), 2)
    try:
        machine.publish("low", "a", 0, 3)
        machine.settle()
        machine.send([0, 1, 2])
        machine.publish("low", "a", 0, 2)
        machine.settle()
        machine.it_is_as_the_model_says()
        assert [row.seq for row in machine.model.rows] == [1, 2, 3, 5]
        if ending == "put off":
            machine.put_off(3)
        else:
            machine.restart()
        assert [row.seq for row in machine.model.rows] == [2, 3, 5]
        machine.settle()
    finally:
        machine.teardown()
