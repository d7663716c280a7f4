"""Frames that can never be taken: refused, counted and logged once, and no bar to the next."""

import pytest
from node.frames import encode_reading

from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.bridges.serial.serial_frames import encode_frame, unstuff
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from tests.bridges.serial.intake.node_frames import HUMIDITY, TEMPERATURE, frame, statuses
from tests.support.nodes.bridges import Broker


@pytest.mark.parametrize(
    "refused",
    [
        encode_reading("a+b", 1),
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
    intake.feed(frame(1, encode_reading("a+b", 1), TEMPERATURE))
    broker.code = ReasonCode.SUCCESS
    intake.feed(frame(1, encode_reading("a+b", 1), TEMPERATURE))
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


def test_each_refusal_is_logged_once(intake: FrameIntake, caplog: pytest.LogCaptureFixture) -> None:
    for sequence in range(1, 5):
        intake.feed(frame(sequence, encode_reading("a+b", 1)))
    assert [record.message for record in caplog.records] == [
        "serial:ttyUSB0: a reading was refused: quantity 'a+b': '+' is not allowed"
    ]
