"""What publishers were told is kept comes once and in order, whatever happens in between.

Batches of any size, sessions that come, go and acknowledge in any order, deferred writes, pages,
crashes and a wall clock that jumps are played through a broker on a disk. A seed makes a life;
`TIDEGATE_LIVES=5000` tries so many.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.settings.broker import BrokerSettings
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.memory_client import MemoryClient
from tests.support.disk.batch_rows import nothing_is_left
from tests.support.disk.counted_rows import everything_is_counted

SEEDS = int(os.environ.get("TIDEGATE_LIVES", "100"))

GROUP = 25
"""Seeds of one test."""

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
        self.forgettable: dict[int, int] = {}  # and the batch after which they are not
        self.again: set[int] = set()  # were published once more, and may come once more
        self.excused: set[int] = set()  # acknowledged before a crash: whether they come is open
        self.open: list[tuple[int, int]] = []  # QoS 1: number and packet identifier
        self.identified: dict[int, int] = {}  # the same when it left
        self.certain = True  # that what comes with DUP came before
        self.taken: dict[int, int] = {}  # QoS 2: packet identifiers and numbers
        self.to_release: list[int] = []  # packet identifiers whose PUBREC is not sent

    def read(self) -> None:
        while self.client is not None and (packets := self.client.take()):
            for packet in packets:
                self._take(self.client, packet)

    def _take(self, client: MemoryClient, packet: Packet) -> None:
        if isinstance(packet, ConnAck):
            assert packet.session_present
        elif isinstance(packet, PubRel):
            self.taken.pop(packet.packet_id, None)
            client.send(PubComp(packet.packet_id))
        else:
            assert isinstance(packet, Publish), packet
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
            once = number not in self.again
            assert not once or number not in self.finished - self.forgettable.keys()
            assert not once or packet.dup or number not in self.sent
            assert number in self.seen or not (packet.dup and self.certain)
            if packet.dup and once:
                assert self.identified.pop(number, packet.packet_id) == packet.packet_id
            self.sent.add(number)
            self.open.append((number, packet.packet_id))
        if number not in self.seen:
            before = [each for each, qos in self.seen.items() if qos == packet.qos]
            assert not before or before[-1] < number or number in self.again, "out of order"
            self.seen[number] = packet.qos

    def acknowledge(self, count: int, skip: int) -> None:
        if self.client is None:
            return
        answers = self.open[skip : skip + count]
        del self.open[skip : skip + count]
        self.finished |= {number for number, _ in answers}
        disk = self.client.harness.disk
        assert disk is not None
        self.forgettable |= dict.fromkeys((number for number, _ in answers), disk.batch)
        self.client.send(*(PubAck(packet_id) for _, packet_id in answers))
        received, self.to_release = self.to_release[:count], self.to_release[count:]
        self.client.send(*(PubRec(packet_id) for packet_id in received))
        self.read()

    def gone(self) -> None:
        self.identified |= dict(self.open)
        self.client, self.open, self.to_release = None, [], []

    def crashed(self, held: bool) -> None:
        """Note that the broker forgot what it `held` back, such as that the client left."""
        if held or self.client is not None:
            self.certain = False
            self.identified.clear()
            self.open = []
        self.gone()
        self.sent.clear()
        self.finished -= self.forgettable.keys()
        self.excused |= self.forgettable.keys()
        self.forgettable.clear()

    def committed(self, batch: int) -> None:
        """Note that a batch is on disk."""
        self.forgettable = {each: due for each, due in self.forgettable.items() if due > batch}


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
        self.publisher = self.harness.persistent("publisher", version)
        self.asked: dict[int, Publish] = {}  # by packet identifier: not answered
        self.released: set[int] = set()  # of QoS 2: PUBREC has come, and PUBCOMP has not

    @property
    def receiver(self) -> Receiver:
        return self.receivers["comes"]

    def publish_again(self) -> None:
        """Connect the publisher after a crash, and let it send again what was not answered."""
        self.harness.commits = True
        self.publisher = self.harness.persistent("publisher", self.version)
        for each in self.asked.values():
            if each.qos == 1:
                for receiver in self.receivers.values():
                    receiver.again.add(int(each.payload))
        self.publisher.send(
            *(replace(each, dup=True) for each in self.asked.values()),
            *map(PubRel, sorted(self.released)),
        )

    def publish(self, count: int, qos: int, topic: str, expiry: int | None, retain: bool) -> None:
        said = NO_PROPERTIES
        if expiry is not None and self.version == MQTT_5:
            said = Properties(message_expiry_interval=expiry, content_type="number")
        messages = []
        for _ in range(count):
            self.published += 1
            packet_id = self.published % 60_000 + 1
            if said.message_expiry_interval == SOON:
                self.mortal[self.published] = self.harness.now + SOON
            payload = b"%d" % self.published
            messages.append(Publish(topic, payload, qos, retain, False, packet_id, said))
            self.asked[packet_id] = messages[-1]
        self.publisher.send(*messages)
        self.look()

    def hold(self) -> None:
        self.harness.commits = False

    def close_batch(self) -> None:
        """Begin a commit, during which more happens."""
        if not self.harness.commits and self.harness.disk.closed is None:
            self.harness.disk.close_batch()

    def commit_once(self) -> None:
        self.harness.commit()
        self.look()

    def commit(self) -> None:
        self.harness.commits = True
        self.harness.settle()
        self.look()

    def come(self, receive_maximum: int) -> None:
        if self.receiver.client is None:
            self.receiver.client = client = self.harness.open()
            said = Properties(session_expiry_interval=3_600, receive_maximum=receive_maximum)
            client.send(Connect("comes", MQTT_5, clean_start=False, properties=said))
            self.look()

    def go(self) -> None:
        if self.receiver.client is not None:
            self.receiver.client.drop()
            self.receiver.certain &= self.harness.commits  # nothing was held back from it
        self.receiver.gone()
        self.look()

    def crash(self) -> None:
        self.look()
        for each in self.receivers.values():
            each.crashed(held=not self.harness.commits)
        self.harness.commits = True
        self.harness.crash()
        self.publish_again()
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
            each.committed(self.harness.disk.committed)

    def _hear_answers(self) -> None:
        """Take the publisher's answers: what they are for must never be lost."""
        while packets := self.publisher.take():
            for packet in packets:
                if isinstance(packet, PubAck | PubRec):
                    message = self.asked.pop(packet.packet_id, None)
                    if message is not None:
                        self.kept["comes"].add(int(message.payload))
                        if message.topic == BOTH:
                            self.kept["away"].add(int(message.payload))
                if isinstance(packet, PubRec):
                    self.released.add(packet.packet_id)
                    self.publisher.send(PubRel(packet.packet_id))
                if isinstance(packet, PubComp):
                    self.released.discard(packet.packet_id)

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
            assert self.kept[each.name] - lost <= each.finished | each.excused
        nothing_is_left(self.harness)


def step_of(life: Life, chance: Random) -> partial[None]:
    """Return something that may happen now."""
    client = life.receiver.client
    where = ["come", "come"] if client is None else ["acknowledge", "acknowledge", "go"]
    others = ["publish"] * 3 + ["hold", "commit", "close_batch", "commit_once"]
    others += ["crash", "clock", "wait"]
    what = chance.choice([*where, *where, *others])
    some: dict[str, Callable[[], tuple[object, ...]]] = {
        "publish": lambda: (
            chance.choice([1, 1, 2, 5, 12, 100]),
            chance.choice([1, 1, 1, 2]),
            chance.choice(["a/b", "a/b", BOTH]),
            chance.choice([None, None, 86_400, SOON]),
            chance.random() < 0.2,
        ),
        "acknowledge": lambda: (chance.choice([1, 2, 5, 12, 100]), chance.choice([0, 0, 0, 1, 3])),
        "come": lambda: (chance.choice([2, 8, 1_000]),),
        "clock": lambda: (chance.choice([-7_200, 40_000]),),
        "wait": lambda: (chance.choice([0.003, 2.0, 11.0]),),
    }
    arguments = some.get(what, tuple)()
    return partial(getattr(life, what), *arguments)


def play(seed: int) -> None:
    chance = Random(seed)
    head, head_bytes = chance.choice([1, 4, 20, 1_000]), chance.choice([1, 2_000, 1_000_000])
    life = Life(chance.choice([1, 3, 8, 20, 1_000]), chance.choice([MQTT_3_1_1, MQTT_5]))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("session.queue.delivery_queue", "storage.sessions.restore"):
            patch.setattr(f"gateway.{module}.HEAD_MESSAGES", head)
            patch.setattr(f"gateway.{module}.HEAD_BYTES", head_bytes)
        patch.setattr("gateway.storage.sessions.pager.PAGE_MESSAGES", max(1, head // 2))
        steps = []
        try:
            for _ in range(chance.choice([5, 15, 40])):
                steps.append(step_of(life, chance))
                steps[-1]()
            life.end()
        except Exception as error:
            reported = [f"{each.func.__name__}{each.args}" for each in steps]
            error.add_note(f"seed {seed}: {'; '.join(reported)}")
            raise


@pytest.mark.uncovered
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_what_is_kept_comes_once_and_in_order(first: int) -> None:
    for seed in range(first, first + GROUP):
        play(seed)
