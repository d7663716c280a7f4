"""The numbered messages of a crash test: what was promised for each, and what came of it."""

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum


class Promise(Enum):
    """What the gateway has said of a message."""

    NONE = "sent"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


@dataclass(slots=True)
class Sent:
    """One message of a sender; `number` counts them from 1, `round` is when it was first sent.

    `sent_at` is the monotonic second at which it was sent last.
    """

    sender: str
    number: int
    topic: str
    qos: int
    round: int
    removes: bool = False
    promise: Promise = Promise.NONE
    sent_at: float = field(default_factory=time.monotonic)


def payload_of(sender: str, number: int, padding: int) -> bytes:
    """Return the payload that names a message, with so many letters more."""
    return json.dumps({"sender": sender, "number": number, "padding": "x" * padding}).encode()


def name_in(payload: bytes) -> tuple[str, int]:
    """Return sender and number; raise ValueError if it is no payload of a crash test."""
    try:
        fields = json.loads(payload)
        return str(fields["sender"]), int(fields["number"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{payload[:80]!r} is none of the messages sent") from error


@dataclass(slots=True)
class Received:
    """The numbers of one sender as one receiver got them.

    `repeated` are those that came again; `disorder` pairs (number, the higher one before it) of
    those that came for the first time.
    """

    counts: Counter[int] = field(default_factory=Counter)
    repeated: list[int] = field(default_factory=list)
    disorder: list[tuple[int, int]] = field(default_factory=list)
    highest: int = 0

    def add(self, number: int) -> None:
        """Note that this number has come."""
        self.counts[number] += 1
        if self.counts[number] > 1:
            self.repeated.append(number)
        elif number < self.highest:
            self.disorder.append((number, self.highest))
        else:
            self.highest = number


def note(payload: bytes, received: defaultdict[str, Received]) -> str:
    """Note the number in `received`; return what is wrong with the payload, empty if nothing."""
    if not payload:
        return ""  # the removal of a retained message has no room for a number
    try:
        sender, number = name_in(payload)
    except ValueError as error:
        return str(error)
    received[sender].add(number)
    return ""


def ranges(numbers: list[int]) -> str:
    """Return numbers as text: `3, 7-12`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [f"{first}" if first == last else f"{first}-{last}" for first, last in spans[:10]]
    return ", ".join(shown) + (", …" if len(spans) > len(shown) else "")
