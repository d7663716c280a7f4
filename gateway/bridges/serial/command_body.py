"""The two bodies of a command: what the gateway orders, and what the node answers.

docs/serial-protocol.md, sections "Body: command" and "Body: answer".
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from gateway.bridges.serial.frame_body import ANSWER, COMMAND, VERSION, MalformedFrameError

_COMMAND = struct.Struct("<BBIIB")
_ANSWER = struct.Struct("<BBBIII")


class Command(IntEnum):
    """What a node can be told to do."""

    READ = 1
    INTERVAL = 2
    CLOCK = 3
    IDENTIFY = 4
    RESTART = 5
    INSTALL = 6


class AnswerStatus(IntEnum):
    """What a node says of a command."""

    DONE = 0
    NOT_ALLOWED = 1
    NOT_KNOWN = 2
    OUT_OF_DATE = 3
    NOT_VERIFIED = 4
    NOT_NEWER = 5
    NO_ROOM = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the command `number` of the start `boot`; `last` is the highest answered."""

    status: AnswerStatus
    boot: int
    number: int
    last: int


def encode_command(boot: int, number: int, command: Command, argument: bytes = b"") -> bytes:
    """Return the body of a command."""
    return _COMMAND.pack(VERSION, COMMAND, boot, number, command) + argument


def decode_answer(body: bytes) -> Answer | None:
    """Return the answer in `body`, None for any other frame; raise MalformedFrameError."""
    if body[:2] != bytes((VERSION, ANSWER)):
        return None
    try:
        _, _, status, boot, number, last = _ANSWER.unpack(body)
        return Answer(AnswerStatus(status), boot, number, last)
    except (struct.error, ValueError) as failure:
        raise MalformedFrameError(f"answer to a command: {failure}") from None
