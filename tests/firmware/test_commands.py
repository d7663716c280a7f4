"""Commands at the node: each is carried out once, whatever the line does with it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node import frames
from node.commands import (
    _ANSWER,
    _COMMAND,
    _DONE,
    _IDENTIFY,
    _NOT_KNOWN,
    _OUT_OF_DATE,
    _READ_NOW,
    _RESTART,
    _SET_CLOCK,
    _SET_INTERVAL,
    NOT_ALLOWED,
    Commands,
)
from node.loop import _RESTART_MS, Node

from tests.firmware.test_loop import BOOT, Clock, Line, Sensor
from tests.support.table import table

WALL = 1_763_740_000_000


class Board:
    def __init__(self) -> None:
        self.reported: list[str] = []

    def identify(self, seconds: int) -> None:
        self.reported.append(f"identify {seconds}")

    def restart(self) -> None:
        self.reported.append("restart")


class Rig:
    """A node on a line in memory, and the answers to what it is told."""

    def __init__(self, *, board: bool = True) -> None:
        self.line, self.clock, self.board = Line(), Clock(), Board()
        self.node = Node(
            "n1", BOOT, self.line, Sensor(), self.clock, 5000, board=self.board if board else None
        )
        self.node.step()
        self.line.answer(1)
        self.node.step()
        self.line.sent.clear()

    def tell(
        self, number: int, command: int, argument: bytes = b"", boot: int = BOOT
    ) -> list[tuple[int, int, int]]:
        """Return (status, number, last) of each answer."""
        body = struct.pack("<BBIIB", 1, _COMMAND, boot, number, command) + argument
        self.line.heard.append(frames.frame(body))
        self.node.step()
        bodies = [frames.unframe(wire[1:-1]) or b"" for wire in self.line.sent]
        self.line.sent = [
            wire for wire, body in zip(self.line.sent, bodies, strict=True) if body[1] != _ANSWER
        ]
        answers = [struct.unpack("<BBBIII", body) for body in bodies if body[1] == _ANSWER]
        assert all(fields[3] == boot for fields in answers)
        return [(status, number, last) for _, _, status, _, number, last in answers]


@pytest.fixture
def rig() -> Rig:
    return Rig()


ARGUMENTS = [
    (_SET_INTERVAL, (100).to_bytes(4, "little"), _DONE),
    (_SET_INTERVAL, (86_400_000).to_bytes(4, "little"), _DONE),
    (_SET_INTERVAL, (99).to_bytes(4, "little"), NOT_ALLOWED),
    (_SET_INTERVAL, (86_400_001).to_bytes(4, "little"), NOT_ALLOWED),
    (_SET_INTERVAL, b"", NOT_ALLOWED),
    (_SET_INTERVAL, b"\xff" * 9, NOT_ALLOWED),
    (_SET_CLOCK, WALL.to_bytes(8, "little"), _DONE),
    (_SET_CLOCK, (0).to_bytes(8, "little"), NOT_ALLOWED),
    (_SET_CLOCK, b"\xff" * 8, NOT_ALLOWED),
    (_IDENTIFY, b"\x3c", _DONE),
    (_IDENTIFY, b"\x3d", NOT_ALLOWED),
    (_IDENTIFY, b"", NOT_ALLOWED),
    (_READ_NOW, b"", _DONE),
    (_RESTART, b"", _DONE),
    (0, b"", _NOT_KNOWN),
    (200, b"x", _NOT_KNOWN),
]


@table("command, argument, status", ARGUMENTS)
def test_what_is_answered(command: int, argument: bytes, status: int) -> None:
    assert Rig().tell(1, command, argument) == [(status, 1, 1)]


@table("command, argument", [(_IDENTIFY, b"\x05"), (_RESTART, b"")])
def test_a_node_without_a_board_refuses_what_is_for_it(command: int, argument: bytes) -> None:
    assert Rig(board=False).tell(1, command, argument) == [(NOT_ALLOWED, 1, 1)]


def test_a_command_that_comes_again_is_answered_again_and_not_carried_out(rig: Rig) -> None:
    for _ in range(3):
        assert rig.tell(1, _IDENTIFY, b"\x05") == [(_DONE, 1, 1)]
    assert rig.board.reported == ["identify 5"]
    assert rig.tell(4, 200) == rig.tell(4, 200) == [(_NOT_KNOWN, 4, 4)]


def test_an_older_command_is_out_of_date_and_told_the_last_number(rig: Rig) -> None:
    rig.tell(7, _IDENTIFY, b"\x05")
    assert rig.tell(6, _IDENTIFY, b"\x06") == [(_OUT_OF_DATE, 6, 7)]
    assert rig.tell(8, _IDENTIFY, b"\x08") == [(_DONE, 8, 8)]
    assert rig.board.reported == ["identify 5", "identify 8"]


def test_what_is_for_another_start_means_nothing(rig: Rig) -> None:
    assert rig.tell(1, _IDENTIFY, b"\x05", boot=BOOT + 1) == []
    assert rig.board.reported == []


def test_the_interval_holds_from_the_command_on(rig: Rig) -> None:
    rig.clock.now = 1000
    rig.tell(1, _SET_INTERVAL, (250).to_bytes(4, "little"))
    for rig.clock.now in (1100, 1250, 1500):
        rig.node.step()
    assert [frame.clock for frame in rig.line.take()] == [1000, 1250, 1500]


def test_read_now_samples_at_once_and_the_interval_goes_on(rig: Rig) -> None:
    rig.clock.now = 1234
    rig.tell(1, _READ_NOW)
    for rig.clock.now in (5000, 6234):
        rig.node.step()
    assert {frame.clock for frame in rig.line.take()} == {1234, 6234}


def test_samples_bear_the_time_that_the_gateway_has_set(rig: Rig) -> None:
    rig.clock.now = 2000
    rig.tell(1, _SET_CLOCK, WALL.to_bytes(8, "little"))
    rig.clock.now = 5000
    rig.node.step()
    (frame,) = rig.line.take()
    assert frame.wall == WALL + 3000


def test_the_answer_leaves_before_the_restart(rig: Rig) -> None:
    assert rig.tell(1, _RESTART) == [(_DONE, 1, 1)]
    assert rig.board.reported == []
    assert rig.node.step() == _RESTART_MS
    rig.clock.now = _RESTART_MS
    rig.node.step()
    rig.node.step()
    assert rig.board.reported == ["restart"]


class Nothing:
    """Carries out whatever it is told."""

    def __init__(self) -> None:
        self.done = 0

    def read_now(self) -> None:
        self.done += 1

    def set_interval(self, _milliseconds: int) -> None:
        self.done += 1

    def install(self, _argument: bytes) -> int:
        self.done += 1
        return _DONE

    set_clock = identify = set_interval
    restart = read_now


@given(st.lists(st.integers(0, 9), max_size=30))
def test_of_any_numbers_each_rising_one_is_carried_out_once(numbers: list[int]) -> None:
    orders = Nothing()
    commands = Commands(BOOT, orders)
    last = rising = 0
    for number in numbers:
        rising += number > last
        last = max(last, number)
        commands.receive(struct.pack("<BBIIB", 1, _COMMAND, BOOT, number, _READ_NOW))
    assert orders.done == rising


@given(st.binary(max_size=40))
def test_any_bytes_are_answered_or_mean_nothing(body: bytes) -> None:
    answer = Commands(BOOT, Nothing()).receive(body)
    is_command = len(body) > 10 and body[:2] == b"\1\3" and body[2:6] == BOOT.to_bytes(4, "little")
    assert (answer is not None) == is_command
