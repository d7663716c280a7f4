"""Reads the vectors of frames from standard input and prints the names of those that differ."""

import json
import sys
from binascii import hexlify, unhexlify

from node import frames
from node.commands import Commands

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any


class Orders:
    """Notes what the node was told; refuses an interval below 100 ms and identifying."""

    def __init__(self) -> None:
        self.reported: list[list[object]] = []

    def read_now(self) -> None:
        self.reported.append(["read"])

    def set_interval(self, milliseconds: int) -> None:
        if milliseconds < 100:
            raise ValueError
        self.reported.append(["interval", milliseconds])

    def set_clock(self, milliseconds: int) -> None:
        self.reported.append(["clock", milliseconds])

    def identify(self, _seconds: int) -> None:
        raise ValueError

    def restart(self) -> None:
        self.reported.append(["restart"])

    def install(self, argument: bytes) -> int:
        self.reported.append(["install", show(argument)])
        return 0


def show(data: "bytes | None") -> str:
    return hexlify(data or b"").decode()


def heard(wire: str) -> "list[bytes]":
    return frames.FrameReader().feed(unhexlify(wire))


def readings(vector: "dict[str, Any]") -> bool:
    encoded = []
    for quantity, value, unit, _ in vector["readings"]:
        sent = tuple(value) if isinstance(value, list) else value
        encoded.append(frames.encode_reading(quantity, sent, unit))
    wire = frames.encode_readings(
        vector["node"], vector["boot"], vector["sequence"], vector["clock"], vector["age"],
        vector["dropped"], vector["wall"], encoded, vector.get("earlier", False),
    )  # fmt: skip
    return bool(show(wire) == vector["wire"])


def acknowledgement(vector: "dict[str, Any]") -> bool:
    (body,) = heard(vector["wire"])
    fields = (vector["boot"], vector["sequence"], vector["status"])
    return frames.decode_acknowledgement(body) == fields


def command(vector: "dict[str, Any]") -> bool:
    orders = Orders()
    (body,) = heard(vector["wire"])
    answer = Commands(vector["boot"], orders).receive(body)
    return bool(show(answer) == vector["answer"] and orders.reported == vector["told"])


def noise(vector: "dict[str, Any]") -> bool:
    return heard(vector["wire"]) == []


KINDS = {
    "readings": readings,
    "acknowledgement": acknowledgement,
    "command": command,
    "noise": noise,
}

vectors = json.load(sys.stdin)
print(len(vectors), [each["name"] for each in vectors if not KINDS[each["kind"]](each)])
