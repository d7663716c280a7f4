from gateway.mqtt.publish_encoder import publication_of
from gateway.routing.budget import Budget
from gateway.routing.filters.selection import Selection
from gateway.routing.subscriptions.shared import Group
from gateway.routing.subscriptions.subscription import Subscription
from gateway.routing.where.compile import compile_where
from gateway.routing.where.evaluation.message import Message
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
    group: Group[Subscription] = Group()
    for one, qos, where in zip(everyone, (1, 2, 0), (None, "FALSE", None), strict=True):
        one.how_ready = 1
        compiled = None if where is None else compile_where(where)
        group.members.append(Subscription(one, "$share/g/a", qos, where=compiled))
    chosen = Selection(Budget(), publication_of(Message("a", qos=2)), 0).choose(group)
    assert chosen is not None
    assert (chosen.subscriber.client_id, chosen.qos, chosen.shared) == ("anna", 1, True)
    assert [one.asked for one in everyone] == [[1], [], [0]]
