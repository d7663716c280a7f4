"""The last value of each key: no older one comes after a newer one, whatever happens."""

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.broker.channels.moving import back, move_next, to_channel
from gateway.broker.channels.stamps import message_id
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from gateway.settings.when_full import WhenFull
from gateway.storage.sessions.session_journal import SessionJournal
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import (
    SHARED,
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    settings,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

TOPIC = {"last_value": "topic"}


def put(harness: Harness, *values: str, qos: int = 1) -> None:
    """Publish values such as `a1`: 1 of the key a."""
    for value in values:
        assert harness.publish(f"t/{value[0]}", value[1:].encode(), qos) < 0x80


def refuse(client: MemoryClient, *packets: Publish) -> None:
    client.send(*(PubAck(each.packet_id, ReasonCode.UNSPECIFIED_ERROR) for each in packets))
    client.harness.pass_time(0)


def in_memory(harness: Harness) -> int:
    """How many messages the queues count, by their bytes, too."""
    queue = channel_of(harness).queue
    assert queue.bytes == sum(each.disk_bytes or each.size for each in queue)
    assert queue.memory_bytes == sum(each.size for each in queue)
    assert queue.messages == sum(each.count for each in queue)
    return queue.messages


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("temporary", [False, True])
def test_a_newer_message_takes_the_place_of_the_one_that_waits(qos: int, temporary: bool) -> None:
    harness = durable(**TOPIC, temporary=temporary)
    client = consumer(harness, "c")
    harness.broker.channels.pause(channel_of(harness))
    put(harness, "a1", "b2", qos=qos)
    harness.pass_time(3.0)
    put(harness, "c3", "a4", "c5", "a6", qos=qos)
    # nobody works, however new the values are
    assert channel_of(harness).oldest(harness.now) == 3.0
    assert in_memory(harness) == 3
    assert channel_of(harness).figures.replaced == 3
    harness.broker.channels.resume(channel_of(harness))
    harness.pass_time(0)
    assert got(client) == "625"


@pytest.mark.parametrize(
    ("expression", "payloads", "left"),
    [
        ("payload.d", ['{"d":1,"v":1}', '{"d":1,"v":2}', '{"d":2}'], [1, 2]),
        ("payload.d", ['{"d":1}', '{"d":true}', '{"d":"1"}', '{"d":1.0}'], [3, 1, 2]),
        ("payload.d", ["x", "x", "{}", '{"d":null}', '{"d":[1]}', '{"d":[1]}'], [0, 1, 2, 3, 4, 5]),
        ("topic[1]", ["x", "y"], [1]),
        ("CASE WHEN payload > 5 THEN 'large' END", ["7", "1", "9", "1"], [2, 1, 3]),
    ],
)
def test_the_key_is_the_value_of_an_expression(
    expression: str, payloads: list[str], left: list[int]
) -> None:
    """A message without a key stands for itself."""
    harness = durable(last_value=expression)
    for each in payloads:
        harness.publish("t/x", each.encode(), 1)
    client = consumer(harness, "c")
    assert [each.payload.decode() for each in messages(client)] == [payloads[n] for n in left]


def test_what_is_in_flight_is_not_replaced_and_its_acknowledgement_ends_only_itself() -> None:
    harness = durable(**TOPIC)
    client = consumer(harness, "c", receive_maximum=1)
    put(harness, "a1", "a2", "a3")
    channel = channel_of(harness)
    assert (channel.in_flight, channel.depth) == (1, 1)
    (first,) = messages(client)
    assert first.payload == b"1"
    client.send(PubAck(first.packet_id))
    assert got(client) == "3"
    assert (channel.depth, channel.figures.acknowledged, channel.figures.replaced) == (0, 2, 1)


def test_the_row_of_a_superseded_message_is_deleted_once() -> None:
    harness = durable(**TOPIC)
    client = consumer(harness, "c", receive_maximum=1)
    put(harness, "a1", "b2", "a3")
    harness.pass_time(1.5)  # also notes that it is in flight for long
    client.send(PubAck(1))
    assert got(client, acknowledge=False) == "12"
    harness.pass_time(1.5)
    count = harness.disk.connection.execute("SELECT count(*) FROM delivery").fetchone()[0]
    journal = channel_of(harness).journal
    assert isinstance(journal, SessionJournal)
    assert (count, journal.deliveries, {*journal.attempts.values()}) == (2, 2, {1})


@pytest.mark.parametrize("how", ["refused", "disconnected", "timed out", "requeued", "too large"])
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_superseded_message_does_not_come_back(how: str, acknowledged: bool) -> None:
    """Also if the newer one was acknowledged meanwhile, and in spite of its last attempt."""
    harness = durable(**TOPIC, max_attempts=1, dead_letter_topic="dead")
    old = consumer(harness, "old", receive_maximum=1)
    put(harness, "a1")
    (packet,) = messages(old)
    new = consumer(harness, "new")
    put(harness, "a2")
    (newer,) = messages(new)
    assert newer.payload == b"2"
    if acknowledged:
        new.send(PubAck(newer.packet_id))
    channel = channel_of(harness)
    if how == "refused":
        refuse(old, packet)
    elif how == "disconnected":
        old.drop()
    elif how == "timed out":
        channel.deliveries.touch("new", harness.now + 8.0)
        harness.pass_time(TIMEOUT)
    elif how == "requeued":
        (delivery, *_) = channel.deliveries
        channel.requeue("old", harness.now + 5.0, message_id(delivery.source, 0))
    else:
        (delivery, *_) = channel.deliveries
        channel.deliveries.too_large(delivery.sent, 0)
    harness.pass_time(5.0)
    assert (channel.in_flight, channel.depth) == (1 - acknowledged, 0)
    assert (channel.figures.replaced, channel.figures.dead_lettered) == (1, 0)
    harness.pass_time(1.5)
    harness.crash()  # the newer one is on disk, with its last attempt
    channel = channel_of(harness)
    assert channel.depth == 1 - acknowledged
    assert got(consumer(harness, "last")) == ""
    harness.pass_time(0)
    assert (channel.depth, channel.figures.dead_lettered) == (0, 1 - acknowledged)


def test_a_message_that_came_back_or_is_set_aside_is_replaced_at_the_end() -> None:
    harness = durable(**TOPIC)
    client = consumer(harness, "c")
    put(harness, "a1", "b2")
    assert got(client, acknowledge=False) == "12"
    channel = channel_of(harness)
    channel.requeue("c", harness.now + 5.0)
    harness.broker.channels.pause_filter("t/c")
    put(harness, "c3", "a4", "c5")
    harness.broker.channels.resume_filter("t/c")
    harness.pass_time(5.0)
    assert got(client) == "452"
    assert channel.figures.replaced == 2


def test_a_dead_letter_that_is_refused_gives_way_to_a_newer_message() -> None:
    jobs = ChannelSettings("jobs", "t/#", **TOPIC, max_attempts=1, dead_letter_topic="dead")  # type: ignore[arg-type]  # by name
    full = ChannelSettings("full", "dead", maximum_messages=1)
    harness = DurableHarness(BrokerSettings(channels=(jobs, full)))
    harness.publish("dead", b"x", 1)
    client = consumer(harness, "c", receive_maximum=1)
    put(harness, "a1")
    refuse(client, *messages(client))
    channel = channel_of(harness)
    assert channel.depth == 1  # the letter, which will be tried again
    put(harness, "a2")
    assert got(client, acknowledge=False) == "2"
    harness.pass_time(2.0)
    assert (channel.depth, channel.in_flight, channel.figures.replaced) == (0, 1, 1)
    client.drop()  # its last attempt, too: now the letter is on its way when a newer one comes
    put(harness, "a3")
    harness.pass_time(2.0)
    assert got(consumer(harness, "d")) == "3"


@pytest.mark.uncovered
@pytest.mark.parametrize("memory", [1, 1000])
def test_only_the_newest_comes_after_a_crash_with_more_than_a_page_on_disk(memory: int) -> None:
    harness = durable(**TOPIC, memory_messages=memory)
    count = 2_600
    for number in range(count):
        harness.publish(f"t/{number}", b"1", 1)
    put(harness, "73", "72")
    harness.crash()
    put(harness, "84")  # while what is older is only on disk
    channel = channel_of(harness)
    client = consumer(harness, "c")
    found: dict[str, bytes] = {}
    while some := [*messages(client)]:
        for each in some:
            assert each.topic not in found
            found[each.topic] = each.payload
            client.send(PubAck(each.packet_id))
        harness.pass_time(0)
    assert len(found) == count
    assert (found["t/7"], found["t/8"], channel.depth) == (b"2", b"4", 0)


@pytest.mark.parametrize("when_full", [WhenFull.REJECT, WhenFull.DROP_OLDEST, WhenFull.DROP_NEWEST])
def test_keys_are_bounded(when_full: WhenFull) -> None:
    harness = durable(**TOPIC, maximum_keys=2, when_full=when_full)
    put(harness, "a1", "b2", "a3")  # no further key
    publisher = harness.connect("publisher")
    topics = ("t/b", "t/c", "t/c", "t/a")
    publisher.send(*(Publish(each, b"%d" % n, 1, packet_id=n) for n, each in enumerate(topics, 4)))
    codes = [each.reason_code for each in publisher.take() if isinstance(each, PubAck)]
    client = consumer(harness, "c")
    if when_full is WhenFull.REJECT:
        assert codes == [0, 0x97, 0x97, 0]
        assert got(client) == "74"
    elif when_full is WhenFull.DROP_OLDEST:
        assert got(client) == "67"  # a gave way to c, and b to the new a
    else:
        assert got(client) == "74"
    harness = durable(**TOPIC, maximum_keys=2, temporary=True)
    client = consumer(harness, "c")
    harness.broker.channels.pause(channel_of(harness))
    put(harness, "a1", "b2", "c3", "a4")
    assert channel_of(harness).figures.dropped == 1
    assert in_memory(harness) == 2


def test_of_one_read_as_many_new_keys_are_accepted_as_fit() -> None:
    harness = durable(**TOPIC, maximum_keys=3)
    put(harness, "a1", "b2")
    publisher = harness.connect("publisher")
    topics = ("t/c", "t/d", "t/c")
    publisher.send(*(Publish(each, b"%d" % n, 1, packet_id=n) for n, each in enumerate(topics, 3)))
    codes = [each.reason_code for each in publisher.take() if isinstance(each, PubAck)]
    assert (codes, got(consumer(harness, "c"))) == ([0, 0x97, 0], "125")


def test_of_one_read_as_many_messages_without_a_key_are_accepted_as_fit() -> None:
    harness = durable(last_value="payload.device", maximum_messages=2)
    publisher = harness.connect("publisher")
    publisher.send(*(Publish("t/a", b'{"n":1}', 1, packet_id=number) for number in (1, 2, 3)))
    codes = [each.reason_code for each in publisher.take() if isinstance(each, PubAck)]
    assert codes == [0, 0, 0x97]


@pytest.mark.parametrize("when_full", [WhenFull.REJECT, WhenFull.DROP_OLDEST, WhenFull.DROP_NEWEST])
def test_a_larger_value_does_not_exceed_the_bytes(when_full: WhenFull) -> None:
    harness = durable(**TOPIC, disk_bytes=1024, when_full=when_full)
    harness.publish("t/a", b"1" * 300, 1)
    harness.publish("t/b", b"2" * 700, 1)
    code = harness.publish("t/a", b"3" * 900, 1)
    channel = channel_of(harness)
    assert (code == ReasonCode.QUOTA_EXCEEDED) is (when_full is WhenFull.REJECT)
    found = [each.publication.packets.one(0)[:1] for each in channel.queue]
    assert found == ([b"2", b"3"] if when_full is WhenFull.DROP_OLDEST else [b"1", b"2"])
    assert harness.publish("t/b", b"4" * 700, 1) < 0x80  # as long as the one before
    in_memory(harness)


def test_no_consumer_acknowledges_a_value_before_the_older_one_is_gone_from_disk() -> None:
    harness = durable(**TOPIC)
    client = consumer(harness, "c", receive_maximum=1)
    put(harness, "b1", "a2")
    harness.commits = False
    put(harness, "a3")
    client.send(PubAck(1))
    assert got(client, acknowledge=False) == "1"
    harness.commit()
    assert got(client) == "3"
    harness.commits = True
    harness.crash()
    assert got(consumer(harness, "d")) == "3"  # its deletion was not on disk; 2 is gone


def test_expiry_empty_and_delete_forget_keys() -> None:
    harness = durable(**TOPIC, maximum_age=5.0)
    channel = channel_of(harness)
    put(harness, "a1")
    harness.now += 6.0
    assert channel.drop_expired(harness.now) == 1
    put(harness, "a2")
    harness.broker.channels.empty(channel)
    put(harness, "a3", "a4")
    assert got(consumer(harness, "c")) == "4"
    assert channel.figures.replaced == 1
    harness.broker.channels.pause(channel)
    harness.publish("t/a", b"5", 1, message_expiry=2)
    harness.now += 3.0
    assert channel.drop_expired(harness.now) == 1
    put(harness, "a6")
    assert (channel.depth, channel.figures.replaced) == (1, 1)


def test_redriven_letters_replace_nothing_and_moved_messages_do() -> None:
    jobs = ChannelSettings("jobs", "t/#", **TOPIC, max_attempts=1, dead_letter_topic="dead")  # type: ignore[arg-type]  # by name
    channels = (jobs, ChannelSettings("dead", "dead"), ChannelSettings("to", "to", **TOPIC))  # type: ignore[arg-type]  # by name
    harness = DurableHarness(BrokerSettings(channels=channels))
    client = consumer(harness, "c")
    put(harness, "a1", "b2")
    refuse(client, *messages(client))
    client.drop()
    put(harness, "a3")
    channel, dead = channel_of(harness), channel_of(harness, "dead")
    while move_next(
        dead, back(harness.broker.channels.named, lambda: harness.instant), harness.now
    ):
        harness.settle()
    assert (dead.depth, channel.depth, channel.figures.replaced) == (0, 2, 1)
    assert move_next(channel, lambda _: None, harness.now) is channel  # to its own end
    put(harness, "a4")
    client = consumer(harness, "d")
    assert got(client) == "24"
    client.drop()
    put(harness, "a5")
    there = channel_of(harness, "to")
    assert move_next(channel, to_channel(there), harness.now) is there
    put(harness, "a6")
    assert move_next(channel, to_channel(there), harness.now) is there
    assert (channel.depth, there.depth, there.figures.replaced) == (0, 1, 1)


def test_keys_begin_and_end_with_a_reload() -> None:
    harness = durable(memory_messages=1)
    channel, change = channel_of(harness), harness.broker.channels.change
    client = consumer(harness, "c", receive_maximum=1)
    publisher = harness.connect("publisher")
    publisher.send(
        *(Publish("t/a", b"%d" % number, 1, packet_id=number + 1) for number in range(4))
    )
    (first,) = messages(client)
    put(harness, "b4", "c5", "b6")
    change(settings(**TOPIC), WhenFull.REJECT)
    harness.pass_time(0)
    assert (in_memory(harness), channel.in_flight) == (3, 1)
    refuse(client, first)  # superseded by what waits
    put(harness, "c7")
    assert got(client) == "376"
    put(harness, "a1")
    change(settings(), WhenFull.REJECT)
    put(harness, "a2", "a3")
    assert got(client) == "123"


class LastValuesModel(RuleBasedStateMachine):
    """No older value is sent after a newer one was acknowledged; the newest comes in the end.

    The power goes at any moment: what was not committed is lost, and was promised to nobody. With
    one consumer, a dictionary says what comes next.
    """

    @initialize(memory=st.sampled_from([1, 100]), commits=st.booleans(), one=st.booleans())
    def begin(self, memory: int, commits: bool, one: bool) -> None:
        self.harness = durable(**TOPIC, memory_messages=memory, max_attempts=0)
        self.harness.commits = self.commits = commits
        self.names = ("x",) if one else ("x", "y")
        self.clients: dict[str, MemoryClient] = {}
        self.held: dict[str, dict[int, tuple[str, int]]] = {}
        self.published = 0
        self.newest: dict[str, int] = {}
        self.promised: dict[str, int] = {}
        self.ended: dict[str, int] = {}  # the newest acknowledged value of each key
        # what waits, as long as that is known: what waits for a commit has left the queue
        self.order: dict[str, int] | None = {} if commits and one else None

    def take(self) -> None:
        """Read what consumers were sent."""
        for name, client in self.clients.items():
            for packet in messages(client):
                key, value = packet.topic, int(packet.payload)
                assert value >= self.ended.get(key, -1), "an older value came back"
                self.held[name][packet.packet_id] = key, value
                if self.order is not None:
                    assert next(iter(self.order.items())) == (key, value)
                    del self.order[key]
        if self.commits:
            self.promised = {**self.newest}

    @rule(keys=st.lists(st.sampled_from(["t/a", "t/b"]), min_size=1, max_size=3))
    def publish(self, keys: list[str]) -> None:
        for key in keys:
            self.published += 1
            if self.order is not None:
                self.order[key] = self.published
            self.newest[key] = self.published
            assert self.harness.publish(key, b"%d" % self.published, 1) < 0x80
            self.take()

    @precondition(lambda self: len(self.clients) < len(self.names))
    @rule(window=st.sampled_from([1, 2, 100]))
    def connect(self, window: int) -> None:
        name = next(each for each in self.names if each not in self.clients)
        self.harness.commits = True  # which CONNACK waits for
        self.clients[name] = client = self.harness.persistent(name, receive_maximum=window)
        self.held[name] = {}
        client.subscribe(SHARED, 1)
        self.harness.commits = self.commits
        self.promised = {**self.newest}
        self.take()

    @precondition(lambda self: any(self.held.values()))
    @rule()
    def answer_all(self) -> None:
        while found := [(name, each) for name in self.clients for each in self.held[name]]:
            self.acknowledge(*found[0])

    def acknowledge(self, name: str, packet_id: int) -> None:
        key, value = self.held[name].pop(packet_id)
        self.ended[key] = max(value, self.ended.get(key, -1))
        self.clients[name].send(PubAck(packet_id))
        self.take()

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data(), refuses=st.booleans())
    def answer(self, data: st.DataObject, refuses: bool) -> None:
        name = data.draw(st.sampled_from(sorted(each for each in self.held if self.held[each])))
        packet_id = data.draw(st.sampled_from(sorted(self.held[name])))
        if not refuses:
            self.acknowledge(name, packet_id)
            return
        self.order = None
        del self.held[name][packet_id]
        self.clients[name].send(PubAck(packet_id, ReasonCode.UNSPECIFIED_ERROR))
        self.harness.pass_time(0)
        self.take()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), later=st.sampled_from([0.0, 2.0]))
    def requeue(self, data: st.DataObject, later: float) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.order = None
        self.held[name] = {}
        channel_of(self.harness).requeue(name, self.harness.now + later if later else 0.0)
        self.harness.pass_time(0)
        self.take()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.order = None
        del self.held[name]
        self.clients.pop(name).drop()
        self.harness.pass_time(0)
        self.take()

    @rule(seconds=st.sampled_from([1.0, TIMEOUT]))
    def time_passes(self, seconds: float) -> None:
        self.order = None
        self.harness.pass_time(seconds)
        self.take()

    @rule(pauses=st.booleans())
    def pause(self, pauses: bool) -> None:
        channels, channel = self.harness.broker.channels, channel_of(self.harness)
        (channels.pause if pauses else channels.resume)(channel)
        self.harness.pass_time(0)
        self.take()

    @rule(count=st.integers(1, 3))
    def move(self, count: int) -> None:
        self.order = None
        for _ in range(count):
            move_next(channel_of(self.harness), lambda _: None, self.harness.now)
        self.harness.settle()
        self.take()

    @rule()
    def commit(self) -> None:
        self.harness.commit()
        self.promised = {**self.newest}
        self.take()

    @rule(seconds=st.sampled_from([0.0, 1.5]))
    def crash(self, seconds: float) -> None:
        self.order = None
        self.harness.pass_time(seconds)
        self.take()
        self.clients, self.held = {}, {}
        self.newest = {**self.promised}
        self.harness.crash()
        self.harness.commits = self.commits

    @invariant()
    def each_key_waits_once(self) -> None:
        if hasattr(self, "harness") and self.clients:
            channel = channel_of(self.harness)
            waits = [each.publication.topic for each in channel.queue]
            waits += [each.span.publication.topic for each in channel.waiting.returned]
            assert len(waits) == len({*waits}) == channel.depth

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.harness.commits = self.commits = True
        self.pause(False)
        for name in [*self.clients]:
            self.clients.pop(name).drop()
        self.harness.pass_time(TIMEOUT)
        self.held, self.order = {}, None
        self.connect(100)
        while self.held["x"]:
            self.answer_all()
        for key, value in self.promised.items():
            assert self.ended.get(key, -1) >= value, f"{key} is lost"


TestLastValuesModel = pytest.mark.uncovered(LastValuesModel.TestCase)
TestLastValuesModel.settings = hypothesis_settings(stateful_step_count=30)
