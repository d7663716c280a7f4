from threading import Thread

from tui.inbox import Arrival, Inbox


def arrival(topic: str, payload: bytes = b"") -> Arrival:
    return Arrival(topic, payload, False, 0.0)


def topics(inbox: Inbox) -> list[str]:
    taken = []
    while (one := inbox.pop()) is not None:
        taken.append(one.topic)
    return taken


def test_first_in_first_out() -> None:
    inbox = Inbox()
    for topic in "abc":
        inbox.put(arrival(topic))
    assert topics(inbox) == ["a", "b", "c"]
    assert inbox.pop() is None


def test_the_oldest_is_dropped_when_there_are_too_many() -> None:
    inbox = Inbox(messages=2)
    for topic in "abcd":
        inbox.put(arrival(topic))
    assert inbox.dropped == 2
    assert topics(inbox) == ["c", "d"]


def test_the_oldest_is_dropped_when_there_are_too_many_bytes() -> None:
    inbox = Inbox(octets=10)
    for topic in "abc":
        inbox.put(arrival(topic, b"1234"))
    assert inbox.dropped == 1
    assert topics(inbox) == ["b", "c"]
    inbox.put(arrival("x", b"12345678901"))
    assert len(inbox) == 0
    assert inbox.dropped == 2


def test_taking_and_clearing_make_room() -> None:
    inbox = Inbox(octets=10)
    inbox.put(arrival("a", b"123456789"))
    inbox.pop()
    inbox.put(arrival("b", b"123456789"))
    inbox.clear()
    inbox.put(arrival("c", b"123456789"))
    assert inbox.dropped == 0
    assert topics(inbox) == ["c"]


def test_two_threads_lose_nothing() -> None:
    inbox = Inbox(messages=100_000)

    def write() -> None:
        for number in range(5_000):
            inbox.put(arrival(str(number)))

    writer = Thread(target=write)
    writer.start()
    taken: list[str] = []
    while writer.is_alive():
        taken += topics(inbox)
    taken += topics(inbox)
    assert taken == [str(n) for n in range(5_000)]
