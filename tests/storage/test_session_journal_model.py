"""What publishers were told is kept comes once and in order, whatever happens in between.

Batches of any size, sessions that come, go and acknowledge in any order, deferred writes, pages,
crashes and a wall clock that jumps are played through a broker on a disk.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from tests.support.batch_rows import nothing_is_left
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness, away
from tests.support.memory_client import MemoryClient

BOTH = "a/both"
"""The topic that an absent session has subscribed to as well."""

SOON = 10
"""Seconds after which some messages expire; all others that do, do so after a day."""


class Receiver:
    """A client and its session; numbers are messages, of which each exists once.

    `seen` are those that have ever come, with their QoS, in this order; `sent` those that came at
    QoS 1 since the last crash, and come with DUP when they come again. `finished` are those that
    it acknowledged, of which a crash may forget the `forgettable`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.client: MemoryClient | None = None
        self.seen: dict[int, int] = {}
        self.sent: set[int] = set()
        self.finished: set[int] = set()
        self.forgettable: set[int] = set()
        self.open: list[tuple[int, int]] = []  # QoS 1: number and packet identifier
        self.taken: dict[int, int] = {}  # QoS 2: packet identifiers and numbers
        self.to_release: list[int] = []  # packet identifiers whose PUBREC is not sent

    def read(self) -> None:
        for packet in [] if self.client is None else self.client.take():
            if isinstance(packet, PubRel):
                self.taken.pop(packet.packet_id, None)
                assert self.client is not None
                self.client.send(PubComp(packet.packet_id))
            else:
                assert isinstance(packet, Publish)
                self._publish(packet, int(packet.payload))

    def _publish(self, packet: Publish, number: int) -> None:
        if packet.qos == 2:
            if packet.packet_id in self.taken:
                assert (packet.dup, self.taken[packet.packet_id]) == (True, number)
            else:
                assert number not in self.seen, "a message of QoS 2 for the second time"
                self.taken[packet.packet_id] = number
                self.finished.add(number)
            self.to_release.append(packet.packet_id)
        else:
            assert number not in self.finished - self.forgettable
            assert packet.dup or number not in self.sent
            self.sent.add(number)
            self.open.append((number, packet.packet_id))
        if number not in self.seen:
            before = [each for each, qos in self.seen.items() if qos == packet.qos]
            assert not before or before[-1] < number, "out of order"
            self.seen[number] = packet.qos

    def acknowledge(self, count: int, skip: int) -> None:
        if self.client is None:
            return
        answers = self.open[skip : skip + count]
        del self.open[skip : skip + count]
        self.finished |= {number for number, _ in answers}
        self.forgettable |= {number for number, _ in answers}
        self.client.send(*(PubAck(packet_id) for _, packet_id in answers))
        received, self.to_release = self.to_release[:count], self.to_release[count:]
        self.client.send(*(PubRec(packet_id) for packet_id in received))
        while self.client.inbox:
            self.read()

    def gone(self) -> None:
        self.client, self.open, self.to_release = None, [], []

    def crashed(self) -> None:
        self.gone()
        self.sent.clear()
        self.finished -= self.forgettable
        self.forgettable.clear()


class Life:
    """Publishers, a session that comes and goes, and one that is away to the end.

    `hold` lets turns pass without a commit. What was answered is `kept` until it is finished.
    """

    def __init__(self, window: int, version: int) -> None:
        self.harness = DurableHarness(BrokerSettings(maximum_inflight=window))
        self.version = version
        self.receivers = {name: Receiver(name) for name in ("comes", "away")}
        away(self.harness, "a/#", "comes", 2)
        away(self.harness, BOTH, "away", 2)
        self.published = 0
        self.kept: dict[str, set[int]] = {"comes": set(), "away": set()}
        self.mortal: dict[int, float] = {}  # numbers that expire soon, and when
        self.connect_publisher()

    @property
    def receiver(self) -> Receiver:
        return self.receivers["comes"]

    def connect_publisher(self) -> None:
        self.harness.commits = True
        self.publisher = self.harness.connect("publisher", self.version)
        self.asked: dict[int, tuple[int, str]] = {}  # by packet identifier

    def publish(self, count: int, qos: int, topic: str, expiry: int | None) -> None:
        said = NO_PROPERTIES
        if expiry is not None and self.version == MQTT_5:
            said = Properties(message_expiry_interval=expiry, content_type="number")
        messages = []
        for _ in range(count):
            self.published += 1
            packet_id = self.published % 60_000 + 1
            self.asked[packet_id] = self.published, topic
            if said.message_expiry_interval == SOON:
                self.mortal[self.published] = self.harness.now + SOON
            payload = b"%d" % self.published
            messages.append(Publish(topic, payload, qos, False, False, packet_id, said))
        self.publisher.send(*messages)
        self.look()

    def hold(self) -> None:
        self.harness.commits = False

    def commit_once(self) -> None:
        self.harness.commit()
        self.look()

    def commit(self) -> None:
        self.harness.commits = True
        self.harness.settle()
        self.look()

    def come(self, receive_maximum: int) -> None:
        if self.receiver.client is None:
            self.commit()
            self.receiver.client = self.harness.persistent("comes", receive_maximum=receive_maximum)
            self.look()

    def go(self) -> None:
        if self.receiver.client is not None:
            self.receiver.client.drop()
        self.receiver.gone()
        self.look()

    def crash(self) -> None:
        self.look()
        self.harness.commits = True
        self.harness.crash()
        for each in self.receivers.values():
            each.crashed()
        self.connect_publisher()
        self.look()

    def clock(self, seconds: int) -> None:
        self.commit()
        self.harness.set_clock(seconds)
        self.look()

    def wait(self, seconds: float) -> None:
        self.harness.pass_time(seconds)
        self.look()

    def acknowledge(self, count: int, skip: int) -> None:
        self.receiver.acknowledge(count, skip)
        self.look()

    def look(self) -> None:
        self._hear_answers()
        for each in self.receivers.values():
            each.read()
        if self.harness.commits:
            everything_is_counted(self.harness)
            for each in self.receivers.values():
                each.forgettable.clear()

    def _hear_answers(self) -> None:
        """Take the publisher's answers: what they are for must never be lost."""
        while packets := self.publisher.take():
            for packet in packets:
                if isinstance(packet, PubAck | PubRec):
                    number, topic = self.asked[packet.packet_id]
                    self.kept["comes"].add(number)
                    if topic == BOTH:
                        self.kept["away"].add(number)
                if isinstance(packet, PubRec):
                    self.publisher.send(PubRel(packet.packet_id))

    def end(self) -> None:
        self.commit()
        self.come(65_535)
        other = self.receivers["away"]
        other.client = self.harness.persistent("away")
        for each in (self.receiver, other):
            each.read()
            while each.open or each.to_release:
                each.acknowledge(65_535, 0)
                self.commit()
        now = self.harness.now
        lost = {number for number, due in self.mortal.items() if due <= now}
        for each in (self.receiver, other):
            assert self.kept[each.name] - lost <= each.finished
        nothing_is_left(self.harness)


STEPS = st.one_of(
    st.tuples(
        st.just("publish"),
        st.sampled_from([1, 1, 2, 5, 12, 100]),
        st.sampled_from([1, 1, 2]),
        st.sampled_from(["a/b", "a/b", BOTH]),
        st.sampled_from([None, None, 86_400, SOON]),
    ),
    st.tuples(st.just("acknowledge"), st.integers(1, 9), st.sampled_from([0, 0, 0, 1, 3])),
    st.tuples(st.just("acknowledge"), st.just(100), st.sampled_from([0, 5])),
    st.tuples(st.just("come"), st.sampled_from([2, 8, 1_000])),
    st.tuples(st.sampled_from(["go", "crash", "hold", "commit", "commit_once"])),
    st.tuples(st.just("clock"), st.sampled_from([-7_200, 40_000])),
    st.tuples(st.just("wait"), st.sampled_from([0.003, 2.0, 11.0])),
)


def played(life: Life, steps: list[tuple[str, ...]]) -> None:
    for name, *arguments in steps:
        step: Callable[..., None] = getattr(life, name)
        step(*arguments)
    life.end()


@given(
    steps=st.lists(STEPS, max_size=25),
    window=st.sampled_from([1, 3, 8, 20, 1_000]),
    head=st.sampled_from([1, 4, 20, 1_000]),
    version=st.sampled_from([MQTT_3_1_1, MQTT_5]),
)
def test_what_is_kept_comes_once_and_in_order(
    steps: list[tuple[str, ...]], window: int, head: int, version: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("session.delivery_queue", "storage.restore"):
            patch.setattr(f"gateway.{module}.HEAD_MESSAGES", head)
        patch.setattr("gateway.storage.pager.PAGE_MESSAGES", max(1, head // 2))
        played(Life(window, version), steps)
