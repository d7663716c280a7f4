"""The comparison itself: each way to break the promise is seen, and nothing else is."""

from collections import defaultdict

from crashtest.numbers import Promise, Received, Sent, ranges
from crashtest.receiver import Receiver
from tests.support.table import table

ACKNOWLEDGED, NONE, REFUSED = Promise.ACKNOWLEDGED, Promise.NONE, Promise.REFUSED


def received(*numbers: int) -> defaultdict[str, Received]:
    by_sender: defaultdict[str, Received] = defaultdict(Received)
    for number in numbers:
        by_sender["p"].add(number)
    return by_sender


def sent(*promises: Promise) -> list[Sent]:
    return [Sent("p", n, "crash/p/0", 2, 7, promise=each) for n, each in enumerate(promises, 1)]


@table(
    ("promises", "numbers", "qos", "finding"),
    [
        ([ACKNOWLEDGED, ACKNOWLEDGED], [1, 2], 2, ""),
        ([ACKNOWLEDGED, NONE, ACKNOWLEDGED], [1, 3], 2, ""),
        ([ACKNOWLEDGED, NONE, ACKNOWLEDGED], [1, 2, 3], 2, ""),
        ([ACKNOWLEDGED, REFUSED], [1], 2, ""),
        (
            [ACKNOWLEDGED, ACKNOWLEDGED, ACKNOWLEDGED],
            [1, 3],
            1,
            "x lacks 1 acknowledged messages of p: 2 (round 7)",
        ),
        (
            [ACKNOWLEDGED, ACKNOWLEDGED, ACKNOWLEDGED],
            [],
            1,
            "x lacks 3 acknowledged messages of p: 1-3 (round 7)",
        ),
        ([ACKNOWLEDGED, ACKNOWLEDGED], [1, 2, 1], 1, ""),
        ([ACKNOWLEDGED, ACKNOWLEDGED], [1, 2, 1], 2, "x got QoS 2 messages of p twice: 1"),
        ([ACKNOWLEDGED, ACKNOWLEDGED], [2, 1], 1, "x got messages of p out of order: 1 after 2"),
    ],
)
def test_what_is_found(promises: list[Promise], numbers: list[int], qos: int, finding: str) -> None:
    receiver = Receiver("x", received(*numbers), exactly_once=True)
    assert "; ".join(receiver.compare("p", qos, sent(*promises))) == finding


def test_one_who_may_get_messages_twice_is_not_blamed_for_it() -> None:
    receiver = Receiver("x", received(1, 1), exactly_once=False)
    assert receiver.compare("p", 2, sent(ACKNOWLEDGED)) == []


def test_a_message_acknowledged_later_is_still_looked_for() -> None:
    messages = sent(ACKNOWLEDGED, NONE, ACKNOWLEDGED)
    receiver = Receiver("x", received(1, 3), exactly_once=True)
    assert receiver.compare("p", 2, messages) == []
    messages[1].promise = ACKNOWLEDGED
    assert [message.number for message in receiver.missing("p", messages)] == [2]


def test_ranges_are_short() -> None:
    assert ranges([4, 1, 2, 3, 9]) == "1-4, 9"
    assert ranges(list(range(1, 40, 2))).endswith("19, …")
