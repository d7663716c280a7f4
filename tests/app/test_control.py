import logging

import pytest

from gateway.app.control import Control
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def control(done: list[str]) -> Control:
    control = Control()
    control.know("uplink", "pause", lambda: done.append("pause"))
    control.know("uplink", "resume", lambda: done.append("resume"))
    return control


def ask(control: Control, part: str, payload: bytes) -> ReasonCode:
    topic = f"$CONTROL/tidegate/{part}"
    return control.receive(Message(topic, payload, client_id="c"), list(control.topic_filters))


def test_a_command_is_carried_out(control: Control, done: list[str]) -> None:
    assert ask(control, "uplink", b"pause") == ReasonCode.SUCCESS
    assert ask(control, "uplink", b"resume") == ReasonCode.SUCCESS
    assert done == ["pause", "resume"]


@pytest.mark.parametrize(
    ("part", "payload"),
    [("uplink", b"Pause"), ("uplink", b""), ("uplink", b"\xff"), ("up", b"pause"), ("", b"pause")],
)
def test_an_unknown_command_is_refused_and_told_what_there_is(
    control: Control, done: list[str], caplog: pytest.LogCaptureFixture, part: str, payload: bytes
) -> None:
    assert ask(control, part, payload) == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert not done
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.endswith("there are: uplink pause, uplink resume")


def test_without_any_command_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    assert ask(Control(), "uplink", b"pause") == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert caplog.messages[0].endswith("there are: none")


def test_a_part_may_answer_for_itself_whatever_the_payload_says(control: Control) -> None:
    asked: list[bytes] = []

    def answer(message: Message) -> ReasonCode:
        asked.append(message.payload)
        return ReasonCode.QUOTA_EXCEEDED

    control.answer("recall", answer)
    assert ask(control, "recall", b"\xff") == ReasonCode.QUOTA_EXCEEDED
    assert asked == [b"\xff"]


def test_what_is_below_a_part_goes_to_whoever_answers_there(control: Control) -> None:
    asked: list[tuple[str, bytes]] = []

    def answer(rest: str, message: Message) -> ReasonCode:
        asked.append((rest, message.payload))
        return ReasonCode.SUCCESS

    control.answer_below("channel", answer)
    assert ask(control, "channel/jobs/pause", b"x") == ReasonCode.SUCCESS
    assert asked == [("jobs/pause", b"x")]
    assert ask(control, "channel", b"x") == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
