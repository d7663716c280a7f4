"""Frames to messages: once each, acknowledged after the commit, never half forgotten."""

from collections.abc import Callable

import pytest
from node.buffer import WINDOW
from node.frames import encode_reading

from gateway.bridges.serial.frame_intake import (
    GROUP_MAX,
    NODES_MAX,
    PARTLY_MAX,
    STARTS_MAX,
    WAITING_MAX,
    FrameIntake,
    NodeStarts,
)
from gateway.bridges.serial.frame_intake import NODES_MAX as NAMES_MAX
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.bridges.serial.intake.node_frames import BOOT, HUMIDITY, TEMPERATURE, frame, statuses
from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Broker, Disk, Gateway, MemoryFrames
from tests.support.table import table


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
    assert statuses(answers) == [(1, 0)]  # for both
    intake.feed(frame(age=2000))
    disk.commit()
    assert statuses(answers) == [(1, 0), (1, 0)]


@table(
    "within",
    [
        ({}, 0.0),
        ({"sensors/n1/temperature": 5.0, "sensors/n1/humidity": 60.0}, 5.0),
        ({"sensors/n1/temperature": 60.0}, 0.0),
        ({"sensors/n1/temperature": None, "sensors/n1/humidity": 60.0}, 60.0),
        ({"sensors/n1/temperature": None, "sensors/n1/humidity": None}, None),
    ],
)
def test_a_frame_has_the_shortest_class_of_its_readings(
    within: tuple[dict[str, float | None], float | None],
) -> None:
    gateway = Gateway.make()
    gateway.broker.commit_within, expected = within
    intake = FrameIntake(gateway.host("serial", "ttyUSB0"), lambda _: None)
    intake.feed(frame(1, TEMPERATURE, HUMIDITY))
    assert isinstance(gateway.frames, MemoryFrames)
    assert gateway.frames.within == [expected]


def test_a_frame_is_committed_at_once_when_its_node_waits_for_an_answer(
    intake: FrameIntake, broker: Broker, frames: MemoryFrames, disk: Disk, answers: list[bytes]
) -> None:
    disk.waits = True
    broker.commit_within = dict.fromkeys(("sensors/n1/temperature", "sensors/n2/temperature"), 60.0)
    assert GROUP_MAX == WINDOW  # the frames that a node sends without an answer
    intake.feed(b"".join(map(frame, range(1, GROUP_MAX))) + frame(1, node="n2"))
    assert set(frames.within) == {60.0}
    intake.feed(frame(GROUP_MAX))
    assert frames.within[-1] == 0.0
    disk.commit()
    assert len(answers) == GROUP_MAX + 1
    intake.feed(frame(GROUP_MAX + 1))
    assert frames.within[-1] == 60.0


def test_no_more_frames_of_a_port_wait_than_the_bound(
    intake: FrameIntake, broker: Broker, frames: MemoryFrames, disk: Disk
) -> None:
    disk.waits = True
    nodes = [f"n{number}" for number in range(WAITING_MAX)]
    broker.commit_within = {f"sensors/{node}/temperature": 60.0 for node in nodes}
    for node in nodes:
        intake.feed(frame(node=node))
    assert frames.within == [60.0] * (WAITING_MAX - 1) + [0.0]


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
    reported: list[tuple[str, int]] = []
    intake._on_node = lambda node, boot: reported.append((node, boot))
    intake.feed(frame(1, boot=9, dropped=2))
    suppressed = encode_reading("suppressed", 40)
    for _ in range(2):
        intake.feed(frame(50, TEMPERATURE, suppressed, dropped=7, earlier=True))
    assert reported == [("n1", 9)]
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


def test_several_of_one_quantity_have_their_instances(intake: FrameIntake, broker: Broker) -> None:
    named = encode_reading("temperature/28ff64", (215, -1), "°C")
    unknown = encode_reading("door count/left wing", 3)
    intake.feed(frame(1, TEMPERATURE, named, unknown))
    assert [topic for topic, _ in broker.readings] == [
        "sensors/n1/temperature",
        "sensors/n1/temperature/28ff64",
        "sensors/n1/door count/left wing",
    ]


def test_two_nodes_of_one_name_on_a_line_are_apart(
    intake: FrameIntake, broker: Broker, clock: ManualClock
) -> None:
    other = BOOT + 1
    apart = f"sensors/n1/temperature/{other:08x}"
    plain = "sensors/n1/temperature"
    for sequence in (1, 2, 3):
        for boot in (BOOT, other):
            intake.feed(frame(sequence, TEMPERATURE, boot=boot))
            clock.step(1)
    topics = [topic for topic, _ in broker.readings]
    assert topics == [plain, plain, plain, apart, plain, apart], "the second start might be one"
    clock.step(61)
    intake.feed(frame(4, TEMPERATURE, boot=other))
    intake.feed(frame(1, TEMPERATURE, boot=other + 1))
    assert [topic for topic, _ in broker.readings][-2:] == [plain, plain], "a start after another"


def test_starts_that_are_told_apart_are_bounded() -> None:
    starts = NodeStarts()
    for boot in range(100):
        starts.instance("n1", boot, 0.0)
        starts.instance(f"m{boot}", 1, 0.0)
    assert starts.instance("n1", 99, 1.0) == ""
    assert starts.instance("n1", 90, 1.0) == f"{90:08x}"
    assert starts.instance("another", 1, 1.0) == ""
    assert len(starts._nodes) == NAMES_MAX
    assert len(starts._nodes["n1"].received_at_of) == STARTS_MAX
