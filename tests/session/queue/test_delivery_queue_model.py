"""A queue, some of which is on disk alone, against a plain list, with any order of reads."""

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.properties import Properties
from gateway.mqtt.publication import Publication
from gateway.session.queue import delivery_queue
from gateway.session.queue import memory as queue_memory
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.queue.memory import QueueMemory
from gateway.session.span import SPAN_OVERHEAD, Span
from tests.support.broker.publications import publish
from tests.support.broker.spans import OVERHEAD, Row, keep

HEAD = 3
PAGE = 2


@dataclass(eq=False)
class Owed:
    """One message of a row, or of none; `publication` is what it was read from last."""

    number: int  # in its publication
    payload: bytes
    qos: int
    expiry: int | None
    row: Row | None
    publication: Publication

    @property
    def kept(self) -> int:
        return 0 if self.row is None else self.publication.size(self.number, 1) + OVERHEAD

    @property
    def size(self) -> int:
        return self.publication.size(self.number, 1) + SPAN_OVERHEAD

    @property
    def sequence(self) -> int:
        return 0 if self.row is None else self.row.base + self.number


class QueueAgainstList(RuleBasedStateMachine):
    """Plays the session, the journal and the disk; `owed` is what a plain queue would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)
        self.begin()
        self.owed: list[Owed] = []
        self.sequence = 0
        self.batch = 1
        self.asked: tuple[int, int] | None = None

    def teardown(self) -> None:
        self.patch.undo()

    def begin(self) -> None:
        self.memory = QueueMemory()
        self.queue = DeliveryQueue(memory=self.memory)

    @rule(
        spans=st.lists(
            st.tuples(
                st.sampled_from([True, True, True, False]),
                st.sampled_from([None, None, None, 5, 9]),
                st.lists(st.sampled_from([0, 1, 1, 50]), min_size=1, max_size=5),
            ),
            min_size=1,
            max_size=4,
        ),
        commit=st.booleans(),
    )
    def append(self, spans: list[tuple[bool, int | None, list[int]]], commit: bool) -> None:
        for kept, expiry, sizes in spans:
            self.append_span(kept, expiry, sizes)
        if commit:
            self.commit()

    def append_span(self, kept: bool, expiry: int | None, sizes: list[int]) -> None:
        contents = [b"%06d" % (self.sequence + n) + b"x" * size for n, size in enumerate(sizes, 1)]
        publication = publish(contents, properties=Properties(message_expiry_interval=expiry))
        count = len(sizes)
        span = Span(publication, 0, count, 1)
        row = Row(self.sequence + 1, count) if kept else None
        if row is not None:
            keep(span, row)
            publication.stored_for = 1
        self.sequence += count
        self.queue.append(span)
        self.owed += [
            Owed(number, payload, 1, expiry, row, publication)
            for number, payload in enumerate(contents)
        ]

    @rule(count=st.integers(1, 2))
    def append_qos_0(self, count: int) -> None:
        contents = [b"0"] * count
        publication = publish(contents, 0)
        self.queue.append(Span(publication, 0, count, 0))
        self.owed += [Owed(n, b"0", 0, None, None, publication) for n in range(count)]

    @rule(counts=st.lists(st.integers(1, 5), min_size=1, max_size=5))
    def take(self, counts: list[int]) -> None:
        """Send what comes next, and have more read, as a session does."""
        for count in counts:
            if self.owed and not self.queue.waits_for_page:
                span = self.queue.pop(count)
                assert 1 <= span.count <= count
                self.same(span, self.owed[: span.count])
                del self.owed[: span.count]
        if self.queue.wants_page and self.asked is None:
            self.asked = self.queue.begin_page()
            assert not self.queue.wants_page

    def same(self, span: Span, owed: list[Owed]) -> None:
        numbers = range(span.first, span.first + span.count)
        assert [*numbers] == [each.number for each in owed]
        found = [span.publication.packets.one(number) for number in numbers]
        assert found == [each.payload for each in owed]
        assert span.disk_bytes == sum(each.kept for each in owed)
        assert span.sequence == owed[0].sequence

    def rows(self) -> list[list[Owed]]:
        """Return what is on disk of each row."""
        found: dict[Row, list[Owed]] = {}
        for each in self.owed:
            if each.row is not None and each.row.batch:
                found.setdefault(each.row, []).append(each)
        return list(found.values())

    def write(self) -> None:
        for each in self.owed:
            if each.row is not None and not each.row.batch:
                each.row.batch = self.batch

    def commit(self) -> None:
        self.write()
        self.queue.forget_written(self.batch)
        self.batch += 1

    @rule(what=st.sampled_from(["write", "lose", "full", "free", "detach", "crash", "end"]))
    def happen(self, what: str) -> None:
        """Let something happen that is rarer than all the rest."""
        if what == "write":
            self.write_without_commit()
        elif what == "lose":
            self.lose_a_row()
        elif what == "detach":
            self.remove_qos_0()
        elif what == "crash" or (what == "end" and self.asked is not None):
            self.crash()
        elif what == "end":
            self.end()
        else:  # other sessions hold much, or no more
            most = 0 if what == "full" else 1_000_000
            self.patch.setattr(queue_memory, "MAXIMUM_HEAD_BYTES", most)

    def write_without_commit(self) -> None:
        self.write()
        self.queue.forget_written(self.batch - 1)

    def read(self, row: list[Owed]) -> Span:
        """Return what is left of a row, with a publication of its own."""
        contents = [b""] * row[0].number + [each.payload for each in row]
        expiry = Properties(message_expiry_interval=row[0].expiry)
        publication = publish(contents, properties=expiry)
        for each in row:
            each.publication = publication
        span = Span(publication, row[0].number, len(row), 1)
        assert row[0].row is not None
        publication.stored_for = 1
        keep(span, row[0].row)
        return span

    @precondition(lambda self: self.asked is not None)
    @rule()
    def accept_page(self) -> None:
        assert self.asked is not None
        (after, up_to), self.asked = self.asked, None
        rows = [row for row in self.rows() if after < row[0].sequence <= up_to]
        page = [self.read(row) for row in rows[:PAGE]]
        self.queue.accept_page(page, complete=len(rows) <= PAGE)

    @rule(now=st.sampled_from([1, 4, 5, 9]))
    def expire(self, now: int) -> None:
        """As the sweep does: in memory by the queue, on disk never beside a page."""
        for span in self.queue.remove_expired(now):
            gone = [each for each in self.owed if each.publication is span.publication]
            self.same(span, gone)
            assert all(each.expiry is not None and each.expiry <= now for each in gone)
            self.owed = [each for each in self.owed if each not in gone]
        for row in self.rows() if self.asked is None else []:
            expiry = row[0].expiry
            if expiry is not None and expiry <= now and self.remove_paged(row):
                self.owed = [each for each in self.owed if each not in row]
        in_memory = {span.publication for span in self.queue}
        assert not any(publication.expired(now) for publication in in_memory)

    def remove_paged(self, row: list[Owed]) -> bool:
        size = sum(each.kept for each in row)
        return self.queue.remove_paged(row[0].sequence, size, len(row))

    def remove_qos_0(self) -> None:
        kept = [each for each in self.owed if each.qos]
        assert self.queue.remove_qos_0() == len(self.owed) - len(kept)
        self.owed = kept

    def crash(self) -> None:
        """Begin anew with what is on disk: the first rows are read, the rest is not."""
        self.asked = None
        rows = self.rows()
        self.owed = [each for row in rows for each in row]
        for each in self.owed:
            each.publication.stored_for = 0
        self.begin()
        last = rows[-1][-1].sequence if rows else 0
        self.queue.restore_tail(0, last, len(self.owed), sum(each.kept for each in self.owed))
        self.queue.accept_page([self.read(row) for row in rows[:HEAD]], complete=False)

    def end(self) -> None:
        """The session ends, and another one begins."""
        self.queue.clear()
        assert (len(self.queue), self.queue.bytes, [*self.queue]) == (0, 0, [])
        memory = self.memory
        assert (memory.bytes, memory.disk_bytes, memory.paged, memory.paged_bytes) == (0,) * 4
        self.owed = []

    def lose_a_row(self) -> None:
        """What cannot be read is left out, and counted no more once its page was read."""
        for row in self.rows() if self.asked is None else []:
            if self.remove_paged(row):
                self.owed = [each for each in self.owed if each not in row]
                break

    @invariant()
    def accounts(self) -> None:
        queue, memory = self.queue, self.memory
        assert (len(queue), bool(queue)) == (len(self.owed), len(self.owed) > 0)
        in_memory = [*queue]
        held = {span.publication for span in in_memory}
        messages = sum(span.count for span in in_memory)
        assert queue.paged == memory.paged == len(self.owed) - messages
        assert memory.deliveries == messages
        assert memory.messages == sum(each.count for each in held)
        whole = sum(each.size(0, each.count) for each in held)
        assert memory.bytes == whole + messages * SPAN_OVERHEAD
        assert memory.disk_bytes == sum(each.kept for each in self.owed)
        assert memory.paged_bytes == memory.disk_bytes - sum(span.disk_bytes for span in in_memory)
        assert queue.bytes == sum(each.kept or each.size for each in self.owed)
        assert queue._memory_bytes == sum(span.size for span in in_memory)
        assert queue._head_bytes == sum(span.size for span in queue._head)

    @invariant()
    def asks_for_what_comes_next(self) -> None:
        head = sum(span.count for span in self.queue._head)
        asks = self.queue.paged > 0 and self.asked is None and head <= HEAD // 2
        assert self.queue.wants_page == asks
        held = {span.publication for span in self.queue}
        for each in self.owed:
            if each.row is not None:
                assert each.publication.stored_for == (each.publication in held)

    @invariant()
    def is_in_order(self) -> None:
        """What is in memory stands in the order in which it is owed; the next is the first."""
        place = 0
        for span in self.queue:
            while self.owed[place].publication is not span.publication:
                place += 1
            self.same(span, self.owed[place : place + span.count])
            place += span.count
        if self.owed and not self.queue.waits_for_page:
            first = self.queue.first()
            assert first is not None
            self.same(first, self.owed[: first.count])


QueueAgainstList.TestCase.settings = settings(stateful_step_count=60)
TestQueueAgainstList = pytest.mark.uncovered(QueueAgainstList.TestCase)
