"""What is remembered of topics: the last message, how many there were, and how often one comes."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.publishing import topic_memory
from gateway.broker.publishing.topic_memory import PAYLOAD_BYTES, TopicMemory
from gateway.mqtt.packets import Publish
from tests.support.broker.broker_harness import Harness


class On:
    """A broker that remembers topics."""

    def __init__(self, maximum: int = 100) -> None:
        self.harness = Harness()
        broker = self.harness.broker
        self.memory = TopicMemory(self.harness.counters, broker.admissions.forget_topic)
        self.memory.limit(maximum)
        broker.topic_memory = self.memory
        self.client = self.harness.connect("p")

    def publish(self, *messages: tuple[str, bytes]) -> None:
        """Publish in one read, so that the broker takes together what it can."""
        self.client.send(*[Publish(topic, payload) for topic, payload in messages])
        self.held = [topic.last for topic in self.memory.topics.values() if topic.last is not None]
        for _ in self.memory.sweep():
            pass

    @property
    def names(self) -> list[str]:
        return sorted(name[2:].decode() for name in self.memory.topics)


def test_messages_that_come_together_are_counted_each_to_its_topic() -> None:
    on = On()
    on.publish(*[(topic, b"%d" % number) for number in range(10) for topic in ("a", "a", "b")])
    found = {
        name: (topic.count, topic.payload, topic.size, topic.bytes, topic.client_id, topic.qos)
        for name, topic in on.memory.topics.items()
    }
    assert found == {
        b"\x00\x01a": (20, b"9", 1, 20, "p", 0),
        b"\x00\x01b": (10, b"9", 1, 10, "p", 0),
    }


def test_topics_that_alternate_have_each_its_last_message() -> None:
    on = On()
    for number in range(3):
        names = ("a", "b", "a", "$x") if number == 1 else ("a", "b", "a")
        on.publish(*[(name, b"%d%d" % (number, place)) for place, name in enumerate(names)])
    found = {
        name: (topic.count, topic.payload, topic.bytes) for name, topic in on.memory.topics.items()
    }
    assert found == {b"\x00\x01a": (6, b"22", 12), b"\x00\x01b": (3, b"21", 6)}


def test_a_large_payload_is_cut_and_does_not_keep_its_packet() -> None:
    on = On()
    for size in (300, 100_000):
        on.publish(("a", b"x" * size))
        (topic,) = on.memory.topics.values()
        assert (topic.payload, topic.size) == (b"x" * PAYLOAD_BYTES, size)
        topic.read()
        assert topic.payload == b"x" * PAYLOAD_BYTES, "the same when it is asked for again"


def test_the_interval_is_that_of_messages_of_a_quarter_second_together() -> None:
    on = On()
    for _ in range(3):
        on.publish(("a", b"1"), ("a", b"2"))
        on.harness.pass_time(1.0)
    (topic,) = on.memory.topics.values()
    third = 1 / 3  # of the two that came with the second, and one before
    usual = third + topic_memory.WEIGHT * (0.5 - third)
    assert (topic.count, round(topic.interval, 6)) == (6, round(usual, 6))
    on.publish(("a", b"3"))
    assert round(topic.interval, 6) == round(usual + topic_memory.WEIGHT * (1 - usual), 6)
    on.harness.pass_time(0.1)
    before = topic.interval
    on.publish(("a", b"4"))
    assert topic.interval == before, "it is not over yet"


def test_what_had_no_message_for_longest_is_forgotten_for_what_is_new() -> None:
    on = On(3)
    for topic in ("a", "b", "c", "a", "d"):
        on.harness.pass_time(1.0)
        on.publish((topic, b"1"))
    assert on.names == ["a", "c", "d"]
    assert on.harness.counters.count("tidegate/topics/forgotten") == 1
    on.memory.limit(1)
    assert on.names == ["d"]
    on.memory.limit(2)
    on.publish(("e", b"1"))
    assert on.names == ["d", "e"]


def test_many_are_forgotten_at_once() -> None:
    on = On(64)
    for number in range(65):
        on.publish((f"t/{number}", b"1"))
    assert len(on.names) == 64 - 64 // topic_memory.FORGOTTEN + 1


def test_own_topics_and_very_long_ones_are_not_remembered() -> None:
    on = On()
    on.harness.publish("$SYS/broker/uptime", b"1")
    on.publish(("x" * (topic_memory.MAXIMUM_TOPIC + 1), b"1"))
    assert on.names == []
    on.publish(("x" * topic_memory.MAXIMUM_TOPIC, b"1"))
    assert len(on.names) == 1


def test_large_messages_and_long_topics_that_come_together() -> None:
    on = On()
    long = "x" * (topic_memory.MAXIMUM_TOPIC + 1)
    for _ in range(2):
        on.publish(("a", b"1" * 300), (long, b"2"), ("b", b"3" * 200), ("a", b"4" * 400))
        on.harness.pass_time(1.0)
    found = {
        name: (topic.count, topic.payload, topic.size) for name, topic in on.memory.topics.items()
    }
    assert found == {
        b"\x00\x01a": (4, b"4" * PAYLOAD_BYTES, 400),
        b"\x00\x01b": (2, b"3" * 200, 200),
    }


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "c/d"]), st.sampled_from([0, 1, 200, 300, 1_500])),
            min_size=1,
            max_size=6,
        ),
        max_size=12,
    ),
    st.sampled_from(["#", "a"]),
)
def test_any_messages_in_any_order_against_a_naive_reference(
    writes: list[list[tuple[str, int]]], topic_filter: str
) -> None:
    on = On()
    on.harness.connect("s").subscribe(topic_filter)  # topics share a route, or do not
    expected: dict[bytes, tuple[int, int, bytes, int]] = {}
    for number, write in enumerate(writes):
        messages = [(topic, b"%d" % number * size) for topic, size in write]
        for topic, payload in messages:
            name = len(topic).to_bytes(2, "big") + topic.encode()
            count, total, _, _ = expected.get(name, (0, 0, b"", 0))
            end = payload[:PAYLOAD_BYTES], len(payload)
            expected[name] = (count + 1, total + len(payload), *end)
        if number % 2:
            on.publish(*messages)
        else:
            on.client.send(*[Publish(topic, payload) for topic, payload in messages])
    for remembered in on.memory.topics.values():
        remembered.read()
    found = {
        name: (topic.count, topic.bytes, topic.payload, topic.size)
        for name, topic in on.memory.topics.items()
    }
    assert found == expected


def test_a_publication_is_released_by_the_sweep_and_a_large_one_at_once() -> None:
    on = On()
    for size in (10, topic_memory.MAXIMUM_HELD + 1):
        on.publish(("a", b"1"))  # the next one comes the fast way
        on.publish(("a", b"x" * size))
        assert [len(each.packets.data) > size for each in on.held] == [True] * (size == 10)
    on.publish(*[("a", b"x" * 100)] * 20, ("b", b"1"))
    assert on.held == [], "together they are large"


def test_a_forgotten_topic_begins_anew() -> None:
    on = On(2)
    for topic in ("a", "a", "b", "c", "a", "a"):
        on.publish((topic, b"1"))
        on.harness.pass_time(1.0)
    assert on.names == ["a", "c"]
    assert on.memory.topics[b"\x00\x01a"].count == 2
    on.memory.limit(0)
    on.harness.broker.topic_memory = None
    on.publish(("a", b"1"))
    assert on.memory.topics == {}


def test_a_topic_that_a_new_one_of_its_batch_evicts_is_stored_anew() -> None:
    on = On(3)
    for name in ("a", "b", "c"):
        on.publish((name, b"1"))
        on.harness.pass_time(1.0)
    on.publish(("d", b"2"), ("a", b"3"))
    assert on.names == ["a", "c", "d"]
    topic = on.memory.topics[b"\x00\x01a"]
    assert (topic.count, topic.payload) == (1, b"3")
    on.publish(("d", b"4"), ("a", b"5"))
    assert (topic.count, topic.payload) == (2, b"5")
