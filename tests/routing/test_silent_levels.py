import pytest

from gateway.routing.budget import Budget
from gateway.routing.direct_subscriptions import DirectSubscriptions
from gateway.routing.indirect_subscriptions import IndirectSubscriptions
from gateway.routing.router import Router
from gateway.routing.silent_levels import MAXIMUM_LEVELS, SilentLevels
from gateway.routing.subscribers import Subscribers
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import compile_where
from tests.support.subscribers import Someone

ANNA = Someone()

SILENT = [
    ("a/b", "a", False),
    ("a/b", "a/c/d", False),  # its first level alone does not tell
    ("a/b", "b", True),
    ("a/b", "b/a", True),
    ("b/a", "a", True),
    ("+/b", "x", False),
    ("#", "x", False),
    ("#", "$SYS/x", True),
    ("+", "$SYS", True),
    ("$SYS/#", "$SYS/x", False),
    ("", "x", True),
]


@pytest.mark.parametrize(("topic_filter", "topic", "silent"), SILENT)
@pytest.mark.parametrize("kind", ["direct", "shared", "indexed"])
def test_a_first_level_is_silent_if_no_topic_filter_begins_so(
    topic_filter: str, topic: str, silent: bool, kind: str
) -> None:
    router = Router(Budget())
    levels = router.silent
    assert levels.has(topic)
    if topic_filter:
        name = f"$share/g/{topic_filter}" if kind == "shared" else topic_filter
        where = compile_where("x = 1") if kind == "indexed" else None
        number = router.add(Subscription(ANNA, name, 0, where=where))
        assert levels.has(topic) == silent
        router.discard(number)
        assert levels.has(topic)


def test_what_is_remembered_is_bounded_in_bytes() -> None:
    levels = Router(Budget()).silent
    for number in range(MAXIMUM_LEVELS):
        assert levels.has(f"{number:065}/x")
    assert len(levels) == 0
    assert levels.has(f"{1:064}/x")
    assert len(levels) == 1


def test_topics_of_silent_levels_drive_no_route_out() -> None:
    router = Router(Budget(), maximum_route_bytes=10_000)
    router.add(Subscription(ANNA, "a/#", 0))
    assert router.reaches("a/b")
    for number in range(1_000):
        assert not router.reaches(f"b/{number}")
    assert len(router.routes) == 1
    for number in range(1_000):
        assert router.reaches(f"a/{number}")
    assert 1 < len(router.routes) < 100


def test_levels_are_forgotten_when_they_are_many() -> None:
    levels = SilentLevels(DirectSubscriptions(Subscribers()), IndirectSubscriptions())
    for number in range(MAXIMUM_LEVELS):
        assert levels.has(f"{number}/x")
        assert levels.has(f"{number}/y")
        assert len(levels) == number + 1
    assert levels.has("another")
    assert len(levels) == 1
