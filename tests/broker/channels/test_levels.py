"""Priorities: a higher level first, each in order, through whatever happens to its messages."""

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.broker.channels.levels import Level
from gateway.broker.channels.moving import back, move_next, to_channel
from gateway.broker.channels.stamps import message_id
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings, Choice
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import (
    SHARED,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
    settings,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

BY_PROPERTY = "$user.priority"
BY_TOPIC = (
    "CASE WHEN TOPIC_MATCHES('t/+/high') THEN 'high' WHEN TOPIC_MATCHES('t/+/low') THEN 'low' END"
)
LEVELS = ("high", "normal", "low")


def send(harness: Harness, *levels: str | None, topic: str = "t/a", qos: int = 1) -> None:
    """Publish 0, 1 and so on, with these values of the property `priority`, in one read."""
    client = harness.connect("publisher")
    packets = []
    for number, level in enumerate(levels):
        pairs = () if level is None else (("priority", level),)
        properties = Properties(user_properties=pairs)
        packet_id = number + 1 if qos else 0
        packets.append(Publish(topic, b"%d" % number, qos, False, False, packet_id, properties))
    client.send(*packets)


@pytest.mark.parametrize("choice", [*Choice])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("temporary", [False, True])
def test_higher_levels_come_first_and_each_in_order(
    choice: Choice, qos: int, temporary: bool
) -> None:
    harness = durable(priority=BY_PROPERTY, choice=choice, temporary=temporary)
    client = consumer(harness, "c")
    harness.broker.channels.pause(channel_of(harness))
    send(harness, "low", "high", None, "high", "normal", "low", qos=qos)
    harness.broker.channels.resume(channel_of(harness))
    harness.pass_time(0)
    assert got(client) == "132405"


def test_a_value_that_is_no_level_is_counted_and_normal() -> None:
    harness = durable(priority=BY_PROPERTY)
    send(harness, "low", "urgent", None, "HIGH", "high", "")
    assert channel_of(harness).figures.bad_priority == 3
    assert [len(each.waiting) for each in channel_of(harness).every_level] == [1, 4, 1]
    assert got(consumer(harness, "c")) == "412350"


@pytest.mark.parametrize(
    "expression",
    [
        BY_TOPIC,
        "CASE WHEN payload = 2 THEN 'high' WHEN payload = 0 THEN 'low' END",
        "CASE payload WHEN 2 THEN 'high' WHEN 0 THEN 'low' END",
    ],
)
def test_rules_of_the_configuration_find_the_level(expression: str) -> None:
    harness = durable(priority=expression)
    for number, topic in enumerate(["t/a/low", "t/a", "t/a/high"]):
        harness.publish(topic, b"%d" % number, 1)
    assert got(consumer(harness, "c")) == "210"
    assert channel_of(harness).figures.bad_priority == 0


def test_messages_of_one_read_go_to_their_levels_in_runs() -> None:
    harness = durable(
        priority="CASE WHEN TOPIC_MATCHES('t/+/high') THEN 'high' WHEN payload < 3 THEN 5 END"
    )
    client = harness.connect("publisher")
    topics = ("t/a", "t/b", "t/a/high", "t/b/high", "t/b/high", "t/a", "t/a")
    client.send(*(Publish(each, b"%d" % n, 1, packet_id=n + 1) for n, each in enumerate(topics)))
    assert channel_of(harness).figures.bad_priority == 2
    assert got(consumer(harness, "c")) == "2340156"


def test_a_lower_level_goes_on_when_what_was_before_it_has_expired() -> None:
    harness = durable(priority=BY_PROPERTY, choice=Choice.STICKY)
    workers = [consumer(harness, name, receive_maximum=1) for name in ("a", "b")]
    properties = Properties(message_expiry_interval=5, user_properties=(("priority", "high"),))
    for payload in (b"1", b"2"):  # the second waits for the consumer of its topic
        harness.connect("publisher").send(Publish("t/1", payload, 1, False, False, 1, properties))
    for number in range(8):
        harness.publish(f"t/{number}", b"0", 1)
    assert sorted(got(each, acknowledge=False) for each in workers) == ["", "1"]
    harness.now += 5.0
    assert channel_of(harness).every_level[0].drop_expired(harness.now) == 1
    harness.pass_time(0)
    idle = "".join(got(each, acknowledge=False) for each in workers)
    assert (idle, channel_of(harness).in_flight) == ("0", 2)


def test_a_lower_level_waits_although_a_consumer_has_capacity() -> None:
    """The higher message waits for its own consumer, or for the disk; it is not overtaken."""
    harness = durable(priority=BY_PROPERTY, memory_messages=1)
    send(harness, *["low"] * 3, *["high"] * 3, None)
    client = consumer(harness, "c", receive_maximum=2)
    assert got(client, acknowledge=False) == "34"
    channel = channel_of(harness)
    high, normal, low = channel.every_level
    assert not channel.comes_soon
    assert (high.levels and high.levels.block(Level.HIGH)) is False
    client.send(PubAck(1))
    assert got(client, acknowledge=False) == "5"
    assert [len(each.waiting) for each in (high, normal, low)] == [0, 1, 3]
    publish(harness, "9")  # normal: behind the one that waits
    client.send(PubAck(2), PubAck(3))
    assert got(client) == "69012"


def test_a_new_message_does_not_pass_a_higher_one_that_is_about_to_be_sent() -> None:
    harness = durable(priority=BY_PROPERTY)
    client = consumer(harness, "c")
    harness.broker.channels.pause(channel_of(harness))
    send(harness, "high", "high")
    harness.broker.channels.resume(channel_of(harness))  # in the next turn
    publish(harness, "9")
    assert got(client) == "019"


def test_a_message_that_came_back_is_before_its_own_level_only() -> None:
    harness = durable(priority=BY_PROPERTY, max_attempts=0)
    send(harness, "low", "low", None)
    client = consumer(harness, "c", receive_maximum=1)
    (first,) = messages(client)
    client.send(PubAck(first.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    harness.pass_time(0)
    assert first.payload == b"2"
    (again,) = messages(client)
    assert again.payload == b"2"
    client.send(PubAck(again.packet_id))
    (low,) = messages(client)
    channel_of(harness).every_level[2].requeue("c", harness.now + 5.0)
    harness.pass_time(0)
    send(harness, None, "high")
    assert (low.payload, got(client)) == (b"0", "110")
    harness.pass_time(5.0)
    assert got(client) == "0"


@pytest.mark.parametrize("choice", [Choice.STICKY, Choice.ROUND_ROBIN])
def test_a_consumer_that_hangs_with_one_level_does_not_stop_another(choice: Choice) -> None:
    harness = durable(priority=BY_PROPERTY, choice=choice)
    hangs = consumer(harness, "hangs", receive_maximum=1)
    send(harness, "high")
    assert got(hangs, acknowledge=False) == "0"
    works = consumer(harness, "works")
    harness.pass_time(10.0)
    for number in range(8):
        send(harness, "low", topic=f"t/{number}")
    harness.pass_time(0)
    assert got(works) == "0" * 9
    assert [each.in_flight for each in channel_of(harness).consumers.windows()] == [0, 0]


def test_identifiers_differ_between_levels() -> None:
    harness = durable(priority=BY_PROPERTY)
    send(harness, *LEVELS * 3)
    channel = channel_of(harness)
    spans = [span for each in channel.every_level for span in each.queue]
    assert len({message_id(span, span.first + n) for span in spans for n in range(span.count)}) == 9
    harness.crash()
    client = consumer(harness, "c")
    assert [each.payload for each in messages(client)] == [
        b"%d" % n for n in (0, 3, 6, 1, 4, 7, 2, 5, 8)
    ]
    harness.crash()
    send(harness, *LEVELS)  # numbers go on in each level, also in those that are empty
    spans = [span for each in channel_of(harness).every_level for span in each.queue]
    assert (
        len({message_id(span, span.first + n) for span in spans for n in range(span.count)}) == 12
    )


def test_dead_letters_moves_and_redrive_keep_the_level() -> None:
    jobs = ChannelSettings(
        "jobs", "t/#", priority=BY_PROPERTY, max_attempts=1, dead_letter_topic="dead"
    )
    other = ChannelSettings("other", "o/#", priority=BY_PROPERTY)
    harness = DurableHarness(
        BrokerSettings(channels=(jobs, ChannelSettings("dead", "dead"), other))
    )
    send(harness, "low", "high", None)
    client = consumer(harness, "c")
    taken = [*messages(client)]
    client.send(*(PubAck(each.packet_id, ReasonCode.UNSPECIFIED_ERROR) for each in taken))
    harness.pass_time(0)
    channel, dead = channel_of(harness), channel_of(harness, "dead")
    assert (channel.depth, dead.depth) == (0, 3)
    client.drop()
    while move_next(
        dead, back(harness.broker.channels.named, lambda: harness.instant), harness.now
    ):
        harness.settle()
    assert [len(each.waiting) for each in channel.every_level] == [1, 1, 1]
    there = channel_of(harness, "other")
    while move_next(channel, to_channel(there), harness.now):
        harness.settle()
    assert channel.depth == 0
    assert [len(each.waiting) for each in there.every_level] == [1, 1, 1]


def test_the_bounds_of_each_level_are_its_own() -> None:
    """A flood of one level refuses no message of another."""
    harness = durable(priority=BY_PROPERTY, maximum_messages=2)
    send(harness, *["low"] * 5, "high")
    assert [len(each.waiting) for each in channel_of(harness).every_level] == [1, 0, 2]


def test_all_levels_are_paused_emptied_expired_and_deleted() -> None:
    harness = durable(priority=BY_PROPERTY, maximum_age=5.0, maximum_messages=5)
    channels, channel = harness.broker.channels, channel_of(harness)
    channels.pause(channel)
    client = consumer(harness, "c")
    send(harness, *LEVELS)
    assert got(client) == ""
    assert (channel.depth, channel.put_aside, channel.oldest(harness.now + 2)) == (3, 0, 2)
    waiting = channel.bytes
    channels.resume(channel)
    channels.pause_filter("t/+")
    harness.pass_time(0)
    assert (got(client), channel.put_aside) == ("", 3)
    assert channel.bytes == waiting > 0  # what is set aside waits, too
    channels.resume_filter("t/+")
    harness.pass_time(0)
    assert (got(client, acknowledge=False), channel.attempts) == ("012", 1)
    channels.empty(channel)
    assert (channel.depth, channel.in_flight) == (0, 0)
    client.drop()
    send(harness, *LEVELS)
    harness.pass_time(20.0)
    assert (channel.depth, channel.figures.expired) == (0, 3)
    send(harness, *LEVELS)
    channels.delete(channel)
    harness.pass_time(1.5)
    harness.crash()
    assert channel_of(harness).depth == 0


def test_what_waits_keeps_its_level_when_the_priority_is_removed_and_comes_back() -> None:
    harness = durable()
    send(harness, "low", "high")  # before it has priorities: both are normal
    with_levels, without = settings(priority=BY_PROPERTY), settings()
    change = harness.broker.channels.change
    change(with_levels, harness.broker.settings.queue_when_full)
    send(harness, "low", "high", None)
    assert [len(each.waiting) for each in channel_of(harness).every_level] == [1, 3, 1]
    change(without, harness.broker.settings.queue_when_full)
    harness.settings = without
    harness.pass_time(1)
    harness.crash()
    send(harness, "high")
    assert [len(each.waiting) for each in channel_of(harness).every_level] == [1, 4, 1]
    assert got(consumer(harness, "c")) == "101200"


class LevelsModel(RuleBasedStateMachine):
    """One consumer gets exactly what a naive reference of three lists says, whatever happens."""

    @initialize(memory=st.sampled_from([1, 2, 100]), choice=st.sampled_from([*Choice]))
    def begin(self, memory: int, choice: Choice) -> None:
        self.harness = durable(
            priority=BY_PROPERTY, choice=choice, memory_messages=memory, max_attempts=0
        )
        self.client: MemoryClient | None = None
        self.window = 0
        self.paused = False
        self.levels: dict[int, str] = {}
        self.back: dict[str, list[int]] = {each: [] for each in LEVELS}
        self.queue: dict[str, list[int]] = {each: [] for each in LEVELS}
        self.later: list[tuple[float, int, int]] = []  # second, order, number
        self.held: dict[int, int] = {}  # by packet identifier
        self.order = 0

    def next(self) -> int | None:
        for level in LEVELS:
            for source in (self.back[level], self.queue[level]):
                if source:
                    return source.pop(0)
        return None

    def check(self) -> None:
        """The consumer got what the reference gives it, in this order."""
        if self.client is None:
            return
        for packet in messages(self.client):
            number = self.next()
            assert packet.payload == b"%d" % (-1 if number is None else number)
            self.held[packet.packet_id] = int(packet.payload)
        full = len(self.held) == self.window
        waits = any(self.back[each] or self.queue[each] for each in LEVELS)
        assert self.paused or full or not waits

    @rule(levels=st.lists(st.sampled_from([*LEVELS, "other"]), min_size=1, max_size=5))
    def publish(self, levels: list[str]) -> None:
        publisher = self.harness.connect("publisher")
        for packet_id, level in enumerate(levels, 1):
            number = len(self.levels)
            self.levels[number] = level if level in LEVELS else "normal"
            self.queue[self.levels[number]].append(number)
            properties = Properties(user_properties=(("priority", level),))
            # one after the other: those of one read may be sent before the last has arrived
            publisher.send(
                Publish("t/a", b"%d" % number, 1, packet_id=packet_id, properties=properties)
            )
            self.check()

    @precondition(lambda self: self.client is None)
    @rule(window=st.sampled_from([1, 2, 100]))
    def connect(self, window: int) -> None:
        self.window = window
        self.client = self.harness.persistent("c", receive_maximum=window)
        self.client.subscribe(SHARED, 1)
        self.check()

    def one(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.held)))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), refuses=st.booleans())
    def answer(self, data: st.DataObject, refuses: bool) -> None:
        assert self.client is not None
        packet_id = self.one(data)
        number = self.held.pop(packet_id)
        if refuses:
            self.back[self.levels[number]].append(number)
        code = ReasonCode.UNSPECIFIED_ERROR if refuses else ReasonCode.SUCCESS
        self.client.send(PubAck(packet_id, code))
        self.harness.pass_time(0)
        self.check()

    @precondition(lambda self: self.held)
    @rule(data=st.data(), seconds=st.sampled_from([1.0, 3.0]))
    def requeue(self, data: st.DataObject, seconds: float) -> None:
        number = self.held.pop(self.one(data))
        second = self.harness.now + seconds
        self.order += 1
        self.later.append((second, self.order, number))
        for each in channel_of(self.harness).every_level:
            for delivery in [*each.deliveries]:
                for one in delivery.pending():
                    source = delivery.source
                    if source.publication.packets.one(one) == b"%d" % number:
                        each.requeue("c", second, message_id(source, one))
        self.harness.pass_time(0)
        self.check()

    @rule()
    def time_passes(self) -> None:
        self.harness.pass_time(1.0)
        self.come_back()
        self.check()

    def come_back(self) -> None:
        due = sorted(each for each in self.later if each[0] <= self.harness.now)
        self.later = [each for each in self.later if each not in due]
        for _, _, number in due:
            self.back[self.levels[number]].append(number)

    @precondition(lambda self: self.client)
    @rule()
    def leave(self) -> None:
        assert self.client is not None
        self.client.drop()
        self.client = None
        for number in self.held.values():
            self.back[self.levels[number]].append(number)
        self.held = {}
        self.harness.pass_time(0)

    @rule(pauses=st.booleans())
    def pause(self, pauses: bool) -> None:
        channels, channel = self.harness.broker.channels, channel_of(self.harness)
        self.paused = pauses
        (channels.pause if pauses else channels.resume)(channel)
        self.harness.pass_time(0)
        self.check()

    @rule()
    def crash(self) -> None:
        self.harness.pass_time(1.5)  # deletions are on disk a second later
        self.come_back()
        self.check()
        self.harness.crash()
        self.client, self.paused = None, False
        left = [*self.held.values(), *(number for _, _, number in self.later)]
        for level in LEVELS:
            left += self.back[level] + self.queue[level]
        self.held, self.later = {}, []
        for level in LEVELS:
            self.back[level] = []
            self.queue[level] = sorted(each for each in left if self.levels[each] == level)

    @invariant()
    def every_level_has_its_depth(self) -> None:
        if hasattr(self, "harness"):
            later = [self.levels[number] for _, _, number in self.later]
            for name, each in zip(LEVELS, channel_of(self.harness).every_level, strict=True):
                waits = len(self.back[name]) + len(self.queue[name]) + later.count(name)
                assert len(each.waiting) == waits


TestLevelsModel = pytest.mark.uncovered(LevelsModel.TestCase)
TestLevelsModel.settings = hypothesis_settings(stateful_step_count=30)
