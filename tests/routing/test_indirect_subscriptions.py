import pytest

from gateway.routing.indirect_subscriptions import INDIRECT, IndirectSubscriptions, is_indirect
from gateway.routing.operand_index import IndexEntry
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import compile_where
from gateway.routing.where.message import Message
from tests.support.subscribers import Someone

ANNA = Someone()
SHARED = Subscription(ANNA, "$share/g/a", 0)
FILTERED = Subscription(ANNA, "a", 0, where=compile_where("x = 1"))
BOTH = Subscription(ANNA, "$share/g/a", 0, where=compile_where("x OR y"))


@pytest.fixture
def table() -> IndirectSubscriptions:
    return IndirectSubscriptions()


def put(table: IndirectSubscriptions, subscriber: int, subscription: Subscription) -> int:
    place = table.reach(subscription.topic_filter)
    table.put(place, subscriber, subscription)
    return place


def test_what_the_topic_finds_is_not_of_these() -> None:
    assert not is_indirect(Subscription(ANNA, "a", 0))


@pytest.mark.parametrize("subscription", [SHARED, FILTERED, BOTH])
def test_a_subscription_has_a_place_while_it_is_there(
    table: IndirectSubscriptions, subscription: Subscription
) -> None:
    assert is_indirect(subscription)
    assert table.memory() == 0
    place = put(table, 3, subscription)
    assert place & INDIRECT
    assert table.place(3, subscription.topic_filter) == place
    assert table.place(2, subscription.topic_filter) == 0
    assert table.place(3, "b") == 0
    assert table.get(place, 3) is subscription
    assert (len(table), table.shared) == (1, int(subscription is not FILTERED))
    assert table.memory() > 400
    table.take(place, 3)
    assert table.place(3, subscription.topic_filter) == 0
    assert (len(table), table.shared, table.memory()) == (0, 0, 0)


def test_an_index_finds_those_with_a_filter(table: IndirectSubscriptions) -> None:
    put(table, 0, FILTERED)
    put(table, 1, BOTH)
    (index,) = table.indexes("a")
    for x, number in (("1", 1), ("2", 0)):
        found: list[IndexEntry] = []
        index.find(Message("a", user_properties=(("x", x),)), found)
        assert [entry.subscriptions for entry in found] == [FILTERED] * number
    assert table.indexes("b") == []


def test_members_of_a_group_take_turns(table: IndirectSubscriptions) -> None:
    members = [Subscription(ANNA, "$share/g/a", qos) for qos in range(3)]
    for number, member in enumerate(members):
        put(table, number, member)
    (group,) = table.groups("a")
    assert list(group.take_turns()) == members
    assert list(group.take_turns()) == members[1:] + members[:1]
    assert list(table.members("$share/g/a")) == members[2:] + members[:2]
    assert list(table.members("$share/h/a")) == []
