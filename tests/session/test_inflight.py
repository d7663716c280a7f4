import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.session.inflight import MAXIMUM_BYTES, MAXIMUM_PACKET_ID, Inflight
from gateway.session.queue.memory import QueueMemory
from gateway.session.span import Span
from tests.support.broker.publications import publish
from tests.support.broker.spans import unkept

IDENTIFIERS = [*range(MAXIMUM_PACKET_ID - 5, MAXIMUM_PACKET_ID + 1), *range(1, 60)]
"""Those that the model's windows come to."""


class InflightAgainstList(RuleBasedStateMachine):
    """A window and a list of packet identifiers, in sending order, say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.inflight = Inflight(5)
        self.inflight._next = IDENTIFIERS[0] + 1
        self.limit = 5
        self.sent: dict[int, tuple[Span, int]] = {}  # each with its number in the publication
        self.resend: list[int] = []
        self.released: set[int] = set()

    def bytes(self) -> int:
        return sum(span.publication.size(number, 1) for span, number in self.sent.values())

    @precondition(lambda self: not self.resend)
    @rule(
        sizes=st.lists(st.sampled_from([0, 0, 0, 1, 400_000]), min_size=1, max_size=6),
        first=st.integers(0, 2),
        qos=st.integers(1, 2),
    )
    def send(self, sizes: list[int], first: int, qos: int) -> None:
        publication = publish([b"x" * size for size in [*sizes, *[0] * first]], qos)
        most, room, size = len(sizes), 0, self.bytes()
        while room < most and len(self.sent) + room < self.limit and size < MAXIMUM_BYTES:
            size += publication.size(first + room, 1)
            room += 1
        found = self.inflight.capacity(publication, first, most)
        assert (found > 0) == (room > 0) == self.inflight.has_capacity
        assert found <= room
        if not room:
            return
        span = Span(publication, first, found, qos)
        self.inflight.add(span)
        numbers = range(span.packet_id, span.packet_id + found)
        assert span.packet_id >= 1
        assert numbers[-1] <= MAXIMUM_PACKET_ID
        assert not self.sent.keys() & set(numbers)
        # it ends before a packet identifier that is not free
        assert found == room or numbers[-1] == MAXIMUM_PACKET_ID or numbers[-1] + 1 in self.sent
        self.sent |= {packet_id: (span, first + n) for n, packet_id in enumerate(numbers)}

    @rule(data=st.data(), more=st.integers(0, 5))
    def take(self, data: st.DataObject, more: int) -> None:
        """Acknowledgements come, mostly in order."""
        if not self.sent:
            return
        packet_id = data.draw(st.sampled_from(sorted(self.sent)))
        other = data.draw(st.sampled_from(IDENTIFIERS))
        identifiers = [other, *range(packet_id, packet_id + more + 1), other]
        span, _ = self.sent[packet_id]
        count = 0
        for each in identifiers[1:]:
            if each != packet_id + count or self.sent.get(each, (None, 0))[0] is not span:
                break
            count += 1
        assert self.inflight.remove(identifiers, 1) == count
        for each in range(packet_id, packet_id + count):
            del self.sent[each]
            self.released.discard(each)
            if each in self.resend:
                self.resend.remove(each)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.sent:
            packet_id = data.draw(st.sampled_from(sorted(self.sent)))
            self.inflight.release(packet_id)
            self.released.add(packet_id)

    @rule(limit=st.integers(1, 5))
    def begin(self, limit: int) -> None:
        self.inflight.begin(limit)
        self.limit = limit
        self.resend = [*self.sent]

    @precondition(lambda self: self.resend)
    @rule()
    def send_again(self) -> None:
        if self.inflight.has_capacity:
            packet_id = self.resend.pop(0)
            assert self.inflight.pop_resend() == (packet_id, self.sent[packet_id][0])

    @precondition(lambda self: not self.resend)
    @rule()
    def away(self) -> None:
        """Nothing is left of what a session counts while it is away."""
        memory = QueueMemory()
        self.inflight.charge(memory)
        assert memory.messages >= (len(self.sent) > 0)
        self.inflight.refund(memory)
        assert (memory.bytes, memory.messages, memory.deliveries) == (0, 0, 0)

    @invariant()
    def says_what_was_sent(self) -> None:
        inflight = self.inflight
        assert len(inflight) == len(self.sent)
        assert [*inflight.items()] == [(n, span) for n, (span, _) in self.sent.items()]
        spans = list(dict.fromkeys(span for span, _ in self.sent.values()))
        assert [*inflight.spans()] == spans
        assert all((inflight.find(n) is None) == (n not in self.sent) for n in IDENTIFIERS)
        assert [*inflight.resend] == self.resend
        assert inflight.released == self.released
        size = self.bytes() < MAXIMUM_BYTES or len(self.resend) > 0
        assert inflight.has_capacity == (size and len(self.sent) - len(self.resend) < self.limit)


TestInflightAgainstList = pytest.mark.uncovered(InflightAgainstList.TestCase)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.uncovered
@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.usefixtures("traced")
def test_a_window_that_is_empty_again_takes_no_memory(count: int) -> None:
    inflight = Inflight(MAXIMUM_PACKET_ID)
    spans = [unkept(count, 2) for _ in range(5_000 // count)]
    before = tracemalloc.get_traced_memory()[0]
    for span in spans:
        inflight.add(span)
        inflight.release(span.packet_id)
    most = tracemalloc.get_traced_memory()[0] - before
    assert most > 100_000
    for span in spans:
        assert inflight.remove(range(span.packet_id, span.packet_id + count), 0) == count
    # What measures the coverage of tests takes some, too.
    assert tracemalloc.get_traced_memory()[0] - before < most / 3


@pytest.mark.parametrize("sizes", [[0, 200_000], [200_000, 0], [0] * 9 + [200_000]])
def test_the_bytes_of_a_window_are_those_of_every_message(sizes: list[int]) -> None:
    inflight, sent = Inflight(1_000), 0
    publication = publish([b"x" * size for size in sizes] * 20)
    while count := inflight.capacity(publication, sent, publication.count - sent):
        inflight.add(Span(publication, sent, count, 1))
        sent += count
    assert MAXIMUM_BYTES <= publication.size(0, sent) < MAXIMUM_BYTES + 201_000


def test_what_an_earlier_run_had_sent_is_put_back() -> None:
    spans = [unkept(count, 1 + count % 2) for count in (2, 1, 3, 1)]
    for span, packet_id in zip(spans, (3, 0, 0, 9), strict=True):
        span.packet_id = packet_id
    inflight = Inflight(10)
    inflight.restore([(span, span is spans[3]) for span in spans])
    assert [packet_id for packet_id, _ in inflight.items()] == [3, 4, 1, 5, 6, 7, 9]
    assert [*inflight.spans()] == spans
    assert inflight.released == {9}
    following = unkept()
    inflight.add(following)
    assert following.packet_id == 10


def test_identifiers_that_are_not_free_are_passed_over() -> None:
    inflight = Inflight(10)
    spans = [unkept(2, 1), unkept(1, 1)]
    for span, packet_id in zip(spans, (3, 7), strict=True):
        span.packet_id = packet_id
    inflight.restore([(span, False) for span in spans])
    inflight._next = 3
    publication = publish([b"1"] * 5)
    assert inflight.capacity(publication, 0, 5) == 2
    span = Span(publication, 0, 2, 1)
    inflight.add(span)
    assert span.packet_id == 5
