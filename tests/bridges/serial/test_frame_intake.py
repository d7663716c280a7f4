"""Frames to messages: once each, acknowledged after the commit, never half forgotten."""

import logging
from collections.abc import Callable

import pytest
from node.frames import encode_reading, encode_readings

from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.serial.cobs import unstuff
from gateway.bridges.serial.frame_intake import PARTLY_MAX, FrameIntake
from gateway.bridges.serial.node_figures import NODES_MAX
from gateway.bridges.serial.serial_frames import encode_frame
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from tests.support.bridges import Broker, Disk, MemoryFrames
from tests.support.clocks import NOW, ManualClock

TEMPERATURE = encode_reading("temperature", (215, -1), "°C")
HUMIDITY = encode_reading("humidity", 48, "%")
BOOT = 7


def frame(
    sequence: int = 1,
    *readings: bytes,
    node: str = "n1",
    boot: int = BOOT,
    age: int = 0,
    dropped: int = 0,
    wall: int | None = None,
    earlier: bool = False,
) -> bytes:
    return encode_readings(
        node, boot, sequence, 1500, age, dropped, wall, list(readings or (TEMPERATURE,)), earlier
    )


@pytest.fixture
def answers() -> list[bytes]:
    return []


@pytest.fixture
def make(
    broker: Broker,
    disk: Disk,
    frames: MemoryFrames,
    counters: Counters,
    clock: ManualClock,
    answers: list[bytes],
) -> Callable[..., FrameIntake]:
    def make(publish: Callable[[Message], ReasonCode] = broker.publish) -> FrameIntake:
        return FrameIntake(
            "ttyUSB0",
            ReadingPublisher("serial:ttyUSB0", publish=publish, counters=counters, clock=clock),
            answers.append,
            when_on_disk=disk.when_on_disk,
            frames=frames,
            counters=counters,
            clock=clock,
        )

    return make


@pytest.fixture
def intake(make: Callable[[], FrameIntake]) -> FrameIntake:
    return make()


def statuses(answers: list[bytes]) -> list[tuple[int, int]]:
    """Return (sequence number, status) of each answer."""
    bodies = [unstuff(answer[1:-1])[:-4] for answer in answers]
    return [(int.from_bytes(body[7:11], "little"), body[2]) for body in bodies]


def test_a_frame_becomes_a_message_for_each_reading(
    intake: FrameIntake, broker: Broker, counters: Counters, clock: ManualClock
) -> None:
    intake.feed(frame(1, TEMPERATURE, HUMIDITY))
    assert broker.readings == [
        ("sensors/n1/temperature", {"value": 21.5, "unit": "°C", "time": NOW}),
        ("sensors/n1/humidity", {"value": 48, "unit": "%", "time": NOW}),
    ]
    message = broker.messages[0]
    assert (message.client_id, message.received_at) == ("serial:ttyUSB0", NOW)
    assert message.arrived == clock.monotonic()
    assert counters.count("tidegate/serial/frames") == 1
    assert counters.count("tidegate/serial/readings") == 2


@pytest.mark.parametrize(
    ("wall", "age", "time"),
    [(None, 0, NOW), (None, 60_000, NOW - 60_000), (NOW - 7, 60_000, NOW - 7), (5, 0, NOW)],
)
def test_the_time_is_that_of_the_sampling(
    wall: int | None, age: int, time: int, intake: FrameIntake, broker: Broker
) -> None:
    intake.feed(frame(age=age, wall=wall))
    assert broker.readings[0][1]["time"] == time


def test_the_acknowledgement_waits_for_the_commit(
    intake: FrameIntake, disk: Disk, answers: list[bytes]
) -> None:
    disk.waits = True
    intake.feed(frame(1) + frame(2))
    assert answers == []
    disk.commit()
    assert statuses(answers) == [(1, 0), (2, 0)]


def test_a_repeated_frame_is_dropped_and_acknowledged_again_after_the_commit(
    intake: FrameIntake, broker: Broker, disk: Disk, counters: Counters, answers: list[bytes]
) -> None:
    disk.waits = True
    intake.feed(frame() + frame(age=1000, dropped=2))
    assert len(broker.messages) == 1
    assert counters.count("tidegate/serial/duplicates") == 1
    assert answers == []
    disk.commit()
    assert statuses(answers) == [(1, 0), (1, 0)]


def test_the_same_number_of_another_boot_or_node_is_another_frame(
    intake: FrameIntake, broker: Broker
) -> None:
    intake.feed(frame() + frame(boot=8) + frame(node="n2"))
    assert len(broker.messages) == 3


def test_what_the_broker_does_not_take_is_not_answered_and_comes_again(
    intake: FrameIntake,
    broker: Broker,
    frames: MemoryFrames,
    counters: Counters,
    answers: list[bytes],
) -> None:
    broker.code = ReasonCode.QUOTA_EXCEEDED
    intake.feed(frame())
    assert (answers, frames.remembered) == ([], [])
    broker.code = ReasonCode.NO_MATCHING_SUBSCRIBERS
    intake.feed(frame())
    assert statuses(answers) == [(1, 0)]
    assert frames.remembered == [("n1", BOOT, 1)]
    assert counters.count("tidegate/serial/duplicates") == 0


def test_readings_that_were_taken_are_not_published_twice(
    make: Callable[..., FrameIntake], broker: Broker, answers: list[bytes]
) -> None:
    def first_only(message: Message) -> ReasonCode:
        full = bool(broker.messages) and broker.code == ReasonCode.SUCCESS
        return ReasonCode.QUOTA_EXCEEDED if full else broker.publish(message)

    intake = make(first_only)
    intake.feed(frame(1, TEMPERATURE, HUMIDITY))
    assert answers == []
    broker.code = ReasonCode.NO_MATCHING_SUBSCRIBERS
    intake.feed(frame(1, TEMPERATURE, HUMIDITY))
    assert [topic for topic, _ in broker.readings] == [
        "sensors/n1/temperature",
        "sensors/n1/humidity",
    ]
    assert statuses(answers) == [(1, 0)]


def test_half_taken_frames_are_kept_within_their_bound(
    make: Callable[..., FrameIntake], broker: Broker
) -> None:
    def only_temperature(message: Message) -> ReasonCode:
        if message.topic.endswith("humidity"):
            return ReasonCode.QUOTA_EXCEEDED
        return broker.publish(message)

    intake = make(only_temperature)
    for sequence in range(1, PARTLY_MAX + 10):
        intake.feed(frame(sequence, TEMPERATURE, HUMIDITY))
    assert len(intake._partly) == PARTLY_MAX
    taken = len(broker.messages)
    intake.feed(frame(PARTLY_MAX + 9, TEMPERATURE, HUMIDITY))
    assert len(broker.messages) == taken


@pytest.mark.parametrize(
    "refused",
    [
        encode_reading("a/b", 1),
        encode_reading("a#", 1),
        encode_reading("temperature", float("nan")),
        b"\xc8\x00\x01",
    ],
)
def test_a_reading_that_can_never_be_taken_is_refused_and_the_others_are_stored(
    refused: bytes, intake: FrameIntake, broker: Broker, counters: Counters, answers: list[bytes]
) -> None:
    intake.feed(frame(1, refused, TEMPERATURE))
    assert [topic for topic, _ in broker.readings] == ["sensors/n1/temperature"]
    assert counters.count("tidegate/serial/rejected") == 1
    assert statuses(answers) == [(1, 1)]


def test_a_refused_node_name_refuses_each_reading(
    intake: FrameIntake, broker: Broker, counters: Counters, answers: list[bytes]
) -> None:
    intake.feed(frame(1, TEMPERATURE, HUMIDITY, node="n/1"))
    assert broker.messages == []
    assert counters.count("tidegate/serial/rejected") == 2
    assert statuses(answers) == [(1, 1)]


def test_a_refusal_is_counted_once_though_the_frame_came_twice(
    intake: FrameIntake, broker: Broker, counters: Counters
) -> None:
    broker.code = ReasonCode.QUOTA_EXCEEDED
    intake.feed(frame(1, encode_reading("a/b", 1), TEMPERATURE))
    broker.code = ReasonCode.SUCCESS
    intake.feed(frame(1, encode_reading("a/b", 1), TEMPERATURE))
    assert counters.count("tidegate/serial/rejected") == 1


def malformed(sequence: int) -> bytes:
    whole = unstuff(frame(sequence)[1:-1])[:-4]
    return encode_frame(whole[:-1])


def test_a_malformed_frame_is_refused_so_that_it_does_not_block_the_next(
    intake: FrameIntake, broker: Broker, counters: Counters, answers: list[bytes]
) -> None:
    intake.feed(malformed(1) + frame(2))
    assert statuses(answers) == [(1, 1), (2, 0)]
    assert len(broker.messages) == 1
    assert counters.count("tidegate/serial/rejected") == 1
    assert counters.count("tidegate/serial/frames") == 1


def test_another_version_gets_no_answer(
    intake: FrameIntake, counters: Counters, answers: list[bytes]
) -> None:
    intake.feed(encode_frame(b"\x02\x01whatever"))
    assert answers == []
    assert counters.count("tidegate/serial/rejected") == 1


def test_an_echo_of_our_own_answer_means_nothing(
    intake: FrameIntake, counters: Counters, answers: list[bytes]
) -> None:
    intake.feed(frame())
    intake.feed(answers[0])
    assert len(answers) == 1
    assert counters.count("tidegate/serial/rejected") == 0


def test_after_a_restart_of_the_port_the_half_frame_is_forgotten(
    intake: FrameIntake, broker: Broker
) -> None:
    intake.feed(frame(1)[:20])
    intake.restart()
    intake.feed(frame(2)[1:])
    assert len(broker.messages) == 1


def test_what_an_earlier_start_sampled_says_nothing_of_the_present_one(
    intake: FrameIntake, broker: Broker, counters: Counters
) -> None:
    """Its readings are published, once; the node is still in the start that was heard before."""
    told: list[tuple[str, int]] = []
    intake._on_node = lambda node, boot: told.append((node, boot))
    intake.feed(frame(1, boot=9, dropped=2))
    suppressed = encode_reading("suppressed", 40)
    for _ in range(2):
        intake.feed(frame(50, TEMPERATURE, suppressed, dropped=7, earlier=True))
    assert told == [("n1", 9)]
    assert len(broker.messages) == 3
    assert counters.count("tidegate/serial/duplicates") == 1
    assert counters.count("tidegate/serial/ttyUSB0/dropped") == 2
    assert counters.count("tidegate/serial/ttyUSB0/suppressed") == 0


def test_dropped_samples_are_shown_for_the_port(intake: FrameIntake, counters: Counters) -> None:
    intake.feed(frame(1, dropped=3) + frame(1, node="n2", dropped=4) + frame(2, dropped=5))
    assert counters.values["tidegate/serial/ttyUSB0/dropped"] == 9
    for number in range(2 * NODES_MAX):
        intake.feed(frame(1, node=f"other{number}", dropped=1))
    assert counters.values["tidegate/serial/ttyUSB0/dropped"] == 9 + NODES_MAX - 2


def test_the_first_reading_of_each_node_is_logged(
    intake: FrameIntake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    intake.feed(frame(1, TEMPERATURE, HUMIDITY) + frame(2) + frame(1, node="n2"))
    assert [record.message for record in caplog.records] == [
        "first reading: sensors/n1/temperature 21.5 °C",
        "first reading: sensors/n2/temperature 21.5 °C",
    ]


def test_each_refusal_is_logged_once(intake: FrameIntake, caplog: pytest.LogCaptureFixture) -> None:
    for sequence in range(1, 5):
        intake.feed(frame(sequence, encode_reading("a/b", 1)))
    assert [record.message for record in caplog.records] == [
        "serial:ttyUSB0: a reading was refused: quantity 'a/b': '/' is not allowed"
    ]


def test_what_filters_held_back_is_shown_for_the_port(
    intake: FrameIntake, counters: Counters
) -> None:
    heartbeats = [encode_reading("suppressed", count) for count in (3, 4, 5)]
    intake.feed(frame(1, heartbeats[0]) + frame(1, heartbeats[1], node="n2"))
    intake.feed(frame(2, heartbeats[2]) + frame(3, encode_reading("suppressed", "no number")))
    assert counters.values["tidegate/serial/ttyUSB0/suppressed"] == 9
    for number in range(NODES_MAX):
        intake.feed(frame(1, encode_reading("suppressed", 1), node=f"other{number}"))
    assert counters.values["tidegate/serial/ttyUSB0/suppressed"] == 9 + NODES_MAX - 2
