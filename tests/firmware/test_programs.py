"""Filters at the node: verified, run before a sample is kept, and still there after a restart."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node import frames
from node.commands import _DONE, _INSTALL
from node.loop import _HEARTBEAT_MS, Node
from node.programs import _NO_SPACE, _NOT_NEWER, _NOT_VERIFIED, _PROGRAMS_MAX, Programs

from tests.firmware.test_commands import Rig
from tests.firmware.test_loop import BOOT, Clock, Line, Sensor
from tests.support.table import table

ABOVE_20 = bytes.fromhex("012400051400000000000000")
DEADBAND_5 = bytes.fromhex("014005" + "0500000000000000")


def argument(
    program: bytes = ABOVE_20, version: int = 1, guard: int = 0, quantity: str = "count"
) -> bytes:
    name = quantity.encode()
    head = version.to_bytes(4, "little") + guard.to_bytes(4, "little")
    return head + bytes([len(name)]) + name + program


def passed(programs: Programs, *values: int, step: int = 1000) -> list[int]:
    return [
        value
        for number, value in enumerate(values)
        if programs.passes("count", value, None, number * step)
    ]


BAD = [
    (b"", _NOT_VERIFIED),
    (argument()[:9], _NOT_VERIFIED),
    (argument()[:12], _NOT_VERIFIED),
    (argument(quantity="") + b"x", _NOT_VERIFIED),
    (argument(b"\x02" + ABOVE_20[1:]), _NOT_VERIFIED),
    (argument(ABOVE_20[:-1]), _NOT_VERIFIED),
    (argument(b"\x01\x32"), _NOT_VERIFIED),
    (argument(b"\x01" + b"\x10\x00" * 9), _NOT_VERIFIED),
    (argument(b"\x01" + b"\x30" * 200), _NOT_VERIFIED),
    (b"\0" * 8 + b"\x01\xff" + ABOVE_20, _NOT_VERIFIED),
    (argument(DEADBAND_5), _NOT_NEWER),
    (argument(DEADBAND_5, version=0), _NOT_NEWER),
    (argument(), _DONE),
]


@table("wrong, status", BAD)
def test_what_is_refused_leaves_the_program_that_runs(wrong: bytes, status: int) -> None:
    programs = Programs()
    assert programs.install(argument()) == _DONE
    assert programs.install(wrong) == status
    assert passed(programs, 20, 21, 19, 22) == [21, 22]
    assert (programs.suppressed, programs.version) == (2, 1)


def test_only_so_many_quantities_have_a_program() -> None:
    programs = Programs()
    for number in range(_PROGRAMS_MAX):
        assert programs.install(argument(quantity=f"q{number}")) == _DONE
    assert programs.install(argument(quantity="one more")) == _NO_SPACE
    assert programs.install(argument(quantity="q0", version=2)) == _DONE


def test_a_raw_reading_passes_at_the_guards_rate_and_the_filter_knows_it() -> None:
    programs = Programs()
    programs.install(argument(DEADBAND_5, guard=3))
    # 10 and 12 are raw, since 3 s are over; 16 is 4 from the 12 that was sent, 17 is 5.
    assert passed(programs, 10, 11, 12, 12, 16, 17) == [10, 12, 17]
    assert programs.suppressed == 3


def test_an_empty_program_sends_everything_and_keeps_its_version() -> None:
    programs = Programs()
    programs.install(argument())
    assert programs.install(argument(b"", version=2)) == _DONE
    assert (passed(programs, 1, 30), programs.version) == ([1, 30], 0)
    assert programs.install(argument(version=2)) == _NOT_NEWER


def test_programs_survive_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "programs")
    first = Programs(path)
    first.install(argument(version=7))
    first.install(argument(DEADBAND_5, quantity="level"))
    second = Programs(path)
    assert passed(second, 20, 21) == [21]
    assert second.version == 7
    assert second.install(argument(version=6)) == _NOT_NEWER
    (tmp_path / "programs").rename(tmp_path / "programs.new")  # the power failed between the two
    assert Programs(path).version == 7


def test_a_file_that_cannot_be_written_leaves_what_was() -> None:
    programs = Programs("/nowhere/programs")
    assert programs.install(argument()) == _NO_SPACE
    assert passed(programs, 1, 2) == [1, 2]


@given(st.integers(0, 60), st.integers(1, 255))
def test_a_damaged_file_filters_nothing(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    path = tmp_path_factory.mktemp("p") / "programs"
    Programs(str(path)).install(argument())
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= change
    path.write_bytes(data)
    programs = Programs(str(path))
    assert programs.damaged
    assert passed(programs, 1, 30) == [1, 30]


@given(st.binary(max_size=230))
def test_no_bytes_raise_anything(data: bytes) -> None:
    programs = Programs()
    programs.install(data)
    programs.passes("count", 7, None, 0)


def test_a_node_filters_counts_and_tells_in_its_heartbeat() -> None:
    rig = Rig()
    assert rig.tell(1, _INSTALL, argument(version=9)) == [(_DONE, 1, 1)]
    for rig.clock.now in range(0, 2 * _HEARTBEAT_MS + 1, 1000):
        rig.node.step()
        for frame in rig.line.take():
            rig.line.answer(frame.sequence)
            heartbeat = {each.quantity: each.value for each in frame.readings}
            assert heartbeat.keys() == {"suppressed", "filter"}
    # 5,000 to 60,000 ms each 5 s, the one at 60 s before its heartbeat.
    assert heartbeat == {"suppressed": 12, "filter": 9}


def test_noise_commands_and_replays_leave_the_node_sampling() -> None:
    line, clock, sensor = Line(), Clock(), Sensor()
    node = Node("n1", BOOT, line, sensor, clock, 100)
    install = frames.frame(
        b"\1\3" + BOOT.to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\6" + argument()
    )
    hostile = [install, install[:-20], bytes(range(256)) * 8, b"\xff" * 5000, install]
    taken = 0
    for clock.now in range(0, 20_000, 100):
        line.heard.append(hostile[clock.now // 100 % len(hostile)])
        sensor.readings = [("count", 21, None)]
        node.step()
        for frame in line.take():
            taken += frame.readings[0].quantity == "count"
            line.answer(frame.sequence)
            node.step()
        assert len(node._frames._stuffed) <= frames._HEARD_MAX + 1
    assert taken >= 199
