from gateway.mqtt.message import Message
from gateway.routing.filters.operand_index import IndexEntry
from gateway.routing.subscriptions.indirect import FilteredSubscriptions
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import compile_where
from tests.support.broker.subscribers import Someone

TWO = compile_where("a = 1 AND b > 'x'")
ONE = compile_where("a = 1")
OTHER = compile_where("b BETWEEN 0 AND 2")


def found(filtered: FilteredSubscriptions, message: Message) -> set[Subscription]:
    entries: list[IndexEntry] = []
    for index in filtered.indexes(message.topic):
        index.find(message, entries)
    subscriptions: set[Subscription] = set()
    for entry in entries:
        held = entry.subscriptions
        subscriptions |= held if isinstance(held, set) else {held} if held else set()
    return subscriptions


def test_the_last_subscription_takes_the_index_with_it() -> None:
    filtered = FilteredSubscriptions()
    empty = filtered.memory()
    places = [("a/+", ONE), ("a/+", TWO), ("a/#", ONE), ("a/+", OTHER), ("a/+", ONE)]
    held = [Subscription(Someone(), topic_filter, 0, where=where) for topic_filter, where in places]
    memory = [empty]
    for (topic_filter, where), one in zip(places, held, strict=True):
        filtered.add(topic_filter, where, one)
        memory.append(filtered.memory())
    assert memory[:5] == sorted(set(memory[:5]))
    assert memory[5] == memory[4]  # the expression is there
    message = Message("a/x", b'{"a": 1, "b": 1}')
    assert found(filtered, message) == set(held)
    for number, (topic_filter, where) in enumerate(places):
        filtered.discard(topic_filter, where, held[number])
        assert found(filtered, message) == set(held[number + 1 :])
    assert filtered.memory() == empty
    assert not filtered.indexes(message.topic)


def test_a_topic_filter_that_had_an_index_can_have_another() -> None:
    filtered, one = FilteredSubscriptions(), Subscription(Someone(), "a", 0, where=ONE)
    for _ in range(2):
        filtered.add("a", ONE, one)
        assert found(filtered, Message("a", b'{"a": 1.0}')) == {one}
        filtered.discard("a", ONE, one)
