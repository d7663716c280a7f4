import tracemalloc

import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.publish_encoder import publication_of
from gateway.routing.budget import Budget
from gateway.routing.route import CROWDED, Destination
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import Where, compile_where
from gateway.where.figures import Figures
from gateway.where.language.expression import Literal
from tests.support.broker.routing import destinations
from tests.support.broker.subscribers import Someone


@pytest.fixture
def router() -> Router:
    return Router(Budget())


ANNA, BERT = Someone("anna"), Someone("bert")


def found(router: Router, topic: str, payload: bytes = b"x", **fields: object) -> list[Destination]:
    return destinations(router, Message(topic, payload, **fields))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("topic_filter", ["a", "$share/g/a"])
def test_a_subscription_that_is_gone_is_not_known(router: Router, topic_filter: str) -> None:
    number = router.add(Subscription(ANNA, topic_filter, 0))
    router.discard(number)
    with pytest.raises(KeyError):
        router.subscription(number)
    with pytest.raises(KeyError):
        router.discard(number)
    assert not found(router, "a")


@pytest.mark.parametrize("no_local", [False, True])
def test_a_copy_keeps_retain_where_one_of_its_subscriptions_asks_for_it(
    router: Router, *, no_local: bool
) -> None:
    for topic_filter, asked in (("a", False), ("+", True), ("#", False)):
        router.add(
            Subscription(ANNA, topic_filter, 0, no_local=no_local, retain_as_published=asked)
        )
    router.add(Subscription(BERT, "#", 0, no_local=no_local))
    kept = {one.subscriber: one.retain_as_published for one in found(router, "a")}
    assert kept == {ANNA: True, BERT: False}


def test_shared_subscriptions_are_counted(router: Router) -> None:
    router.add(Subscription(ANNA, "a", 0))
    numbers = [router.add(Subscription(who, "$share/g/a", 0)) for who in (ANNA, BERT)]
    assert (len(router), router.shared) == (3, 2)
    router.discard(numbers[0])
    assert (len(router), router.shared) == (2, 1)


@pytest.mark.parametrize("options", [{"where": compile_where("x = 1")}, {"no_local": True}])
def test_what_is_asked_for_is_one_copy_with_what_is_not(
    router: Router, options: dict[str, object]
) -> None:
    router.add(Subscription(ANNA, "a/+", 0, identifier=1))
    router.add(Subscription(ANNA, "#", 2, identifier=2, **options))  # type: ignore[arg-type]  # by name
    router.add(Subscription(BERT, "#", 1))
    for x, identifiers in (("1", [1, 2]), ("2", [1])):
        client_id = "anna" if x == "2" else "bert"
        copies = found(router, "a/b", client_id=client_id, user_properties=(("x", x),))
        assert sorted(one.subscriber.client_id for one in copies) == ["anna", "bert"]
        (anna,) = (one for one in copies if one.subscriber is ANNA)
        assert (sorted(anna.identifiers), anna.qos) == (identifiers, 2 if x == "1" else 0)


def test_topics_that_the_same_subscriptions_match_have_one_route(router: Router) -> None:
    router.add(Subscription(ANNA, "a/+", 0, identifier=1))
    router.add(Subscription(BERT, "#", 1, where=compile_where("x = 1")))
    router.add(Subscription(BERT, "$share/g/a/#", 1))
    match = router.match("a/b")
    assert router.match("a/c") == match
    assert router.match("a/b/c") != router.match("b") != match
    router.add(Subscription(ANNA, "a/+", 0, identifier=2))
    (destination,) = router.route(router.match("a/b")).always
    assert list(destination.identifiers) == [2]


@pytest.mark.parametrize(
    ("readiness", "turns"),
    [
        ((0, 0, 0), ["anna", "bert", "cara", "anna"]),
        ((3, 0, 0), ["bert", "bert", "cara", "bert"]),
        ((3, 2, 1), ["cara", "cara", "cara", "cara"]),
        ((3, 3, 3), ["anna", "bert", "cara", "anna"]),
    ],
    ids=["all ready", "one full", "different", "all full"],
)
def test_the_readiest_member_gets_the_message(
    router: Router, readiness: tuple[int, int, int], turns: list[str]
) -> None:
    for name, how_ready in zip(("anna", "bert", "cara"), readiness, strict=True):
        member = Someone(name)
        member.how_ready = how_ready
        router.add(Subscription(member, "$share/g/a", 1))
    assert [found(router, "a")[0].subscriber.client_id for _ in range(4)] == turns


def test_another_member_for_what_one_left_over(router: Router) -> None:
    router.add(Subscription(ANNA, "$share/g/a", 1))
    router.add(Subscription(BERT, "$share/other/a", 1))
    message = Message("a", qos=2)
    member = router.member("$share/g/a", publication_of(message), 0)
    assert member is not None
    assert (member.subscriber, member.qos, member.shared) == (ANNA, 1, True)
    assert router.member("$share/gone/a", publication_of(message), 0) is None


class Counting:
    """An expression that counts how often it is asked, and asks for nothing in particular."""

    expression = Literal(None)
    bytes = steps = 0
    fixed = True

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.figures = Figures()
        self.asked = 0

    def evaluate(self, _: Message) -> bool | None:
        self.asked += 1
        return self.answer


@pytest.mark.parametrize(
    ("answer", "counter"), [(True, "passed"), (False, "filtered"), (None, "null")]
)
def test_an_expression_is_evaluated_once_for_a_message(answer: bool | None, counter: str) -> None:
    budget = Budget()
    router, where = Router(budget), Counting(answer)
    for subscriber in (ANNA, BERT):
        for topic_filter in ("a", "#", "$share/g/a"):
            router.add(Subscription(subscriber, topic_filter, 0, where=where))  # type: ignore[arg-type]  # by shape
    assert bool(found(router, "a")) == (answer is True)
    assert where.asked == 1
    assert budget.evaluated == 1
    assert getattr(budget, counter) == 1
    assert budget.filtered == (answer is not True)


def test_a_topic_that_does_not_match_asks_no_expression(router: Router) -> None:
    where = Counting(True)
    router.add(Subscription(ANNA, "a", 0, where=where))  # type: ignore[arg-type]  # by shape
    assert not found(router, "b")
    assert where.asked == 0


@pytest.mark.parametrize("topic_filter", ["a", "$share/g/a"])
def test_who_asks_for_another_value_is_not_asked(topic_filter: str) -> None:
    budget = Budget()
    router = Router(budget)
    for number in range(100):
        where = compile_where(f"site = 'A' AND device = 'd{number}' AND x > 3")
        router.add(Subscription(Someone(f"c{number}"), topic_filter, 0, where=where))
    properties = (("site", "A"), ("device", "d7"), ("x", "4"))
    (only,) = found(router, "a", user_properties=properties)
    assert only.subscriber.client_id == "c7"
    # a shared subscription asks in turn, up to the eighth; the other has its first by the site
    asked = 8 if topic_filter.startswith("$share/") else 2
    assert budget.evaluated == asked
    assert budget.passed == 1


WHERES: list[Where | None] = [None, compile_where("x = 1"), compile_where("x = 2")]


@pytest.mark.uncovered
def test_bytes_are_about_what_subscriptions_really_take() -> None:
    router = Router(Budget())
    subscribers = [Someone(f"c{number}") for number in range(2_000)]
    tracemalloc.start()
    for number, subscriber in enumerate(subscribers):
        topic_filter = f"site/{number % 7}/floor/{number % 31}/device/{number}/temperature"
        router.add(Subscription(subscriber, topic_filter, 1))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.85 < taken / router.bytes < 1.15


@pytest.mark.uncovered
def test_bytes_of_indexes_are_about_what_they_really_take() -> None:
    texts = [f"payload.device = 'd{n}' AND payload.temp > 10" for n in range(800)]
    texts += [f"payload.f{n} = {n + 1000}" for n in range(200)]
    texts += [f"payload.temp BETWEEN {n}.5 AND {n + 1000}" for n in range(200)]
    texts += [f"ABS(payload.temp - {n}) > 7" for n in range(200)]
    texts += [f"payload.temp * 2 != {n + 1000}" for n in range(200)]
    for shape in ("devices", "devices/{}/up"):
        router = Router(Budget())
        subscribers = [Someone(f"c{number}") for number in range(len(texts))]
        tracemalloc.start()
        for number, text in enumerate(texts):
            where = compile_where(text)
            router.add(Subscription(subscribers[number], shape.format(number), 1, where=where))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0.5 < taken / router.bytes <= 1.0


def test_bytes_fall_again_and_say_when_it_is_full() -> None:
    router = Router(Budget(), maximum_bytes=1_000)
    subscriber = Someone("c")
    numbers: list[int] = []
    while not router.full:
        numbers.append(router.add(Subscription(subscriber, f"a/{len(numbers)}", 0)))
    numbers.append(router.add(Subscription(subscriber, "$share/g/x/y", 0)))
    numbers.append(router.add(Subscription(subscriber, "z/#", 0, where=WHERES[1])))
    assert 20 < len(numbers) < 50  # the first ones have room in columns that are there anyway
    for number in numbers:
        router.discard(number)
    assert router.bytes == 0
    assert not router.full


def test_a_subscription_takes_the_place_of_its_like(router: Router) -> None:
    said_of: list[tuple[str, int]] = []
    router.on_add.append(lambda number, one: said_of.append((one.topic_filter, number)))
    router.on_discard.append(lambda number, _: said_of.append(("gone", number)))
    first = router.add(Subscription(ANNA, "a", 0, where=WHERES[1]))
    second = router.add(Subscription(ANNA, "a", 2))
    third = router.add(Subscription(ANNA, "a", 1))
    assert said_of == [("a", first), ("gone", first), ("a", second), ("gone", second), ("a", third)]
    assert [one.qos for one in found(router, "a", qos=2)] == [1]
    assert (router.count(ANNA), router.filtered(ANNA)) == (1, 0)


@pytest.mark.parametrize("topic_filter", ["a/+", "$share/g/a/b"])
@pytest.mark.parametrize("where", [None, compile_where("$payload = 1")])
def test_a_topic_reaches_somebody_while_a_subscription_may_match(
    router: Router, topic_filter: str, where: Where | None
) -> None:
    assert not router.reaches("a/b")
    number = router.add(Subscription(ANNA, topic_filter, 0, where=where))
    assert router.reaches("a/b")
    assert not router.reaches("b")
    router.discard(number)
    assert not router.reaches("a/b")


@pytest.mark.uncovered
def test_a_topic_that_meets_too_many_topic_filters_goes_nowhere(router: Router) -> None:
    levels = 14
    for number in range(1 << levels):
        names = [("+", "a")[number >> depth & 1] for depth in range(levels)]
        router.add(Subscription(ANNA, "/".join((*names, "a")), 0))
    assert router.match("/".join("a" * levels + "a")) == CROWDED
    assert router.route(CROWDED).crowded
    assert router.reaches("a/b") is False


def test_few_messages_for_many_members_go_one_to_each(router: Router) -> None:
    for who in (ANNA, BERT):
        router.add(Subscription(who, "$share/g/a", 0))
    assert router.run(router.route(router.match("a")), 0, 2) == 1


def test_the_copies_of_filtered_subscriptions_alone_are_made_anew(router: Router) -> None:
    router.add(Subscription(ANNA, "a", 0))
    filtered = Subscription(ANNA, "b", 0, where=compile_where("x = 1"))
    router.add(filtered)
    assert found(router, "b", b'{"x":1}')
    assert filtered.destination is not None
    router.forget_destinations(ANNA)
    router.forget_destinations(BERT)
    assert filtered.destination is None
