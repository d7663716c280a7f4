"""Node, gateway and docs/understand/serial-protocol.md say the same of a frame."""

import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from node import buffer as node_buffer
from node import cobs as node_cobs
from node import commands, loop, programs
from node import frames as node_frames
from node import quantities as node_quantities
from node.commands import Commands

from gateway.bridges.readings import quantities, reading
from gateway.bridges.serial import frame_body, node_order, serial_frames
from gateway.bridges.serial.frame_body import (
    Answer,
    AnswerStatus,
    Command,
    FrameReading,
    Status,
    decode_frame,
    encode_acknowledgement,
    encode_command,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.counters import Counters
from gateway.storage.state.node_frames import WINDOW

PAGE = (Path(__file__).parents[2] / "docs/understand/serial-protocol.md").read_text()
BOOT = 0x0A1B2C3D


def example(name: str) -> bytes:
    """Return the bytes of one of the page's examples."""
    found = re.search(rf"```hex {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    return bytes.fromhex(found[1])


def table(title: str) -> dict[int, str]:
    """Return what the page's section `title` gives each number."""
    section = PAGE.split(f"### {title}\n")[1].split("```")[1]
    return {int(number): name for number, name in re.findall(r" (\d+) (\S+)", section)}


def node_frame() -> bytes:
    readings = [
        node_frames.encode_reading("temperature", (215, -1), "°C"),
        node_frames.encode_reading("humidity", (48, 0), "%"),
    ]
    return node_frames.encode_readings("n1", BOOT, 1, 1500, 20, 0, 1_763_740_000_000, readings)


def decoded(wire: bytes) -> frame_body.ReadingsFrame:
    (body,) = FrameDecoder(Counters().add).feed(wire)
    frame = decode_frame(body)
    assert isinstance(frame, frame_body.ReadingsFrame)
    return frame


def test_the_node_sends_the_pages_example() -> None:
    assert node_frame() == example("readings-frame")
    assert node_frames.unframe(node_frame()[1:-1]) == example("readings-body")


def heard(wire: bytes) -> list[tuple[int, int, int] | None]:
    """Return the acknowledgements that a node hears."""
    return [
        node_frames.decode_acknowledgement(body) for body in node_frames.FrameReader().feed(wire)
    ]


def test_the_gateway_reads_the_pages_example() -> None:
    assert FrameDecoder(Counters().add).feed(example("readings-frame")) == [
        example("readings-body")
    ]
    frame = decoded(example("readings-frame"))
    assert (frame.node, frame.boot, frame.sequence) == ("n1", BOOT, 1)
    assert (frame.clock, frame.age, frame.dropped) == (1500, 20, 0)
    assert frame.wall == 1_763_740_000_000
    assert frame.readings == (
        FrameReading("temperature", 21.5, "°C"),
        FrameReading("humidity", 48, "%"),
    )


def test_the_answer_of_the_pages_example() -> None:
    answer = encode_frame(encode_acknowledgement(Status.STORED, BOOT, 1))
    assert answer == example("acknowledgement-frame")
    assert heard(answer) == [(BOOT, 1, node_frames._STORED)]


class Orders:
    """Notes what a node was told."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, int]] = []

    def install(self, argument: bytes) -> int:
        self.reports.append(("install", len(argument)))
        return commands._DONE

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda argument=0: self.reports.append((name, argument))


def test_the_command_of_the_pages_example_and_its_answer() -> None:
    body = encode_command(BOOT, 1, Command.INTERVAL, (5000).to_bytes(4, "little"))
    assert encode_frame(body) == example("command-frame")
    orders = Orders()
    (heard_body,) = node_frames.FrameReader().feed(example("command-frame"))
    assert Commands(BOOT, orders).receive(heard_body) == example("answer-frame")
    assert orders.reports == [("set_interval", 5000)]
    (answer,) = FrameDecoder(Counters().add).feed(example("answer-frame"))
    assert decode_frame(answer) == Answer(AnswerStatus.DONE, BOOT, 1, 1)


def test_commands_and_statuses_have_the_same_numbers_at_both_ends() -> None:
    ours = [Command.READ, Command.INTERVAL, Command.CLOCK, Command.IDENTIFY, Command.RESTART]
    ours.append(Command.INSTALL)
    theirs = ("_READ_NOW", "_SET_INTERVAL", "_SET_CLOCK", "_IDENTIFY", "_RESTART", "_INSTALL")
    assert ours == [getattr(commands, name) for name in theirs]
    statuses = ("_DONE", "NOT_ALLOWED", "_NOT_KNOWN", "_OUT_OF_DATE")
    ends = [getattr(commands, name) for name in statuses]
    of_programs = (programs._NOT_VERIFIED, programs._NOT_NEWER, programs._NO_SPACE)
    assert list(AnswerStatus) == [*ends, *of_programs]
    limits = [loop._INTERVAL_MIN_MS / 1000, loop._INTERVAL_MAX_MS / 1000, loop._IDENTIFY_MAX]
    assert limits == [node_order.INTERVAL_MIN, node_order.INTERVAL_MAX, node_order.IDENTIFY_MAX]
    assert [commands._COMMAND, commands._ANSWER] == [frame_body.COMMAND, frame_body.ANSWER]


def test_quantities_and_units_have_one_table() -> None:
    assert table("Quantities") == quantities.QUANTITIES
    assert table("Quantities") == dict(enumerate(node_quantities.QUANTITIES.split(), start=1))
    assert table("Units") == quantities.UNITS
    assert table("Units") == dict(enumerate(node_quantities.UNITS.split(), start=1))
    assert quantities.NAMED == node_quantities.NAMED
    assert quantities.NO_UNIT == node_quantities.NO_UNIT


def test_every_number_means_the_same_at_both_ends() -> None:
    for quantity in quantities.QUANTITIES.values():
        for unit in (None, *quantities.UNITS.values()):
            wire = node_frames.encode_readings(
                "n1", 1, 1, 0, 0, 0, None, [node_frames.encode_reading(quantity, True, unit)]
            )
            assert decoded(wire).readings == (FrameReading(quantity, True, unit),)


def test_the_bounds_are_one() -> None:
    assert node_frames._BODY_MAX == serial_frames.BODY_MAX
    assert node_frames._NODE_MAX == node_frames._QUANTITY_MAX == reading.NAME_MAX
    assert node_frames._UNIT_MAX == reading.UNIT_MAX
    assert node_frames._TEXT_MAX == frame_body.TEXT_MAX
    assert node_frames._EXPONENT_MAX == frame_body.EXPONENT_MAX
    assert node_cobs.DATA_MAX == serial_frames.DATA_MAX
    assert (node_frames._STORED, node_frames.REFUSED) == (Status.STORED, Status.REFUSED)


def test_the_gateway_remembers_all_that_a_node_may_send_again() -> None:
    assert node_buffer.WINDOW <= WINDOW


Value = bool | int | float | str | tuple[int, int]
WHOLE = st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-9, 9))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.booleans() | WHOLE | DECIMALS | st.floats(allow_nan=False) | TEXTS
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
QUANTITIES = NAMES.filter(lambda name: "/" not in name)  # behind it comes an instance
READINGS = st.tuples(QUANTITIES, VALUES, st.none() | NAMES)
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)


def as_number(value: Value) -> bool | float | str:
    return float(f"{value[0]}e{value[1]}") if isinstance(value, tuple) else value


@given(NAMES, U32, st.integers(1, 2**32 - 1), U64, U32, U32, st.none() | U64, READINGS)
def test_whatever_a_node_encodes_the_gateway_decodes(
    node: str,
    boot: int,
    sequence: int,
    clock: int,
    age: int,
    dropped: int,
    wall: int | None,
    sample: tuple[str, Value, str | None],
) -> None:
    encoded = [node_frames.encode_reading(*sample)]
    wire = node_frames.encode_readings(node, boot, sequence, clock, age, dropped, wall, encoded)
    frame = decoded(wire)
    assert (frame.node, frame.boot, frame.sequence) == (node, boot, sequence)
    assert (frame.clock, frame.age, frame.dropped, frame.wall) == (clock, age, dropped, wall)
    (found,) = frame.readings
    assert (found.quantity, found.unit) == (sample[0], sample[2])
    assert found.value == as_number(sample[1])


@given(st.sampled_from(Status), U32, U32)
def test_whatever_the_gateway_answers_the_node_reads(
    status: Status, boot: int, sequence: int
) -> None:
    answer = encode_frame(encode_acknowledgement(status, boot, sequence))
    assert len(answer) == 18
    assert heard(answer) == [(boot, sequence, status)]


@given(st.binary(max_size=serial_frames.DATA_MAX))
def test_both_stuff_alike(data: bytes) -> None:
    assert serial_frames.stuff(data) == node_cobs.encode(data)
    assert (
        node_cobs.decode(serial_frames.stuff(data))
        == serial_frames.unstuff(node_cobs.encode(data))
        == data
    )
