import asyncio
import itertools
import math
import os
import selectors
import socket
from collections.abc import Iterator
from select import EPOLLHUP, EPOLLIN
from time import monotonic

import pytest

from gateway.server import socket_selector
from gateway.server.socket_selector import FEW_EVENTS, READ, WRITE, SocketSelector


class Listening:
    """Reads what comes, and remembers it with the events it was told of."""

    def __init__(self, selector: SocketSelector, sock: socket.socket) -> None:
        self.selector = selector
        self.sock = sock
        self.reported: list[tuple[int, bytes]] = []
        self.schedules = False

    def ready(self, events: int) -> None:
        self.selector.begun = True
        data = self.sock.recv(100) if events & READ else b""
        self.reported.append((events, data))
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
    selector.end_of_turn = lambda: ends.append(len(served.reported))
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select(0) == []
    assert (served.reported, ends) == ([(EPOLLIN, b"one")], [1])
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
    assert (served.reported, ends) == ([(EPOLLIN, b"one")], [])


def test_more_sockets_are_asked_for_after_many(selector: SocketSelector) -> None:
    pairs = [socket.socketpair() for _ in range(2 * FEW_EVENTS)]
    reported = []
    for ours, theirs in pairs:
        served = Listening(selector, ours)
        reported.append(served.reported)
        selector.serve(ours.fileno(), served, READ)
        theirs.send(b"one")
    answered = []
    for _ in range(3):
        selector.select(0)
        answered.append(sum(map(len, reported)))
        for _, theirs in pairs if len(answered) > 1 else []:
            theirs.send(b"more")
    assert answered == [FEW_EVENTS, 2 * FEW_EVENTS, 4 * FEW_EVENTS]
    for end in itertools.chain(*pairs):
        end.close()


@pytest.fixture
def three(
    selector: SocketSelector, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[tuple[Listening, socket.socket]]]:
    """Return three sockets that are ready, of which one poll returns one, and their other ends."""
    for name in ("FEW_EVENTS", "MAXIMUM_EVENTS"):
        monkeypatch.setattr(socket_selector, name, 1)
    selector.select(0)
    pairs = [socket.socketpair() for _ in range(3)]
    made = [(Listening(selector, ours), theirs) for ours, theirs in pairs]
    for served, theirs in made:
        selector.serve(served.sock.fileno(), served, READ)
        theirs.send(b"one")
    yield made
    for end in itertools.chain(*pairs):
        end.close()


Three = list[tuple[Listening, socket.socket]]


def test_a_cycle_takes_as_many_polls_as_return_each_socket(
    selector: SocketSelector, three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_selector, "READING", 0.0)  # for the first, and for no more
    seen = []
    for _ in range(4):
        selector.select(0)
        seen.append((selector.full, selector.has_time()))
    assert all(served.reported == [(EPOLLIN, b"one")] for served, _ in three)
    assert seen == [(True, True), (True, False), (False, False), (False, True)]


def test_what_has_ended_waits_for_a_cycle_that_has_time(
    selector: SocketSelector, three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, _), (second, end), (third, _) = three
    end.close()
    monkeypatch.setattr(socket_selector, "READING", 0.0)
    selector.select(0)
    assert selector.has_time()  # for the first, and for no more
    for _ in range(2):
        selector.select(0)
    assert [len(each.reported) for each in (first, second, third)] == [1, 0, 1]
    selector.select(0)
    assert second.reported == [(READ | EPOLLHUP, b"one")]


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
    assert served.reported == [(EPOLLIN, b"one")]


def test_select_goes_on_until_its_time_is_over(selector: SocketSelector, pair: Pair) -> None:
    served = Listening(selector, pair[0])

    def send_more() -> None:
        if len(served.reported) < 5:
            pair[1].send(b"more")

    selector.end_of_turn = send_more
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    assert selector.select(0.2) == []
    assert len(served.reported) == 5


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
    assert len(served.reported) == 1
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
    assert served.reported == [(WRITE, b"")]
    selector.serve(descriptor, served, 0)
    selector.serve(descriptor, served, 0)
    assert selector.select(0) == []
    assert len(served.reported) == 1


async def test_the_loop_notices_what_a_served_socket_schedules() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_later(0.001, done.set_result, None)
    await asyncio.wait_for(done, 60)


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_wait_ends_when_the_wake_up_is_due(
    selector: SocketSelector, timeout: float | None
) -> None:
    rings: list[float] = []

    def ring() -> None:
        rings.append(monotonic())
        selector.wake_up.at = math.inf

    selector.wake_up.ring = ring
    selector.wake_up.at = due = monotonic() + 0.02
    while not rings:
        assert selector.select(timeout) == []
    assert due <= rings[0] < due + 1.0


def test_a_wake_up_makes_no_wait_longer(selector: SocketSelector) -> None:
    selector.wake_up.at = monotonic() + 600.0
    began = monotonic()
    assert selector.select(0.02) == []
    assert monotonic() - began < 300.0


def test_a_wake_up_rings_while_sockets_are_busy(selector: SocketSelector, pair: Pair) -> None:
    rings: list[int] = []
    served = Listening(selector, pair[0])
    selector.serve(pair[0].fileno(), served, READ)
    pair[1].send(b"one")
    selector.wake_up.ring = lambda: rings.append(len(served.reported))
    selector.wake_up.at = 0.0
    selector.select(0)
    assert rings == [1]
