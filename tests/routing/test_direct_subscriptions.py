import pytest

from gateway.routing.direct_subscriptions import DirectSubscriptions
from gateway.routing.subscribers import Subscribers
from gateway.routing.subscription import Subscription
from tests.support.subscribers import Someone

ANNA, BERT = Someone("anna"), Someone("bert")


class Table:
    """Subscriptions as the router adds them."""

    def __init__(self) -> None:
        self.subscribers = Subscribers()
        self.direct = DirectSubscriptions(self.subscribers)

    def put(self, subscription: Subscription) -> tuple[int, int]:
        number = self.subscribers.join(subscription.subscriber)
        place = self.direct.reach(subscription.topic_filter)
        self.direct.put(place, number, subscription)
        self.subscribers.hold(number, place)
        return place, number


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_subscription_says_what_was_put(table: Table) -> None:
    plain = table.put(Subscription(ANNA, "a/+", 2))
    whole = Subscription(
        BERT, "a/+", 1, no_local=True, retain_as_published=True, identifier=268_435_455
    )
    place, number = table.put(whole)
    assert place == plain[0]
    got = table.direct.get(place, number)
    for name in Subscription.__slots__:
        assert getattr(got, name) == getattr(whole, name), name
    got = table.direct.get(*plain)
    assert (got.subscriber, got.topic_filter, got.qos) == (ANNA, "a/+", 2)
    assert (got.no_local, got.retain_as_published, got.identifier) == (False, False, None)


def test_a_place_is_that_of_one_topic_filter_and_subscriber(table: Table) -> None:
    place, anna = table.put(Subscription(ANNA, "a/b", 0))
    bert = table.put(Subscription(BERT, "x", 0))[1]
    assert table.direct.place(anna, "a/b") == place
    for number, topic_filter in [(bert, "a/b"), (anna, "a"), (anna, "x"), (anna, "y")]:
        assert table.direct.place(number, topic_filter) == 0
    table.put(Subscription(BERT, "a/b", 2))
    assert table.direct.place(bert, "a/b") == table.direct.place(anna, "a/b") == place
    table.direct.take(place, anna)
    assert table.direct.place(anna, "a/b") == 0
    assert table.direct.place(bert, "a/b") == place


def test_an_identifier_goes_with_its_subscription(table: Table) -> None:
    before = table.direct.memory()
    place, anna = table.put(Subscription(ANNA, "a", 0, identifier=1))
    assert table.direct.memory() > before + 150
    table.direct.take(place, anna)
    assert table.direct.memory() == before
    table.put(Subscription(ANNA, "a", 0))
    assert table.direct.get(place, anna).identifier is None


def test_entries_name_the_subscribers_in_the_order_of_their_numbers(table: Table) -> None:
    everyone = [Someone(f"c{number}") for number in range(5)]
    for one in everyone:
        table.put(Subscription(one, f"own/{one.client_id}", 0))
    for one in (everyone[3], everyone[0], everyone[4]):
        table.put(Subscription(one, "a", 1, retain_as_published=one is everyone[4]))
    entries = table.direct.entries(table.direct.trie.nodes("a"))
    found = table.direct.destinations(entries)
    assert [one.subscriber for one in found] == [everyone[0], everyone[3], everyone[4]]
    assert [one.retain_as_published for one in found] == [False, False, True]
    assert [table.direct.subscription(entry).qos for entry in entries] == [1, 1, 1]
    assert all(list(one.topic_filters) == ["a"] for one in found)
