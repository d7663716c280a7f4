from gateway.routing.recipient import Recipient
from gateway.routing.route import Route, kind
from tests.support.subscribers import Someone


def test_kinds_are_told_apart() -> None:
    kinds = {kind(qos, retain) for qos in range(3) for retain in (False, True)}
    assert len(kinds) == 6


def test_a_route_keeps_the_recipients_of_the_last_two_kinds() -> None:
    route = Route(b"", (), ())
    found = {number: (Recipient(Someone()),) for number in range(3)}
    assert [route.kept(number) for number in range(3)] == [None, None, None]
    for number, kept in ((0, {0}), (1, {0, 1}), (2, {1, 2}), (0, {2, 0})):
        route.keep(number, found[number])
        assert {each for each in range(3) if route.kept(each) is found[each]} == kept
        assert [each for each in range(3) if route.kept(each) is None] == sorted({0, 1, 2} - kept)
