"""A queue most of which is on disk alone, against a plain list, with any order of reads."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.message import Message
from gateway.session import delivery_queue, queue_memory
from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.queue_memory import QueueMemory
from tests.support.queues import single

HEAD = 3
PAGE = 2
KEPT = 100


@pytest.fixture(autouse=True)
def small_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)


class PagedQueueMachine(RuleBasedStateMachine):
    """Plays the session, the journal and the disk; `owed` is what a plain queue would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)
        self.begin()
        self.owed: list[Delivery] = []
        self.disk: dict[int, Delivery] = {}
        self.place = 0
        self.batch = 1
        self.asked: tuple[int, int] | None = None

    def teardown(self) -> None:
        self.patch.undo()

    def begin(self) -> None:
        self.memory = QueueMemory()
        self.queue = DeliveryQueue(memory=self.memory)

    @rule(kept=st.booleans(), expiry=st.none() | st.integers(1, 9), count=st.integers(1, 4))
    def append(self, kept: bool, expiry: int | None, count: int) -> None:
        for _ in range(count):
            self.place += 1
            message = Message("t", b"%d" % self.place, 1, message_expiry=expiry)
            delivery = Delivery(message, 1)
            if kept:
                delivery.place, delivery.kept, message.owed = self.place, KEPT, 1
            assert self.queue.append(delivery)
            self.owed.append(delivery)

    @rule(kept=st.booleans(), count=st.integers(1, 6))
    def append_run(self, kept: bool, count: int) -> None:
        run = []
        for _ in range(count):
            self.place += 1
            message = Message("t", b"%d" % self.place, 1)
            delivery = Delivery(message, 1)
            if kept:
                delivery.place, delivery.kept, message.owed = self.place, KEPT, 1
            run.append(delivery)
        assert self.queue.room_for_run > count
        self.queue.restore_all(run)
        self.owed += run

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        head = [single(each) for each in self.queue.head]
        count = data.draw(st.integers(0, len(head)))
        assert head == self.owed[: len(head)]
        self.queue.take(head[:count])
        for delivery in self.owed[:count]:
            self.disk.pop(delivery.place, None)
        del self.owed[:count]

    @rule()
    def commit(self) -> None:
        for delivery in self.owed:
            if delivery.kept and not delivery.batch:
                delivery.batch = self.batch
                self.disk[delivery.place] = delivery
        self.queue.let_go(self.batch)
        self.batch += 1

    @rule()
    def write_without_commit(self) -> None:
        for delivery in self.owed:
            if delivery.kept and not delivery.batch:
                delivery.batch = self.batch
                self.disk[delivery.place] = delivery
        assert self.queue.let_go(self.batch - 1) in (True, False)

    @rule()
    def ask(self) -> None:
        if self.queue.wants_page and self.asked is None:
            self.asked = self.queue.begin_page()
            assert not self.queue.wants_page

    @precondition(lambda self: self.asked is not None)
    @rule()
    def take_page(self) -> None:
        assert self.asked is not None
        (after, up_to), self.asked = self.asked, None
        found = [self.disk[place] for place in sorted(self.disk) if after < place <= up_to]
        self.queue.take_page(found[:PAGE], complete=len(found) <= PAGE)

    @rule()
    def popleft(self) -> None:
        if self.owed and not self.queue.waits_for_page:
            assert self.queue.first() is self.owed[0]
            assert self.queue.popleft() is self.owed[0]
            self.disk.pop(self.owed.pop(0).place, None)

    @rule(now=st.integers(0, 10))
    def expire(self, now: int) -> None:
        """As the sweep does: in memory by the queue, on disk never beside a page."""
        gone = self.queue.remove_expired(now)
        if self.asked is None:
            for place, delivery in list(self.disk.items()):
                if delivery.expired(now) and self.queue.remove_paged(place, KEPT):
                    gone.append(delivery)
        for delivery in gone:
            assert delivery.expired(now)
            self.owed.remove(delivery)
            self.disk.pop(delivery.place, None)

    @rule()
    def crash(self) -> None:
        """Begin anew with what is on disk: the head is read, the rest is not."""
        self.asked = None
        left = [self.disk[place] for place in sorted(self.disk)]
        for delivery in left:
            delivery.message.holders = 0  # what is read is a message of its own
        self.begin()
        self.queue.restore_rest(0, left[-1].place if left else 0, len(left), KEPT * len(left))
        self.queue.take_page(left[:HEAD], complete=False)
        self.owed = left

    @rule(full=st.booleans())
    def other_sessions_fill_the_memory(self, full: bool) -> None:
        self.patch.setattr(queue_memory, "MAXIMUM_HEAD_BYTES", 0 if full else 1_000_000)

    @rule()
    def lose_a_row(self) -> None:
        """What cannot be read is left out, and counted no more once its page was read."""
        rest = [place for place in self.disk if self.queue._rest.holds(place)]
        if rest and self.asked is None and not self.queue._rest.loading:
            lost = self.disk.pop(rest[0])
            self.owed.remove(lost)
            assert self.queue.remove_paged(rest[0], KEPT)

    @invariant()
    def accounts(self) -> None:
        queue, memory = self.queue, self.memory
        assert len(queue) == len(self.owed)
        in_memory = list(queue)
        assert queue.paged == memory.paged == len(self.owed) - len(in_memory)
        assert memory.paged_bytes == KEPT * queue.paged
        assert memory.deliveries == memory.messages == len(in_memory)
        assert memory.bytes == queue._memory_bytes  # no two hold the same message
        assert memory.disk_bytes == sum(each.kept for each in self.owed)
        assert queue.bytes == sum(each.kept or each.size for each in self.owed)
        assert queue._memory_bytes == sum(each.size for each in in_memory)
        assert queue._head_bytes == sum(each.size for each in queue._head)
        if self.owed and not queue.waits_for_page:
            assert queue.first() is self.owed[0]


PagedQueueMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=40, deadline=None
)
TestPagedQueueAgainstList = PagedQueueMachine.TestCase


def kept(place: int, batch: int = 1) -> Delivery:
    message = Message("t", b"%d" % place, 1)
    message.owed = 1
    return Delivery(message, 1, place=place, kept=KEPT, batch=batch)


def paged(count: int) -> DeliveryQueue:
    """Return a queue whose first deliveries are in memory, and the others not."""
    queue = DeliveryQueue()
    for place in range(1, count + 1):
        queue.append(kept(place))
    assert queue.let_go(1)
    return queue


def test_only_the_head_stays_in_memory() -> None:
    queue = paged(10)
    assert [each.place for each in queue] == [1, 2, 3]
    assert (len(queue), queue.paged, queue.bytes) == (10, 7, 10 * KEPT)


def test_what_is_not_on_disk_yet_stays_in_memory() -> None:
    queue = paged(10)
    queue.append(kept(11, batch=0))
    queue.append(kept(12, batch=2))
    assert not queue.let_go(1)
    assert [each.place for each in queue] == [1, 2, 3, 11, 12]


def test_what_is_next_is_in_memory_however_much_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_memory, "MAXIMUM_HEAD_BYTES", 0)
    queue = DeliveryQueue()
    for place in (1, 2):
        queue.append(kept(place))
    assert queue.first().place == 1
    assert queue.let_go(1)
    assert (len(queue), queue.paged) == (2, 1)


def test_what_could_not_be_read_is_counted_no_more() -> None:
    queue = paged(10)
    while not queue.waits_for_page:
        queue.popleft()
    assert queue.begin_page() == (3, 10)
    queue.take_page([kept(5)], complete=True)
    assert (len(queue), queue.bytes) == (1, KEPT)


def test_what_came_meanwhile_is_read_with_the_next_page() -> None:
    queue = paged(5)
    queue.popleft()
    queue.popleft()
    assert queue.begin_page() == (3, 5)
    queue.append(kept(6))
    queue.let_go(1)
    queue.take_page([kept(4), kept(5)], complete=True)
    assert (len(queue), queue.paged) == (4, 1)
    while not queue.waits_for_page:
        queue.popleft()
    assert queue.begin_page() == (5, 6)


def test_clearing_takes_what_is_on_disk_out_of_the_accounts() -> None:
    memory = QueueMemory()
    queue = DeliveryQueue(memory=memory)
    for place in range(1, 10):
        queue.append(kept(place))
    queue.let_go(1)
    queue.clear()
    assert (len(queue), queue.bytes, memory.disk_bytes, memory.paged, memory.bytes) == (0,) * 5


def test_a_full_disk_is_one_bound_for_all_and_full_memory_another() -> None:
    memory = QueueMemory(maximum_disk_bytes=KEPT)
    first, second = DeliveryQueue(memory=memory), DeliveryQueue(memory=memory)
    assert first.append(kept(1))
    assert second.full
    assert not second.memory_full
    assert not second.append(kept(1))
    memory = QueueMemory(maximum_bytes=1)
    full = DeliveryQueue(memory=memory)
    assert full.append(kept(1))
    assert full.memory_full


def test_all_of_the_rest_may_go_while_a_page_of_it_is_read() -> None:
    queue = paged(4)
    while not queue.waits_for_page:
        queue.popleft()
    queue.begin_page()
    assert queue.remove_paged(4, KEPT)
    queue.append(kept(5, batch=0))
    assert queue.popleft().place == 5
    queue.take_page([], complete=True)
    queue.append(kept(6, batch=0))
    assert (len(queue), queue.paged, queue.first().place) == (1, 0, 6)


def test_what_is_not_written_keeps_its_place_before_a_page() -> None:
    queue = paged(5)
    queue.append(Delivery(Message("t", b"unwritten", 1), 1))
    queue.append(kept(7))
    queue.let_go(1)
    while not queue.waits_for_page:
        queue.popleft()
    queue.begin_page()
    queue.take_page([kept(4), kept(5), kept(7)], complete=True)
    assert [each.place for each in queue] == [4, 5, 0, 7]


def test_what_stays_between_goes_when_it_has_expired() -> None:
    queue = paged(5)
    queue.append(Delivery(Message("t", b"soon", 1, message_expiry=1, arrived=10.0), 1))
    queue.append(Delivery(Message("t", b"late", 1, message_expiry=9, arrived=10.0), 1))
    queue.append(kept(8))
    queue.let_go(1)
    assert [each.message.payload for each in queue.remove_expired(15.0)] == [b"soon"]
    assert [each.place for each in queue] == [1, 2, 3, 0]
    assert (len(queue), queue.paged) == (7, 3)
