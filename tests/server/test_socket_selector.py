import asyncio
import itertools
import os
import selectors
import socket
from collections.abc import Iterator

import pytest

from gateway.server import socket_selector
from gateway.server.socket_selector import (
    FEW_EVENTS,
    LONGEST_AWAKE,
    LONGEST_PAUSE,
    READ,
    SHORT,
    STEADY,
    WORTHWHILE,
    WRITE,
    SocketSelector,
)


class Listening:
    """Reads what comes, and remembers it with the events it was told of."""

    def __init__(self, selector: SocketSelector, sock: socket.socket) -> None:
        self.selector = selector
        self.sock = sock
        self.told: list[tuple[int, bytes]] = []
        self.schedules = False
        self.alone: list[bool] = []

    def ready(self, events: int) -> None:
        self.alone.append(self.selector.alone)
        self.selector.begun = True
        data = self.sock.recv(100) if events & READ else b""
        self.told.append((events, data))
        if self.schedules:
            self.selector.scheduled = True


@pytest.fixture
def selector() -> Iterator[SocketSelector]:
    made = SocketSelector()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


Pair = tuple[socket.socket, socket.socket]


def test_a_socket_is_served_and_the_turn_ends(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])
    ends: list[int] = []
    selector.end_of_turn = lambda: ends.append(len(served.told))
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select(0) == []
    assert (served.told, ends) == ([(READ, b"one")], [1])
    assert selector.select(0) == []
    assert ends == [1]


def test_a_turn_that_nobody_began_does_not_end(selector: SocketSelector, pair: Pair) -> None:
    class Silent(Listening):
        def ready(self, events: int) -> None:
            super().ready(events)
            self.selector.begun = False

    ends: list[int] = []
    selector.end_of_turn = lambda: ends.append(1)
    served = Silent(selector, pair[0])
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select(0) == []
    assert (served.told, ends) == ([(READ, b"one")], [])


def test_a_socket_is_alone_unless_another_is_ready(selector: SocketSelector, pair: Pair) -> None:
    both = [Listening(selector, end) for end in pair]
    for end, served in zip(pair, both, strict=True):
        selector.serve(end.fileno(), served, READ)
    pair[1].send(b"one")
    selector.select(0)
    pair[1].send(b"one")
    pair[0].send(b"one")
    selector.select(0)
    assert (both[0].alone, both[1].alone) == ([True, False], [False])


def test_more_sockets_are_asked_for_after_many(selector: SocketSelector) -> None:
    pairs = [socket.socketpair() for _ in range(2 * FEW_EVENTS)]
    told = []
    for ours, theirs in pairs:
        served = Listening(selector, ours)
        told.append(served.told)
        selector.serve(ours.fileno(), served, READ)
        theirs.send(b"one")
    answered = []
    for _ in range(3):
        selector.select(0)
        answered.append(sum(map(len, told)))
        for _, theirs in pairs if len(answered) > 1 else []:
            theirs.send(b"more")
    assert answered == [FEW_EVENTS, 2 * FEW_EVENTS, 4 * FEW_EVENTS]
    for end in itertools.chain(*pairs):
        end.close()


@pytest.mark.parametrize("events", [0, READ])
def test_a_socket_that_is_closed_is_nobodys(
    selector: SocketSelector, pair: Pair, events: int
) -> None:
    served = Listening(selector, pair[0])
    selector.serve(pair[0].fileno(), served, READ)
    with pytest.raises(ValueError, match="-1 is no descriptor"):
        selector.serve(-1, served, events)
    pair[1].send(b"one")
    selector.select(0)
    assert served.told == [(READ, b"one")]


def test_select_goes_on_until_its_time_is_over(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])

    def send_more() -> None:
        if len(served.told) < 5:
            pair[1].send(b"more")

    selector.end_of_turn = send_more
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select(0.2) == []
    assert len(served.told) == 5


def test_select_returns_when_something_was_scheduled(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])
    served.schedules = True
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select() == []  # without a time-out: it would wait for ever


def test_what_is_asyncio_s_is_returned(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])
    selector.serve(pair[0].fileno(), served, READ)
    reader, writer = os.pipe()
    key = selector.register(reader, selectors.EVENT_READ, "data")
    os.write(writer, b"x")
    pair[1].send(b"one")
    assert selector.select() == [(key, selectors.EVENT_READ)]
    assert len(served.told) == 1
    changed = selector.modify(reader, selectors.EVENT_READ | selectors.EVENT_WRITE, "other")
    assert (changed.data, selector.get_key(reader)) == ("other", changed)
    os.close(writer)
    assert selector.unregister(reader).data == "other"
    assert selector.select(0) == []
    os.close(reader)


def test_keys_are_found_by_file_or_descriptor(selector: SocketSelector, pair: Pair) -> None:
    key = selector.register(pair[0], selectors.EVENT_WRITE)
    keys = selector.get_map()
    assert keys[pair[0]] is keys[pair[0].fileno()] is key
    assert (len(keys), list(keys)) == (1, [pair[0].fileno()])
    assert selector.modify(pair[0], selectors.EVENT_WRITE, "same").data == "same"
    with pytest.raises(KeyError):
        selector.register(pair[0], selectors.EVENT_READ)
    with pytest.raises(KeyError):
        selector.unregister(pair[1])


def test_a_file_closed_before_can_still_be_forgotten(selector: SocketSelector) -> None:
    reader, writer = os.pipe()
    selector.register(reader, selectors.EVENT_READ)
    os.close(reader)
    os.close(writer)
    assert selector.unregister(reader).fd == reader


def test_a_socket_is_served_for_what_is_asked(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])
    descriptor = pair[0].fileno()
    selector.serve(descriptor, served, READ)
    selector.serve(descriptor, served, WRITE)
    pair[1].send(b"one")
    selector.select(0)
    assert served.told == [(WRITE, b"")]
    selector.serve(descriptor, served, 0)
    selector.serve(descriptor, served, 0)
    assert selector.select(0) == []
    assert len(served.told) == 1


async def test_the_loop_notices_what_a_served_socket_schedules() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_later(0.001, done.set_result, None)
    await asyncio.wait_for(done, 60)


class Epoll:
    """An epoll whose sleeps take as long as they are told, and on which the same clock runs."""

    def __init__(self) -> None:
        self.time = 0.0
        self.polls: list[float] = []
        self.ready_in = 0.0

    def monotonic(self) -> float:
        self.time += 1e-6
        return self.time

    def poll(self, seconds: float, events: int) -> list[tuple[int, int]]:
        self.polls.append(seconds)
        if seconds == 0.0 and self.ready_in > 0.0:
            self.time += 1e-6
            self.ready_in -= 2e-6
            return []
        self.time += self.ready_in
        return [(0, READ)]

    def close(self) -> None:
        pass


class Answering:
    """Is served `turns` times, the peer's next answer coming in `ready_in` seconds each."""

    def __init__(self, selector: SocketSelector, epoll: Epoll) -> None:
        self.selector = selector
        self.epoll = epoll
        self.ready_in: list[float] = []

    def ready(self, events: int) -> None:
        self.epoll.ready_in = self.ready_in.pop(0)
        self.selector.scheduled = not self.ready_in

    def waits(self, *ready_in: float) -> list[float]:
        """Return what time-outs the epoll was polled with while the answers came after these."""
        self.epoll.polls.clear()
        self.epoll.ready_in = ready_in[0]
        self.ready_in = [*ready_in[1:], 0.0]
        self.selector.select()
        return self.epoll.polls


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    epoll = Epoll()
    monkeypatch.setattr("select.epoll", lambda: epoll)
    monkeypatch.setattr(socket_selector, "monotonic", epoll.monotonic)
    selector = SocketSelector()
    monkeypatch.setattr(epoll, "register", lambda *_: None, raising=False)
    made = Answering(selector, epoll)
    selector.serve(0, made, READ)
    return made


SOON, LATE, NEVER = WORTHWHILE / 2, LONGEST_AWAKE * 1.1, SHORT * 2


def test_who_answers_soon_each_time_is_waited_for_awake(answering: Answering) -> None:
    assert answering.waits(*[SOON] * STEADY) == [-1.0] * STEADY
    polls = answering.waits(SOON, SOON)
    assert len(polls) > 2
    assert set(polls) == {0.0}


def test_a_wait_awake_ends_with_sleep(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY)
    polls = answering.waits(LATE)
    assert polls[-1] == -1.0
    assert 1 < len(polls) <= LONGEST_AWAKE / 2e-6 + 2


def test_one_late_answer_does_not_end_it(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY * 2, LATE)
    assert set(answering.waits(*[SOON] * STEADY)) == {0.0}


def test_an_answer_after_a_long_time_ends_it(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY, NEVER)
    assert answering.waits(*[SOON] * STEADY) == [-1.0] * STEADY


def test_a_long_wait_among_short_ones_is_slept_for(answering: Answering) -> None:
    conversation = [*[SOON] * (STEADY - 1), NEVER]
    assert answering.waits(*conversation, *conversation, SOON) == [-1.0] * (2 * STEADY + 1)


def awake(polls: list[float]) -> int:
    """Return in how many places of the polls waits begin that are spent awake."""
    return sum(after == 0.0 != before for before, after in itertools.pairwise(polls))


def test_what_is_not_worthwhile_is_seldom_tried_again(answering: Answering) -> None:
    waits = 4 * LONGEST_PAUSE
    polls = answering.waits(*[WORTHWHILE * 3] * waits)
    assert 2 < awake(polls) < 100
    at_last = len(polls) - 1 - polls[::-1].index(0.0)
    before = at_last - polls[:at_last][::-1].index(-1.0)
    assert 0.0 not in polls[before - LONGEST_PAUSE : before]


def test_a_long_wait_does_not_shorten_the_pause(answering: Answering) -> None:
    for _ in range(20):  # each time twice as long
        answering.waits(*[WORTHWHILE * 3] * STEADY)
        answering.waits(NEVER)
    assert set(answering.waits(*[SOON] * STEADY)) == {-1.0}


def test_pauses_become_short_again_once_it_is_worthwhile(answering: Answering) -> None:
    answering.waits(*[WORTHWHILE * 3] * LONGEST_PAUSE)
    answering.waits(*[SOON] * 4 * LONGEST_PAUSE)
    answering.waits(*[WORTHWHILE * 3] * 2 * STEADY)
    assert 0.0 in answering.waits(*[SOON] * 2 * STEADY)


def test_a_look_without_waiting_says_nothing_of_waits(answering: Answering) -> None:
    answering.waits(*[SOON] * STEADY)
    answering.epoll.ready_in = NEVER
    answering.selector.select(0)
    assert set(answering.waits(SOON)) == {0.0}
