import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from random import randrange
from typing import cast

import pytest

from gateway.app.telemetry import buffer_lines
from gateway.broker.broker import Broker
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_selector import READ
from gateway.server.turn import Turn
from gateway.settings.broker import BrokerSettings
from gateway.storage.engine.writer import Writer
from gateway.telemetry.line_output import LineOutput
from tests.support.disk.noted_writes import NotedWrites
from tests.support.processes.server import HeldWriter


@pytest.fixture
def logger() -> logging.Logger:
    logger = logging.getLogger("gateway.test")
    logger.setLevel(logging.DEBUG)
    return logger


@pytest.fixture
def output() -> Iterator[NotedWrites]:
    """Give the stream to which log lines go."""
    stream = NotedWrites()
    handler = LineOutput(stream)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def make_turn() -> Turn:
    broker = Broker(BrokerSettings(), Counters(), new_client_id=str, randrange=randrange)
    return Turn(broker, cast("Writer", HeldWriter()), Clock())


class Speaker:
    """A socket that logs when something comes."""

    def __init__(self, speak: Callable[[], None]) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._speak = speak
        self._loop = cast("GatewayLoop", asyncio.get_running_loop())
        self.spoken = asyncio.Event()
        self._loop.sockets.serve(self._ours.fileno(), self, READ)

    def ready(self, _events: int) -> None:
        self._ours.recv(1)
        self._speak()
        self._loop.call_soon(self.spoken.set)

    async def begin(self) -> None:
        """Let it speak, and the turn end."""
        self._theirs.send(b"x")
        await self.spoken.wait()
        self._loop.sockets.serve(self._ours.fileno(), self, 0)
        self._ours.close()
        self._theirs.close()


def run_turn(speak: Callable[[], None], turn: list[Turn] | None = None) -> None:
    """Let it speak in a turn whose lines are gathered; `turn` is told which."""

    async def run() -> None:
        made = make_turn()
        if turn is not None:
            turn.append(made)
        buffer_lines(made)
        await Speaker(speak).begin()

    run_under_our_loop(run())


def run_under_our_loop(main: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=GatewayLoop) as runner:
        runner.run(main)


def test_lines_of_a_turn_leave_together_at_its_end(
    logger: logging.Logger, output: NotedWrites
) -> None:
    during: list[list[str]] = []

    def speak() -> None:
        for text in ("one", "two", "three"):
            logger.info(text)
        during.append(list(output.writes))

    run_turn(speak)
    assert during == [[]]
    assert output.writes == ["one\ntwo\nthree\n"]


def test_who_was_let_in_is_told_before_what_comes_then(
    logger: logging.Logger, output: NotedWrites, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway.broker.connecting.connection_lines")
    turns: list[Turn] = []

    def let_in(name: str) -> None:
        turns[0].now()
        turns[0].broker.connection_lines.add("client %r came", name)

    def speak() -> None:
        let_in("a")
        let_in("b")
        logger.info("one")
        let_in("c")

    run_turn(speak, turns)
    lines = ["client 'a' came", "client 'b' came"]
    lines += ["one", "client 'c' came"]
    assert output.writes == ["\n".join(lines) + "\n"]


def test_lines_outside_of_a_turn_leave_at_once(logger: logging.Logger, output: NotedWrites) -> None:
    async def run() -> None:
        buffer_lines(make_turn())
        logger.info("one")
        logger.info("two")

    run_under_our_loop(run())
    assert output.writes == ["one\n", "two\n"]


def test_a_line_of_another_thread_leaves_at_once(
    logger: logging.Logger, output: NotedWrites
) -> None:
    during: list[list[str]] = []

    def speak() -> None:
        logger.info("one")
        other = threading.Thread(target=logger.info, args=("two",))
        other.start()
        other.join()
        during.append(list(output.writes))

    run_turn(speak)
    assert during == [["one\ntwo\n"]]


def test_nothing_is_held_back_after_the_end(logger: logging.Logger, output: NotedWrites) -> None:
    def speak() -> None:
        logger.info("one")
        for each in gathered:
            each.stop()
        logger.info("two")
        assert output.writes == ["one\n", "two\n"]

    gathered = []

    async def run() -> None:
        gathered.extend(buffer_lines(make_turn()))
        await Speaker(speak).begin()

    run_under_our_loop(run())
    assert output.writes == ["one\n", "two\n"]


def test_under_another_loop_lines_leave_at_once(
    logger: logging.Logger, output: NotedWrites
) -> None:
    async def run() -> None:
        assert not buffer_lines(make_turn())
        logger.info("one")

    asyncio.run(run())
    assert output.writes == ["one\n"]
