"""What the log and the figures of a port say of its nodes."""

import logging

import pytest
from node.frames import encode_reading

from gateway.bridges.serial.frame_intake import NODES_MAX, FrameIntake
from gateway.counters import Counters
from tests.bridges.serial.intake.node_frames import HUMIDITY, TEMPERATURE, frame


def test_the_first_reading_of_each_node_is_logged(
    intake: FrameIntake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    intake.feed(frame(1, TEMPERATURE, HUMIDITY) + frame(2) + frame(1, node="n2"))
    assert [record.message for record in caplog.records] == [
        "first reading: sensors/n1/temperature 21.5 °C",
        "first reading: sensors/n2/temperature 21.5 °C",
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
