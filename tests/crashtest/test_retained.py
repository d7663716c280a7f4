"""Which retained messages could be there after a kill."""

from crashtest.numbers import Promise, Sent
from crashtest.retained import check_retained, possible
from tests.support.table import table

ACKNOWLEDGED, NONE, REFUSED = Promise.ACKNOWLEDGED, Promise.NONE, Promise.REFUSED


def sent(*promises: Promise, removes: int = 0) -> list[Sent]:
    return [
        Sent("p", n, "t", 1, 1, removes=n == removes, promise=each)
        for n, each in enumerate(promises, 1)
    ]


@table(
    ("messages", "allowed"),
    [
        (sent(ACKNOWLEDGED, ACKNOWLEDGED), {2}),
        (sent(ACKNOWLEDGED, NONE), {1, 2}),
        (sent(ACKNOWLEDGED, NONE, ACKNOWLEDGED), {3}),
        (sent(ACKNOWLEDGED, REFUSED), {1}),
        (sent(NONE), {None, 1}),
        (sent(ACKNOWLEDGED, NONE, removes=2), {1, None}),
        (sent(ACKNOWLEDGED, ACKNOWLEDGED, removes=2), {None}),
    ],
)
def test_what_is_possible(messages: list[Sent], allowed: set[int | None]) -> None:
    assert possible(messages, "t") == allowed


def test_what_is_not_possible_is_told() -> None:
    assert check_retained({"t": 2}, sent(ACKNOWLEDGED, ACKNOWLEDGED)) == []
    assert check_retained({"t": 1}, sent(ACKNOWLEDGED, ACKNOWLEDGED)) == [
        "retained on t: 1 instead of 2"
    ]
    assert check_retained({}, sent(ACKNOWLEDGED, NONE)) == ["retained on t: None instead of 1 or 2"]
