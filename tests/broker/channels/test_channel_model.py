"""A channel under whatever its publishers, its consumers, the clock and the power do."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.broker.channels.channel import Channel
from gateway.broker.channels.moving import Find, back, move_next
from gateway.broker.channels.stamps import message_id
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings, Choice
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

NAMES = ("x", "y", "z")
FILTERS = ("$share/jobs/t/#", "$queue/jobs", "$share/jobs/t/1")
TIMEOUT = 10.0
LETTERS: dict[str, Any] = {
    "max_attempts": 3,
    "maximum_age": 25.0,
    "dead_letter_topic": "dead",
    "dead_letter_expired": True,
}


class ChannelModel(RuleBasedStateMachine):
    """Every message is acknowledged once, or waits, or is in flight: none is lost or doubled."""

    @initialize(
        filters=st.tuples(*[st.sampled_from(FILTERS)] * len(NAMES)),
        choice=st.sampled_from([*Choice]),
        memory=st.sampled_from([1, 3, 100]),
        letters=st.booleans(),
    )
    def begin(self, filters: tuple[str, ...], choice: Choice, memory: int, letters: bool) -> None:
        self.filters = dict(zip(NAMES, filters, strict=True))
        fields = LETTERS if letters else {"max_attempts": 0}
        jobs = ChannelSettings(
            *("jobs", "t/#", choice), memory_messages=memory, inflight_timeout=TIMEOUT, **fields
        )
        self.choice, self.letters = choice, letters
        channels = (jobs, ChannelSettings("dead", "dead"))
        self.harness = DurableHarness(BrokerSettings(channels=channels))
        self.clients: dict[str, MemoryClient] = {}
        # by consumer: messages by packet identifier, and how often each was moved before
        self.held: dict[str, dict[int, tuple[int, int]]] = {}
        self.moved: Counter[int] = Counter()
        self.sent: dict[int, tuple[str, int]] = {}  # identifier and attempt that were sent last
        self.published = 0
        self.acknowledged: set[int] = set()
        self.seen: set[int] = set()
        self.newest: dict[str, int] = {}  # by topic, of messages seen for the first time
        self.ordered = True  # until a message went back

    def channel(self, name: str = "jobs") -> Channel:
        (channel,) = self.harness.broker.channels.named(name)
        return channel

    def waiting(self, name: str) -> list[int]:
        """The messages that wait in memory in a channel, as an operator is shown them."""
        return [
            int(offer.span.publication.new_message(number).payload)
            for offer in self.channel(name).waiting.offers()
            for number in range(offer.span.first, offer.span.first + offer.span.count)
        ]

    def look(self) -> None:
        """Take in what consumers were sent."""
        for name, client in self.clients.items():
            for packet in client.take():
                if isinstance(packet, Publish):
                    self.take(name, packet)

    def take(self, name: str, packet: Publish) -> None:
        number = int(packet.payload)
        assert number not in self.acknowledged, f"{number} came after its acknowledgement"
        assert packet.packet_id not in self.held[name]
        self.held[name][packet.packet_id] = number, self.moved[number]
        (_, own), _, (_, attempt) = packet.properties.user_properties[-3:]
        before, attempts = self.sent.get(number, (own, 0))
        assert own == before, f"{number} was {before} and is {own}"
        assert int(attempt) > attempts
        self.sent[number] = own, int(attempt)
        if number not in self.seen and self.choice is Choice.STICKY and self.ordered:
            assert number > self.newest.get(packet.topic, -1)
            self.newest[packet.topic] = number
        self.seen.add(number)

    @rule(topic=st.sampled_from(["t/1", "t/2", "t/3"]), count=st.integers(1, 4))
    def publish(self, topic: str, count: int) -> None:
        for _ in range(count):
            code = self.harness.publish(topic, b"%d" % self.published, 1)
            assert code < ReasonCode.UNSPECIFIED_ERROR
            self.published += 1
        self.look()

    @rule(name=st.sampled_from(NAMES), window=st.sampled_from([1, 2, 100]))
    def connect(self, name: str, window: int) -> None:
        if name not in self.clients:
            self.clients[name] = client = self.harness.persistent(name, receive_maximum=window)
            self.held[name] = {}
            client.subscribe(self.filters[name], 1)
            self.look()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        if self.held[name]:
            packet_id = data.draw(st.sampled_from(sorted(self.held[name])))
            number, moved = self.held[name].pop(packet_id)
            if moved == self.moved[number] and self.owes(name, number):
                self.acknowledged.add(number)
            self.clients[name].send(PubAck(packet_id))
            self.look()

    def owes(self, name: str, number: int) -> bool:
        """Whether a message was not acknowledged, is no letter, and nobody else has it now."""
        gone = number in self.acknowledged or number in self.waiting("dead")
        return not gone and not any(
            int(each.sent.publication.new_message(one).payload) == number
            for each in self.channel().deliveries
            if each.consumer.client_id != name
            for one in each.pending()
        )

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        if self.held[name]:
            packet_id = data.draw(st.sampled_from(sorted(self.held[name])))
            del self.held[name][packet_id]
            self.ordered = False
            self.clients[name].send(PubAck(packet_id, ReasonCode.UNSPECIFIED_ERROR))
            self.harness.pass_time(0)
            self.look()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), later=st.sampled_from([0.0, 2.0, TIMEOUT]), one=st.booleans())
    def requeue(self, data: st.DataObject, later: float, one: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        only = self.any_id(name) if one else None
        self.ordered = False
        for packet_id in self.in_windows(name, only):
            self.held[name].pop(packet_id, None)
        self.channel().requeue(name, self.harness.now + later if later else 0.0, only)
        self.harness.pass_time(0)
        self.look()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), one=st.booleans())
    def touch(self, data: st.DataObject, one: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        only = self.any_id(name) if one else None
        self.channel().deliveries.touch(name, self.harness.now, only)

    def any_id(self, name: str) -> int | None:
        """The identifier of a message that a consumer has, if it has one."""
        for each in self.channel().deliveries:
            if each.consumer.client_id == name:
                return message_id(each.source, each.pending()[0])
        return None

    def in_windows(self, name: str, only: int | None) -> list[int]:
        """Packet identifiers of what a consumer has in flight, or had before it timed out."""
        deliveries = self.channel().deliveries
        return [
            each.sent.packet_id + number - each.sent.first
            for each in (*deliveries, *deliveries.late.values())
            if each.consumer.client_id == name
            for number in each.pending(only)
        ]

    @rule(count=st.integers(1, 3))
    def move(self, count: int) -> None:
        """Messages go to the end of their own channel, as an operator may move them."""
        self.ordered = False
        for _ in range(count):
            self.move_one("jobs", lambda _: None)
        self.look()

    def move_one(self, name: str, find: Find) -> bool:
        """Move the next message; an acknowledgement of an earlier delivery counts no more."""
        channel, first = self.channel(name), next(iter(self.waiting(name)), -1)
        if move_next(channel, find, self.harness.now) is None:
            return False
        self.moved[first] += 1
        self.sent.pop(first, None)
        return True

    @rule()
    def redrive(self) -> None:
        """All dead letters go back to the channel that they came from."""
        find = back(self.harness.broker.channels.named, lambda: self.harness.instant)
        while self.move_one("dead", find):
            self.ordered = False
        self.harness.pass_time(0)
        self.look()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.ordered = False
        client = self.clients.pop(name)
        del self.held[name]
        client.drop()
        self.harness.pass_time(0)
        self.look()

    @rule(seconds=st.sampled_from([1.0, 4.0, TIMEOUT]))
    def time_passes(self, seconds: float) -> None:
        self.ordered = False
        self.harness.pass_time(seconds)
        self.look()

    @rule()
    def pause(self) -> None:
        self.harness.broker.channels.pause(self.channel())

    @rule()
    def resume(self) -> None:
        self.harness.broker.channels.resume(self.channel())
        self.harness.pass_time(0)
        self.look()

    @rule(topic_filter=st.sampled_from(["t/1", "t/+"]))
    def pause_filter(self, topic_filter: str) -> None:
        self.harness.broker.channels.pause_filter(topic_filter)

    @rule(topic_filter=st.sampled_from(["t/1", "t/+"]))
    def resume_filter(self, topic_filter: str) -> None:
        self.harness.broker.channels.resume_filter(topic_filter)
        self.harness.pass_time(0)
        self.look()

    @rule()
    def crash(self) -> None:
        self.harness.pass_time(1.5)  # deletions are on disk a second later
        self.ordered = False
        self.clients.clear()
        self.held.clear()
        self.harness.crash()

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        if hasattr(self, "harness"):
            while self.channel().alarm.second <= self.harness.now:
                self.harness.pass_time(0)  # letters are published
            self.look()
            jobs, dead = self.channel(), self.channel("dead")
            owed = self.published - len(self.acknowledged)
            assert jobs.depth + jobs.in_flight + dead.depth == owed
            assert self.letters or not dead.depth
            shown = self.waiting("jobs") + self.waiting("dead")
            assert len({*shown}) == len(shown)
            assert not self.acknowledged & {*shown}

    def teardown(self) -> None:
        """Everything that was not acknowledged comes to a consumer that takes it."""
        if not hasattr(self, "harness"):
            return
        for client in self.clients.values():
            client.drop()
        self.clients = {}
        self.filters["x"] = "$queue/jobs"
        self.harness.pass_time(TIMEOUT)  # what was put off is there
        self.resume()
        self.resume_filter("t/1")
        self.resume_filter("t/+")
        self.connect("x", 100)
        while self.held["x"] or self.waiting("dead"):
            self.redrive()
            for packet_id, (number, _) in list(self.held["x"].items()):
                del self.held["x"][packet_id]
                self.acknowledged.add(number)
                self.clients["x"].send(PubAck(packet_id))
                self.look()
        assert self.acknowledged == set(range(self.published))


TestChannelModel = pytest.mark.uncovered(ChannelModel.TestCase)
TestChannelModel.settings = hypothesis_settings(stateful_step_count=30)
