import pytest
from hypothesis import given

from gateway.mqtt.message import UNKNOWN, Message
from gateway.routing.filters.filter_index import (
    EXPRESSION_OVERHEAD,
    INDEX_OVERHEAD,
    NODE_OVERHEAD,
    FilterIndex,
    IndexEntry,
)
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import Where, compile_where
from tests.support.broker.subscribers import Someone
from tests.support.where.strategies import (
    colliding_filters,
    colliding_messages,
    conjunctions,
    expressions,
    messages,
)


def found(index: FilterIndex, message: Message) -> list[IndexEntry]:
    entries: list[IndexEntry] = []
    index.find(message, entries)
    return entries


def nodes(index: FilterIndex) -> int:
    """Return how many nodes the operands have that are indexed."""
    return (index.bytes - INDEX_OVERHEAD - EXPRESSION_OVERHEAD * len(index)) // NODE_OVERHEAD


def names(index: FilterIndex, message: Message) -> list[str]:
    """Return the expressions that are found."""
    return sorted(entry.where.text for entry in found(index, message))


def indexed(*texts: str) -> FilterIndex:
    index = FilterIndex()
    for text in texts:
        index.add(compile_where(text), Subscription(Someone(), "a", 0))
    return index


@pytest.mark.uncovered
@given(conjunctions() | colliding_filters() | expressions(), messages() | colliding_messages())
def test_an_expression_that_is_true_is_found_and_one_that_is_decided_is_true(
    text: str, message: Message
) -> None:
    where = compile_where(text)
    index, subscription = FilterIndex(), Subscription(Someone(), "a", 0, where=where)
    index.add(where, subscription)
    entries = found(index, message)
    if where.passes(message):
        assert [entry.subscriptions for entry in entries] == [subscription]
    else:
        assert not any(entry.decided for entry in entries)
    index.discard(where, subscription)
    assert (len(index), index.bytes) == (0, INDEX_OVERHEAD)
    assert not found(index, message)


@pytest.mark.parametrize("text", ["v > 5", "v = 7", "v BETWEEN 6 AND 8", "7 = v", "ABS(v - 5) > 1"])
def test_one_term_alone_is_decided(text: str) -> None:
    index = indexed(text, f"{text} AND v != 0")
    decided = {entry.where.text: entry.decided for entry in found(index, Message("a", b'{"v":7}'))}
    assert decided == {text: True, f"{text} AND v != 0": False}
    assert not found(index, Message("a", b'{"v":5}'))


def test_subscriptions_with_the_same_expression_are_together() -> None:
    index, where = FilterIndex(), compile_where("v > 1")
    subscriptions = [Subscription(Someone(), "a", 0, where=where) for _ in range(3)]
    for one in subscriptions:
        index.add(where, one)
    message = Message("a", b'{"v":2}')
    for count in (3, 2, 1):
        (entry,) = found(index, message)
        held = (
            entry.subscriptions if isinstance(entry.subscriptions, set) else {entry.subscriptions}
        )
        assert held == set(subscriptions[:count])
        assert len(index) == 1
        index.discard(where, subscriptions[count - 1])
    assert not found(index, message)


def test_it_is_put_where_the_fewest_are() -> None:
    texts = [f"payload.device = {number} AND $user.site = 'A'" for number in range(5)]
    index = indexed(*texts)
    assert nodes(index) == 2
    site, device = (("site", "A"),), b'{"device": 3}'
    assert names(index, Message("t", user_properties=site)) == [texts[0]]
    assert names(index, Message("t", device, user_properties=site)) == [texts[0], texts[3]]
    assert names(index, Message("t", device)) == [texts[3]]


def test_an_equality_comes_before_bounds() -> None:
    index = indexed(*(f"w > {n} AND v BETWEEN 1 AND {n} AND d = 'x'" for n in range(5)))
    assert nodes(index) == 1
    assert len(found(index, Message("t", b'{"d":"x"}'))) == 5
    assert not found(index, Message("t", b'{"w":9,"v":1}'))


def test_a_field_is_forgotten_with_its_last_expression() -> None:
    index = FilterIndex()
    tests = ("= '1'", "= 1", "= 'x'", "> 0", "BETWEEN 0 AND 1", "< 1")
    wheres: list[Where] = [compile_where(f"{name} {test}") for name in "ab" for test in tests]
    subscription = Subscription(Someone(), "a", 0)
    for where in wheres:
        index.add(where, subscription)
    message = Message("t", b'{"a": 1, "b": "1"}')
    assert names(index, message) == [
        *("a = '1'", "a = 1", "a > 0", "a BETWEEN 0 AND 1"),
        *("b = '1'", "b = 1", "b > 0", "b BETWEEN 0 AND 1"),
    ]
    for number, where in enumerate(wheres):
        assert nodes(index) == (2 if number < len(tests) else 1)
        index.discard(where, subscription)
    assert nodes(index) == 0


def test_fields_outside_the_payload_do_not_parse_it() -> None:
    for test in ("= 1", "> 0", "BETWEEN 0 AND 2"):
        index = indexed(f"payload.a {test} AND $user.k {test}")
        message = Message("t", b'{"a": 1}', user_properties=(("k", "1"),))
        assert len(found(index, message)) == 1
        assert message._json is UNKNOWN


def test_searches_are_counted_and_some_of_them_measured() -> None:
    index = indexed("payload.value > 5", "payload.value = 3")
    messages = [Message("a", b'{"value":%d}' % value) for value in (3, 9, 1)]
    for each in messages:
        found(index, each)
    assert (index.messages, index.samples, index.mean) == (3, 0, 0.0)
    times = iter((100, 160, 200, 300))
    for each in messages[:2]:
        index.measure(each, lambda: next(times))
    assert (index.messages, index.samples, index.mean) == (3, 2, 80.0)
