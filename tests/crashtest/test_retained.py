"""Which retained messages could be there after a kill."""

from crashtest.numbers import Promise, Sent
from crashtest.retained import check_retained, possible
from tests.support.table import table

KEPT, NONE, REFUSED = Promise.KEPT, Promise.NONE, Promise.REFUSED


def sent(*promises: Promise, removes: int = 0) -> list[Sent]:
    return [
        Sent("p", n, "t", 1, 1, removes=n == removes, promise=each)
        for n, each in enumerate(promises, 1)
    ]


@table(
    ("messages", "allowed"),
    [
        (sent(KEPT, KEPT), {2}),
        (sent(KEPT, NONE), {1, 2}),
        (sent(KEPT, NONE, KEPT), {3}),
        (sent(KEPT, REFUSED), {1}),
        (sent(NONE), {None, 1}),
        (sent(KEPT, NONE, removes=2), {1, None}),
        (sent(KEPT, KEPT, removes=2), {None}),
    ],
)
def test_what_is_possible(messages: list[Sent], allowed: set[int | None]) -> None:
    assert possible(messages, "t") == allowed


def test_what_is_not_possible_is_told() -> None:
    assert check_retained({"t": 2}, sent(KEPT, KEPT)) == []
    assert check_retained({"t": 1}, sent(KEPT, KEPT)) == ["retained on t: 1 instead of 2"]
    assert check_retained({}, sent(KEPT, NONE)) == ["retained on t: None instead of 1 or 2"]
