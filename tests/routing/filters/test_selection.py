import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.publish_encoder import publication_of
from gateway.routing.budget import PIECE, Budget
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.filters.selection import Selection
from gateway.routing.subscriptions.subscription import Group, Subscription
from gateway.where.compile import compile_where
from tests.support.broker.subscribers import Someone


def test_each_expression_is_evaluated_once() -> None:
    budget = Budget()
    hot, cold = compile_where("payload.t > 9"), compile_where("payload.t < 9")
    asked = [Subscription(Someone(), "a", 0, where=where) for where in (hot, cold, None, hot)]
    selection = Selection(budget, publication_of(Message("a", b'{"t":20}')), 0)
    assert selection.wanted(asked) == [asked[0], asked[2], asked[3]]
    assert selection.wants(asked[0])
    assert (budget.evaluated, budget.passed) == (2, 1)


def test_readiness_is_asked_for_the_qos_of_the_copy() -> None:
    everyone = [Someone(name) for name in ("anna", "bert", "cara")]
    group: Group = Group()
    for one, qos, where in zip(everyone, (1, 2, 0), (None, "FALSE", None), strict=True):
        one.how_ready = 1
        compiled = None if where is None else compile_where(where)
        group.members.append(Subscription(one, "$share/g/a", qos, where=compiled))
    chosen = Selection(Budget(), publication_of(Message("a", qos=2)), 0).choose(group)
    assert chosen is not None
    assert (chosen.subscriber.client_id, chosen.qos, chosen.shared) == ("anna", 1, True)
    assert [one.asked for one in everyone] == [[1], [], [0]]


LONG = ("é" * 10_000).encode()


def index_of(*texts: str) -> FilterIndex:
    index = FilterIndex()
    for number, text in enumerate(texts):
        where = compile_where(text)
        index.add(where, Subscription(Someone(f"c{number}"), "a", 0, where=where))
    return index


def test_what_takes_long_is_asked_when_all_others_have_been() -> None:
    budget = Budget()
    budget.pieces = 0
    budget.begin()
    selection = Selection(budget, publication_of(Message("a", LONG)), 0)
    found = selection.filtered([index_of("payload NOT LIKE '%_x%'", "LENGTH(payload) = 10000")])
    assert [each.subscriber.client_id for each in found] == ["c1", "c0"]
    selection.forget_parts()


def test_what_filters_said_is_kept_until_all_have_been_asked() -> None:
    budget, publication = Budget(), publication_of(Message("a", LONG))
    index = index_of(*(f"payload NOT LIKE '%_{number}%'" for number in range(10)))
    turns = 0
    found: list[Subscription] = []
    while not turns or budget.unfinished:
        budget.unfinished, budget.pieces = False, turns
        budget.begin()
        selection = Selection(budget, publication, 0)
        found = selection.filtered([index])
        selection.forget_parts()
        turns += 1
    assert (len(found), turns) == (10, 3)
    assert budget.evaluated == 10
    assert publication.message(0).part_values is None


@pytest.mark.uncovered
def test_whoever_has_no_work_left_decides_for_nobody_else() -> None:
    budget, where = Budget(), compile_where("payload NOT LIKE '%_x%'")
    anna, bert = (Subscription(Someone(name), "a", 0, where=where) for name in ("anna", "bert"))
    for number in range(101):
        budget.pieces = 0
        budget.begin()
        dear = compile_where(f"payload NOT LIKE '%_{number}%'")
        budget.evaluate(dear, Message("a", LONG), "anna")
    budget.begin()
    selection = Selection(budget, publication_of(Message("a", LONG)), 0)
    assert [selection.wants(each) for each in (anna, bert, anna)] == [False, True, True]


def test_a_turn_without_work_left_asks_nobody_more() -> None:
    budget = Budget()
    budget.pieces = 0
    budget.begin()
    budget.spend(PIECE)
    selection = Selection(budget, publication_of(Message("a", b"5")), 0)
    assert selection.filtered([index_of("payload IN (4, 5)", "payload IN (5, 6)")]) == []
    assert (budget.unfinished, selection.evaluations, budget.evaluated) == (True, 1, 0)
