"""A node on a line in memory: what it sends, when, and what it does with answers."""

import struct
from pathlib import Path

import pytest
from node import frames
from node.buffer import RESEND_MS, WINDOW
from node.light import FAILING, HEARD, IDENTIFYING, SAFE, UNHEARD, is_lit
from node.loop import _HEARTBEAT_MS, _UNHEARD_MS, Node
from node.ring import SIZE_MIN
from node.starts import _FAILED_MAX, Starts

from gateway.bridges.serial.frame_body import ReadingsFrame, decode_frame

BOOT = 0x0A1B2C3D


class Line:
    """Keeps what the node sends, and hands it what the test wants it to hear."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.heard: list[bytes] = []

    def read(self) -> bytes | None:
        return self.heard.pop(0) if self.heard else None

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def answer(self, sequence: int, status: int = 0, boot: int = BOOT) -> None:
        self.heard.append(frames.frame(struct.pack("<BBBII", 1, 2, status, boot, sequence)))

    def take(self) -> list[ReadingsFrame]:
        """Return the frames sent since the last time."""
        sent, self.sent = self.sent, []
        bodies = [frames.unframe(wire[1:-1]) for wire in sent]
        readings = [body for body in bodies if body is not None and body[1] == frames._READINGS]
        decoded = [decode_frame(body) for body in readings]
        return [frame for frame in decoded if isinstance(frame, ReadingsFrame)]


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def ms(self) -> int:
        return self.now


class Sensor:
    """Gives what the test says; fails while that is an OSError."""

    def __init__(self) -> None:
        self.readings: list[tuple[str, int | str, str | None]] | OSError = [("count", 7, None)]

    def read(self) -> list[tuple[str, int | str, str | None]]:
        if isinstance(self.readings, OSError):
            raise self.readings
        return self.readings


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sensor() -> Sensor:
    return Sensor()


@pytest.fixture
def node(line: Line, sensor: Sensor, clock: Clock) -> Node:
    return Node("n1", BOOT, line, sensor, clock, 5000)


def test_the_first_sample_is_sent_at_once(node: Node, line: Line) -> None:
    assert node.step() == RESEND_MS
    (frame,) = line.take()
    assert (frame.node, frame.boot, frame.sequence, frame.clock, frame.age) == ("n1", BOOT, 1, 0, 0)
    assert (frame.wall, frame.dropped, frame.readings[0].value) == (None, 0, 7)


def test_samples_are_an_interval_apart(node: Node, line: Line, clock: Clock) -> None:
    node.step()
    line.answer(1)
    assert node.step() == 5000
    clock.now = 4999
    assert node.step() == 1
    clock.now = 5000
    node.step()
    assert [frame.clock for frame in line.take()] == [0, 5000]


def test_a_frame_is_sent_again_with_its_age_until_it_is_acknowledged(
    node: Node, line: Line, clock: Clock
) -> None:
    for clock.now in (0, RESEND_MS, 2 * RESEND_MS):
        node.step()
    assert [(frame.sequence, frame.clock, frame.age) for frame in line.take()] == [
        (1, 0, 0),
        (1, 0, RESEND_MS),
        (1, 0, 2 * RESEND_MS),
    ]
    line.answer(1)
    clock.now = 3 * RESEND_MS
    node.step()
    assert line.take() == []


def test_an_answer_to_another_boot_means_nothing(node: Node, line: Line, clock: Clock) -> None:
    node.step()
    line.answer(1, boot=BOOT + 1)
    clock.now = RESEND_MS
    node.step()
    assert [frame.sequence for frame in line.take()] == [1, 1]


def test_a_refused_frame_is_forgotten_and_counted(node: Node, line: Line, clock: Clock) -> None:
    node.step()
    line.answer(1, status=1)
    clock.now = RESEND_MS
    node.step()
    assert len(line.take()) == 1
    assert node.buffer.refused == 1


def test_what_was_dropped_travels_in_the_next_frame(
    line: Line, sensor: Sensor, clock: Clock
) -> None:
    node = Node("n1", BOOT, line, sensor, clock, 5000, waiting_bytes=SIZE_MIN)
    while node.buffer.dropped < 3:
        node.step()
        clock.now += 5000
    node.step()
    dropped = node.buffer.dropped
    assert line.take()[-1].dropped == dropped
    line.answer(1)
    node.step()
    frame = line.take()[-1]
    assert (frame.sequence, frame.dropped) == (WINDOW + 1, dropped)
    assert frame.clock == (WINDOW + dropped) * 5000, "the oldest that were not yet sent went"


def test_wall_time_is_that_of_the_sample(line: Line, sensor: Sensor, clock: Clock) -> None:
    node = Node("n1", BOOT, line, sensor, clock, wall=lambda: 1_763_740_000_000 + clock.now)
    node.step()
    clock.now = RESEND_MS
    node.step()
    assert {frame.wall for frame in line.take() if frame.sequence == 1} == {1_763_740_000_000}


def test_a_sensor_that_does_not_answer_is_asked_again(
    node: Node, line: Line, sensor: Sensor, clock: Clock
) -> None:
    working, sensor.readings = sensor.readings, OSError(5)
    node.step()
    (heartbeat,) = line.take()  # by which the gateway knows it, and can command and update it
    (reading,) = heartbeat.readings
    assert (reading.quantity, reading.value) == ("sensor_failures", 1)
    assert node.sensor_failures == 1
    line.answer(1)
    sensor.readings = working
    clock.now = 5000
    node.step()
    assert len(line.take()) == 1


def test_more_readings_than_a_frame_holds_are_spread(
    node: Node, line: Line, sensor: Sensor
) -> None:
    sensor.readings = [(f"quantity{number}", "x" * 20, None) for number in range(10)]
    node.step()
    frames = line.take()
    assert len(frames) > 1
    assert [frame.sequence for frame in frames] == list(range(1, len(frames) + 1))
    assert [reading.quantity for frame in frames for reading in frame.readings] == [
        f"quantity{number}" for number in range(10)
    ]


def test_a_sensor_without_readings_sends_nothing(node: Node, line: Line, sensor: Sensor) -> None:
    sensor.readings = []
    node.step()
    assert line.take() == []


def test_after_a_long_sleep_samples_do_not_pile_up(node: Node, line: Line, clock: Clock) -> None:
    node.step()
    line.answer(1)
    clock.now = 1_000_000
    for _ in range(5):
        node.step()
        clock.now += 1
    assert len(line.take()) <= 3


def test_failed_starts_are_told_once_and_safe_mode_again_and_again(
    line: Line, sensor: Sensor, clock: Clock, tmp_path: Path
) -> None:
    sensor.readings = []
    for failed in range(_FAILED_MAX + 1):
        clock.now = 0
        starts = Starts(str(tmp_path / "starts"), clock)
        node = Node("n1", BOOT, line, sensor, clock, 5000, starts=starts)
        reported: list[ReadingsFrame] = []
        for clock.now in (0, _HEARTBEAT_MS, 2 * _HEARTBEAT_MS):
            node.step()
            line.answer(len(reported) + 1)
            reported += line.take()
        safe = failed == _FAILED_MAX
        assert len(reported) == (3 if safe else failed > 0)
        beats = [[(each.quantity, each.value) for each in frame.readings] for frame in reported]
        assert beats == [[("failed_starts", failed), ("safe_mode", safe)]] * len(reported)
    assert node.install(b"") == 1
    assert node.state == SAFE


def test_the_led_says_how_the_node_is(node: Node, line: Line, sensor: Sensor, clock: Clock) -> None:
    node.step()
    assert node.state == HEARD
    clock.now = _UNHEARD_MS - 1
    assert node.state == HEARD
    clock.now = _UNHEARD_MS
    assert node.state == UNHEARD
    sensor.readings = OSError(5)
    node.step()
    assert node.state == FAILING
    lit = [sum(is_lit(each, now) for now in range(4000)) for each in range(5)]
    assert (lit[HEARD], lit[UNHEARD], lit[FAILING]) == (50, 200, 2000)
    assert (lit[SAFE], lit[IDENTIFYING]) == (3800, 2000)
