"""One file of frames, tests/vectors/serial-frames.json, read and written by both ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.bridges.serial.frame_body import (
    Answer,
    Command,
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
    encode_command,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.counters import Counters
from tests.support.nodes import micropython
from tests.support.nodes.micropython import FIRMWARE

FILE = Path(__file__).parents[1] / "vectors" / "serial-frames.json"
SCRIPT = Path(__file__).parents[1] / "firmware" / "scripts" / "frame_vectors.py"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def of(kind: str) -> list[dict[str, Any]]:
    found = [each for each in VECTORS if each["kind"] == kind]
    assert found
    return found


def bodies(wire: str) -> list[bytes]:
    return FrameDecoder(Counters().add).feed(bytes.fromhex(wire))


def test_the_gateway_reads_the_readings() -> None:
    for vector in of("readings"):
        (body,) = bodies(vector["wire"])
        frame = decode_frame(body)
        assert isinstance(frame, ReadingsFrame)
        for field in ("node", "boot", "sequence", "clock", "age", "dropped", "wall"):
            assert getattr(frame, field) == vector[field], vector["name"]
        assert frame.earlier == vector.get("earlier", False), vector["name"]
        expected = [(name, value, unit) for name, _, unit, value in vector["readings"]]
        assert [(each.quantity, each.value, each.unit) for each in frame.readings] == expected


def test_the_gateway_writes_the_acknowledgements() -> None:
    for vector in of("acknowledgement"):
        body = encode_acknowledgement(Status(vector["status"]), vector["boot"], vector["sequence"])
        assert encode_frame(body).hex() == vector["wire"], vector["name"]


def test_the_gateway_writes_the_commands_and_reads_their_answers() -> None:
    for vector in of("command"):
        argument = bytes.fromhex(vector["argument"])
        kind = Command[vector["command"].upper()]
        body = encode_command(vector["boot"], vector["number"], kind, argument)
        assert encode_frame(body).hex() == vector["wire"], vector["name"]
        (answered,) = bodies(vector["answer"])
        answer = decode_frame(answered)
        assert isinstance(answer, Answer)
        fields = (answer.boot, answer.number, answer.status.name.lower())
        assert fields == (vector["boot"], vector["number"], vector["status"])


def test_the_gateway_takes_no_noise() -> None:
    for vector in of("noise"):
        assert bodies(vector["wire"]) == [], vector["name"]


def test_every_command_has_a_vector() -> None:
    assert {each["command"].upper() for each in of("command")} == set(Command.__members__)


def test_the_node_reads_and_writes_them_under_cpython() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={"PYTHONPATH": str(FIRMWARE), "PYTHONDONTWRITEBYTECODE": "1"},
        input=FILE.read_text(encoding="utf-8"),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    assert done.stdout == f"{len(VECTORS)} []\n"


@pytest.mark.micropython
def test_the_node_reads_and_writes_them_under_micropython() -> None:
    interpreter = micropython.find()
    assert interpreter is not None
    reported = micropython.run(interpreter, SCRIPT, heard=FILE.read_text(encoding="utf-8"))
    assert reported == f"{len(VECTORS)} []\n"
