import asyncio
import math
import socket
from collections.abc import Callable
from functools import partial
from itertools import count
from random import randrange

import pytest

from gateway.broker.broker import Broker
from gateway.broker.instant import Instant
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.server import socket_selector
from gateway.server.turn import WRITING, Turn
from gateway.settings.broker import BrokerSettings
from tests.support.disk.storage import until
from tests.support.processes.server import HeldWriter


async def turns_pass(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Line:
    """A connection that notes what it was told, and has output up to a batch."""

    def __init__(self, waits_for: int = 0, *, active: bool = False) -> None:
        self.flushed: list[int] = []
        self.waits_for = waits_for
        self.active = active
        self.on_flush: Callable[[], None] = lambda: None

    def flush(self, committed: int, now: Instant) -> int:
        self.flushed.append(committed)
        self.on_flush()
        return self.waits_for if self.waits_for > committed else 0


@pytest.fixture
def broker() -> Broker:
    return Broker(BrokerSettings(), Counters(), new_client_id=str, randrange=randrange)


@pytest.fixture
async def turn(broker: Broker, held_writer: HeldWriter) -> Turn:
    turn = Turn(broker, held_writer, Clock())  # type: ignore[arg-type]  # by shape
    await turns_pass()  # the first looks at the deadlines
    held_writer.turns = 0
    return turn


class Ticking(Clock):
    """A clock by which each look takes half of the time that a turn has for writing."""

    def __init__(self) -> None:
        self._ticks = count()

    def monotonic(self) -> float:
        return next(self._ticks) * WRITING / 2


async def test_of_very_many_connections_those_come_first_whose_peers_may_wait(
    broker: Broker, held_writer: HeldWriter
) -> None:
    turn = Turn(broker, held_writer, Ticking())  # type: ignore[arg-type]  # by shape
    receivers = [Line() for _ in range(100)]
    answered = [Line(active=True), Line(active=True)]
    order: list[Line] = []
    for line in (*receivers, *answered):
        line.on_flush = partial(order.append, line)
    for line in (*receivers, answered[0]):
        turn.touch(line)
    turn.end()
    assert order == [answered[0], *receivers[:2]]
    assert broker.traffic.unfinished
    turn.touch(answered[1])
    await until(lambda: not broker.traffic.unfinished)
    assert order == [answered[0], *receivers[:2], answered[1], *receivers[2:]]
    turn.stop()


async def test_what_is_touched_by_the_writing_waits_when_its_time_is_over(
    broker: Broker, held_writer: HeldWriter
) -> None:
    turn = Turn(broker, held_writer, Ticking())  # type: ignore[arg-type]  # by shape
    first, second, third, fourth = Line(), Line(), Line(), Line()
    second.on_flush = partial(turn.touch, third)
    third.on_flush = partial(turn.touch, fourth)
    turn.touch(first)
    turn.touch(second)
    turn.end()
    assert [len(each.flushed) for each in (first, second, third, fourth)] == [1, 1, 1, 0]
    await until(lambda: bool(fourth.flushed))
    assert not broker.traffic.unfinished
    turn.stop()


class Answering:
    """A socket that is read when it is ready, of which `heard` keeps the name."""

    def __init__(self, name: str, sock: socket.socket, heard: list[str]) -> None:
        self._name, self._socket, self._heard = name, sock, heard

    def ready(self, events: int) -> None:
        """Read, whatever for."""
        self._socket.recv(1)
        self._heard.append(self._name)


@pytest.mark.asyncio(loop_factories=["gateway"])
async def test_what_was_put_off_waits_for_sockets_that_no_poll_returned_yet(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_selector, "MAXIMUM_EVENTS", 1)
    monkeypatch.setattr(socket_selector, "FEW_EVENTS", 1)
    assert turn.sockets is not None
    await turns_pass()  # the next poll returns no more than that
    heard: list[str] = []
    pairs = [socket.socketpair() for _ in "abc"]
    for name, (near, far) in zip("abc", pairs, strict=True):
        turn.sockets.serve(near.fileno(), Answering(name, near, heard), socket_selector.READ)
        far.send(b"xx")
    busy: list[bool] = []
    turn.later(lambda: heard.append("put off"))
    turn.later(lambda: busy.append(turn.busy))
    await until(lambda: bool(busy))
    assert heard[:4] == ["a", "b", "c", "put off"]  # and not what is ready once more
    await until(lambda: not turn.busy)
    assert sorted(heard) == [*"aabbcc", "put off"]
    for near, far in pairs:
        turn.sockets.serve(near.fileno(), Answering("", near, heard), 0)
        near.close()
        far.close()


async def test_a_turn_has_one_instant(turn: Turn) -> None:
    first = turn.instant
    assert turn.instant is first
    await turns_pass()
    assert turn.instant is not first
    assert turn.instant.monotonic >= first.monotonic


async def test_a_turn_ends_once_and_then_nothing_runs(turn: Turn, held_writer: HeldWriter) -> None:
    assert turn.instant
    turn.touch(Line())
    await turns_pass()
    assert held_writer.turns == 1


async def test_rows_that_come_of_writing_are_handed_over_in_the_same_turn(
    turn: Turn, held_writer: HeldWriter
) -> None:
    line, handed_over = Line(), []
    line.on_flush = lambda: handed_over.append(held_writer.turns)
    turn.touch(line)
    await turns_pass()
    assert (handed_over, held_writer.turns) == ([0], 1)


async def test_a_turn_that_nobody_asked_the_time_ends_once(
    turn: Turn, held_writer: HeldWriter
) -> None:
    turn.touch(Line())
    await turns_pass()
    assert held_writer.turns == 1
    held_writer.commit()
    await turns_pass()
    assert held_writer.turns == 2


async def test_what_the_writing_touches_is_written_in_the_same_turn(
    turn: Turn, held_writer: HeldWriter
) -> None:
    first, second = Line(), Line()
    first.on_flush = lambda: turn.touch(second)
    turn.touch(first)
    await turns_pass()
    assert first.flushed == second.flushed == [0]
    assert held_writer.turns == 1


async def test_a_connection_is_asked_again_after_the_commit_it_waits_for(
    turn: Turn, held_writer: HeldWriter
) -> None:
    free, waiting = Line(), Line(waits_for=2)
    turn.touch(free)
    turn.touch(waiting)
    await turns_pass()
    for _ in range(3):
        held_writer.commit()
        await turns_pass()
    assert free.flushed == [0]
    assert waiting.flushed == [0, 2]


async def test_what_is_written_early_is_not_written_again(
    turn: Turn, held_writer: HeldWriter
) -> None:
    free, waiting = Line(), Line(waits_for=1)
    for line in (free, waiting):
        turn.touch(line)
        turn.write_early(line)
        assert line.flushed == [0]
    await turns_pass()
    assert held_writer.turns == 1
    held_writer.commit()
    await turns_pass()
    assert free.flushed == [0]
    assert waiting.flushed == [0, 1]


async def test_promises_are_kept_in_order_once_the_rows_are_on_disk(
    turn: Turn, held_writer: HeldWriter
) -> None:
    kept: list[str] = []
    turn.when_on_disk(lambda: kept.append("nothing to wait for"))
    held_writer.add("x", ())
    turn.when_on_disk(lambda: kept.append("first"))
    held_writer.add("x", ())
    turn.when_on_disk(lambda: kept.append("second"))
    await turns_pass()
    assert kept == ["nothing to wait for"]
    held_writer.commit()
    await turns_pass()
    assert kept == ["nothing to wait for", "first", "second"]


async def test_memory_durability_waits_for_nothing(broker: Broker) -> None:
    writer, kept = HeldWriter(durable=False), list[str]()
    turn = Turn(broker, writer, Clock())  # type: ignore[arg-type]  # by shape
    writer.add("x", ())
    turn.when_on_disk(lambda: kept.append("kept"))
    await turns_pass()
    assert kept == ["kept"]
    turn.stop()


async def test_what_a_kept_promise_does_is_a_turn_of_its_own(
    turn: Turn, held_writer: HeldWriter
) -> None:
    instants: list[Instant] = []

    def work() -> None:
        held_writer.add("x", ())
        instants.append(turn.instant)

    turn.when_on_disk(work)
    before = turn.instant
    await turns_pass()
    assert held_writer.turns == 2
    assert instants[0] is not before


async def test_the_broker_is_woken_when_something_is_due(turn: Turn, broker: Broker) -> None:
    ran: list[str] = []
    now = Clock().monotonic()
    broker.deadlines.set("late", now + 0.06, lambda *_: ran.append("late"))
    broker.deadlines.set("early", now + 0.03, lambda *_: ran.append("early"))
    assert turn.instant  # a turn in which they were set
    await until(lambda: len(ran) == 2)
    assert ran == ["early", "late"]


async def test_an_earlier_deadline_is_not_missed(turn: Turn, broker: Broker) -> None:
    ran: list[str] = []
    broker.deadlines.set("late", Clock().monotonic() + 3600, lambda *_: ran.append("late"))
    assert turn.instant
    await turns_pass()
    broker.deadlines.set("early", Clock().monotonic() + 0.02, lambda *_: ran.append("early"))
    assert turn.instant
    await until(lambda: bool(ran))
    assert ran == ["early"]


async def test_a_turn_in_which_nobody_wanted_a_commit_hands_nothing_over(
    turn: Turn, held_writer: HeldWriter
) -> None:
    for wanted, turns in ((False, 0), (True, 1), (False, 1)):
        held_writer.due.wanted = wanted
        assert turn.instant
        await turns_pass()
        assert held_writer.turns == turns


async def test_a_stopped_turn_wakes_nobody(turn: Turn, broker: Broker) -> None:
    broker.deadlines.set("a", Clock().monotonic() + 3600, lambda *_: None)
    assert turn.instant
    await turns_pass()
    turn.stop()
    assert turn._timer is not None
    assert turn._timer.cancelled()


async def test_without_a_selector_the_turn_waits_for_the_wake_up(
    turn: Turn, held_writer: HeldWriter
) -> None:
    wake_up, rings = held_writer.wake_up, list[float]()
    loop = asyncio.get_running_loop()

    def ring() -> None:
        rings.append(loop.time())
        wake_up.at = math.inf if len(rings) == 2 else wake_up.at + 0.02

    wake_up.ring = ring
    wake_up.at = due = loop.time() + 0.02
    turn.touch(Line())
    await until(lambda: len(rings) == 2)
    assert due <= rings[0]
    assert due + 0.02 <= rings[1]
    turn.touch(Line())
    await turns_pass()
    wake_up.at = loop.time() + 600.0
    turn.touch(Line())
    await turns_pass()
    turn.stop()
    assert len(rings) == 2
