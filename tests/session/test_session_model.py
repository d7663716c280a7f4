"""A client that acknowledges as it likes, against a model."""

from collections import deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import Publish, PubRel
from tests.support.sessions import deliver, open_connection, packets, persistent


class Client(RuleBasedStateMachine):
    """A client that comes, goes and acknowledges as it likes gets every message in order."""

    def __init__(self) -> None:
        super().__init__()
        self.session = persistent()
        self.connection: Connection | None = None
        self.limit = 0
        self.published = 0
        self.unacknowledged: deque[tuple[int, int]] = deque()  # packet identifier, QoS
        self.released: deque[int] = deque()
        self.first_time: list[int] = []

    @precondition(lambda self: self.connection is None)
    @rule(limit=st.integers(1, 5))
    def connect(self, limit: int) -> None:
        self.connection, self.limit = open_connection(), limit
        self.session.attach(self.connection, limit)
        self.session.pump(0.0)
        self.read()

    @precondition(lambda self: self.connection is not None)
    @rule()
    def disconnect(self) -> None:
        self.session.detach()
        self.connection = None
        self.unacknowledged.clear()
        self.released.clear()

    @rule(qos=st.integers(1, 2), count=st.integers(1, 4))
    def publish(self, qos: int, count: int) -> None:
        numbers = range(self.published, self.published + count)
        deliver(self.session, *(b"%d" % number for number in numbers), qos=qos)
        self.published += count
        self.read()

    @precondition(lambda self: bool(self.unacknowledged))
    @rule()
    def acknowledge(self) -> None:
        packet_id, qos = self.unacknowledged.popleft()
        if qos == 1:
            self.finish(packet_id)
            return
        span = self.session.inflight.find(packet_id)
        assert span is not None
        self.session.release(packet_id, span)
        self.released.append(packet_id)

    @precondition(lambda self: bool(self.released))
    @rule()
    def complete(self) -> None:
        self.finish(self.released.popleft())

    def finish(self, packet_id: int) -> None:
        assert self.session.finish((packet_id,), 0) == 1
        self.session.pump(0.0)
        self.read()

    def read(self) -> None:
        for packet in packets(self.connection) if self.connection is not None else []:
            if isinstance(packet, PubRel):
                self.released.append(packet.packet_id)
                continue
            assert isinstance(packet, Publish)
            self.unacknowledged.append((packet.packet_id, packet.qos))
            number = int(packet.payload)
            if not packet.dup:
                self.first_time.append(number)
            assert (number in self.first_time) or packet.dup

    @invariant()
    def in_order_and_within_the_window(self) -> None:
        assert self.first_time == list(range(len(self.first_time)))
        if self.connection is not None:
            assert len(self.unacknowledged) + len(self.released) <= self.limit

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.first_time) + len(self.session.queue) == self.published

    @invariant()
    def nothing_waits_without_a_reason(self) -> None:
        if self.connection is not None and len(self.session.queue):
            assert len(self.unacknowledged) + len(self.released) == self.limit


TestClient = Client.TestCase
