"""Parses the fleet's requests for a recall (docs/fleet.md, "Recall")."""

import json
from dataclasses import dataclass
from typing import Any

from gateway.errors import TidegateError
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter, topic_matches
from gateway.storage.history.recall import EVER, Window
from gateway.storage.history.row import HistoryRow
from gateway.where.compile import Where, compile_where
from gateway.where.language.errors import WhereError

MAX_REQUEST_BYTES = 16 * 1024
"""Bytes of a request; an expression may have some thousand."""

KEYS = ("id", "stream", "epoch", "from", "to", "first", "last", "topic", "where")


class RecallError(TidegateError):
    """The request cannot be carried out; the text says why."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A window of the history, and which messages of it; `id` is the asker's own name for it."""

    stream: str
    window: Window
    first: int = 1
    last: int = EVER
    topic: str | None = None
    where: Where | None = None
    id: str | None = None

    def number_of(self, row: HistoryRow) -> int | None:
        """Return the number under which the message goes up again, None if it does not."""
        number = next((each.number for each in row.numbers if each.stream == self.stream), None)
        if number is None or not self.first <= number <= self.last:
            return None
        if self.topic is not None and not topic_matches(self.topic, row.message.topic):
            return None
        if self.where is not None and not self.where.passes(row.message):
            return None
        return number


def parse_request(payload: bytes) -> RecallRequest:
    """Return the request in a payload; raise RecallError."""
    if len(payload) > MAX_REQUEST_BYTES:
        raise RecallError(f"{len(payload)} bytes; a request has at most {MAX_REQUEST_BYTES}")
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise RecallError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise RecallError("a request is a JSON object")
    for key in document:
        if key not in KEYS:
            raise RecallError(f"unknown key {key!r:.40}; there are {', '.join(KEYS)}")
    return _request(document)


def _request(document: dict[str, Any]) -> RecallRequest:
    epoch = _text(document, "epoch")
    if ("first" in document or "last" in document) and epoch is None:
        raise RecallError("first and last are numbers of one epoch, which must be given")
    window = Window(_number(document, "from", 0), _number(document, "to", EVER), epoch)
    return RecallRequest(
        stream=_text(document, "stream") or "main",
        window=window,
        first=_number(document, "first", 1),
        last=_number(document, "last", EVER),
        topic=_topic(document),
        where=_where(document),
        id=_text(document, "id"),
    )


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and (not isinstance(value, str) or len(value) > MAX_REQUEST_BYTES):
        raise RecallError(f"{key} is a text")
    return value


def _number(document: dict[str, Any], key: str, default: int) -> int:
    value = document.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= EVER:
        raise RecallError(f"{key} is a whole number from 0")
    return value


def _topic(document: dict[str, Any]) -> str | None:
    topic = _text(document, "topic")
    if topic is not None:
        try:
            check_topic_filter(topic)
        except MqttError as error:
            raise RecallError(f"topic {topic!r:.80}: {error.reason}") from error
    return topic


def _where(document: dict[str, Any]) -> Where | None:
    text = _text(document, "where")
    if text is None:
        return None
    try:
        return compile_where(text)
    except WhereError as error:
        raise RecallError(f"where: position {error.position}: {error.message}") from error
