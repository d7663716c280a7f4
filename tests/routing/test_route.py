from itertools import pairwise

import pytest

from gateway.routing.route import (
    CROWDED,
    DESTINATION_OVERHEAD,
    NOWHERE,
    REFERENCE,
    SUBSCRIPTION_OVERHEAD,
    Destination,
    Route,
    text_size,
)
from gateway.routing.subscriptions.subscription import Group, Subscription
from tests.support.broker.subscribers import Someone


def test_a_route_asks_if_a_message_decides() -> None:
    always = [Destination(Someone())]
    conditional = [Subscription(Someone(), "a", 0, no_local=True)]
    plain = Route(((1,), (), (), ()), always)
    assert [route.selective for route in (Route(NOWHERE), Route(CROWDED), plain)] == [False] * 3
    assert Route(((1,), (), (), ()), (), conditional).selective
    assert Route(((1,), (), (Group(),), ()), always).selective


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("ä", 4), ("a\N{CLOUD}", 8)])
def test_a_text_takes_four_bytes_a_character_at_most(text: str, size: int) -> None:
    assert text_size(text) == size >= len(text.encode())


def test_a_route_is_as_large_as_what_it_leads_to() -> None:
    """`tests/broker/publishing/test_topic_admissions_model.py` measures what that is."""
    one, other = Destination(Someone()), Subscription(Someone(), "a/b", 0, no_local=True)
    routes = [
        Route(NOWHERE),
        Route(((1,), (), (), ()), ()),
        Route(((1,), (), (), ()), [one]),
        Route(((1,), (), (), ()), [one], [other]),
        Route(((1,), (), (Group(),), ()), [one], [other]),
    ]
    assert [after.size - before.size for before, after in pairwise(routes)] == [
        REFERENCE,
        DESTINATION_OVERHEAD,
        SUBSCRIPTION_OVERHEAD + len("a/b"),
        REFERENCE,
    ]
