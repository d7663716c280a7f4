"""A session as a file: all that the gateway sent, for a later replay."""

import base64
import json
import time
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from tui.inbox import Arrival, Inbox
from tui.link import Acknowledged, Answered, Link, LinkEvent, Phase, Subscribed

MOST_BYTES = 64 * 1024 * 1024
"""bytes of a recording; what comes later is not in it"""
LONGEST_LINE = 512 * 1024


class RecordError(ValueError):
    """A recording that cannot be used; its text is one line for the person who named it."""


class Recorder:
    """Writes a line for each message and each answer, with its time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._written = 0

    def message(self, arrival: Arrival) -> None:
        """Write a message."""
        payload = base64.b64encode(arrival.payload).decode()
        passed = [arrival.where] if arrival.where else []
        self._write([arrival.at, "message", arrival.topic, payload, arrival.retained, *passed])

    def event(self, event: LinkEvent, at: float) -> None:
        """Write an event of the connection."""
        match event:
            case Link(phase, attempt, reason, retry_at):
                self._write([at, "link", phase.value, attempt, reason, retry_at])
            case Subscribed(topic_filter, refusal):
                self._write([at, "subscribed", topic_filter, refusal])
            case Answered(key, payload):
                self._write([at, "answer", key, base64.b64encode(payload).decode()])
            case Acknowledged():
                pass  # it belongs to a question of this session

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, fields: list[object]) -> None:
        line = json.dumps(fields, ensure_ascii=False) + "\n"
        self._written += len(line)
        if self._written <= MOST_BYTES:
            self._file.write(line)


class Replay:
    """Stands for a gateway's client, and tells what a recording holds, in its time."""

    client_id = ""

    is_local = False
    """whether its gateway is on this machine"""

    def __init__(self, file: Path) -> None:
        self.inbox = Inbox()
        self.events: SimpleQueue[LinkEvent] = SimpleQueue()
        self.received_at = 0.0
        self._name = file.name
        self._lines = _read(file)
        self._at = 0
        self._begin = float(str(self._lines[0][0]))
        # Not the last line's time: a message has that of its coming, which is before that of the
        # answers that were taken ahead of it.
        self._end = max(float(str(each[0])) for each in self._lines)
        self._answers: dict[str, bytes] = {}
        for _, kind, *rest in self._lines:
            if kind == "answer":  # until a later one comes, a query has its first answer
                self._answers.setdefault(str(rest[0]), base64.b64decode(str(rest[1])))
        self._started = time.monotonic()
        self.elapsed: float | None = None
        """the seconds since the beginning, if they do not go by themselves"""

    def __str__(self) -> str:
        """Return the recording's name."""
        return f"recording {self._name}"

    def clock(self) -> float:
        """Return the time that the recording has reached; replay what was received until then."""
        elapsed = time.monotonic() - self._started if self.elapsed is None else self.elapsed
        now = min(self._end, self._begin + elapsed)
        while self._at < len(self._lines) and float(str(self._lines[self._at][0])) <= now:
            self._give(self._lines[self._at])
            self._at += 1
        self.received_at = now
        return now

    def start(self) -> None:
        """Begin."""
        self._started = time.monotonic()

    def stop(self) -> None:
        """End."""

    def retry_now(self, _password: str | None = None) -> None:
        """Do nothing: there is no gateway."""

    def subscribe_to_answers(self) -> None:
        """Do nothing: answers are in the recording."""

    def subscribe(self, _topic_filters: Sequence[str], _every: int = 0, _where: str = "") -> None:
        """Do nothing: messages are in the recording."""

    def unsubscribe(self, _topic_filters: Sequence[str]) -> None:
        """Do nothing."""

    def options(self) -> tuple[list[str], dict[str, str]]:
        """Return what a command needs to ask the same gateway: nothing."""
        return [], {}

    def ask(self, key: str, query: str, _request: bytes) -> None:
        """Answer with what the recording has for this query, or for another request of it."""
        found = self._answers.get(key) or next(
            (answer for each, answer in self._answers.items() if each.startswith(f"{query} ")),
            b'{"error":"the recording has no answer to this"}',
        )
        self.events.put(Answered(key, found))

    def order(self, key: str, _part: str, _word: str) -> None:
        """Refuse: there is no gateway."""
        self.events.put(Acknowledged(key, "this is a recording"))

    def publish(self, key: str, _topic: str, _payload: bytes) -> None:
        """Refuse: there is no gateway."""
        self.events.put(Acknowledged(key, "this is a recording"))

    def _give(self, fields: list[object]) -> None:
        at, kind, *rest = fields
        match kind, rest:
            case "message", [topic, payload, retained, *passed]:
                content, where = base64.b64decode(str(payload)), "".join(map(str, passed))
                self.inbox.put(Arrival(str(topic), content, bool(retained), float(str(at)), where))
            case "link", [phase, attempt, reason, retry_at]:
                link = Link(Phase(phase), int(str(attempt)), str(reason), float(str(retry_at)))
                self.events.put(link)
            case "subscribed", [topic_filter, refusal]:
                self.events.put(Subscribed(str(topic_filter), str(refusal)))
            case "answer", [key, payload]:
                self._answers[str(key)] = base64.b64decode(str(payload))


def _read(file: Path) -> list[list[object]]:
    """Return the lines of a recording; raise RecordError for a file that is none."""
    lines: list[list[object]] = []
    try:
        with file.open(encoding="utf-8") as opened:
            while text := opened.readline(LONGEST_LINE):
                fields = json.loads(text)
                lines.append([float(fields[0]), str(fields[1]), *fields[2:]])
    except OSError as problem:
        raise RecordError(f"recording {str(file)!r}: {problem.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise RecordError(
            f"recording {str(file)!r}: line {len(lines) + 1} is no line of one"
        ) from None
    if not lines:
        raise RecordError(f"recording {str(file)!r}: it is empty")
    return lines
