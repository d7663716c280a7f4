"""Operators' requests about rejected messages: `$CONTROL/tidegate/rejected`."""

import json
import logging
import sqlite3
from typing import Any

from gateway.app.control import Control
from gateway.app.parts import Run, Storage
from gateway.app.responder import ANSWERS, Answer, Reply, RequestError, Responder
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected, RejectedRow
from gateway.storage.outbox.row import RECALL

logger = logging.getLogger(__name__)

PART = "rejected"
PAGE = 20
"""Messages read at a time, and listed in one answer."""

SHOWN_TOPIC = 256
"""Characters of a topic in a list."""

WORDS = ("list", "show", "retry", "drop")
ALL = "all"


class Request:
    """A request: a word of WORDS, the numbers (None: all) and the uplink."""

    def __init__(self, payload: bytes, names: tuple[str, ...]) -> None:
        try:
            command = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the request is no JSON: {error}") from None
        if not isinstance(command, dict) or command.get("do") not in WORDS:
            raise RequestError(f'the request has no "do" that is one of {", ".join(WORDS)}')
        self.word: str = command["do"]
        self.uplink = command.get("uplink")
        if self.uplink is not None and self.uplink not in names:
            known = ", ".join(filter(None, names)) or "none with a name"
            raise RequestError(f"there is no uplink {str(self.uplink)[:80]!r}; there are: {known}")
        numbers: Any = command.get("numbers", ALL if self.word == "list" else None)
        self.numbers: set[str] | None = None
        if numbers != ALL:
            if not _are_texts(numbers):
                what = f'neither "{ALL}" nor a list of EPOCH.STREAM.NUMBER'
                raise RequestError(f'"numbers" is {what}')
            self.numbers = set(numbers)

    def matches(self, rejected: RejectedRow) -> bool:
        """Return whether the request is for a message."""
        if self.uplink is not None and rejected.uplink != self.uplink:
            return False
        return self.numbers is None or rejected.number in self.numbers


class RejectedRequests:
    """Answers requests one at a time, each with some messages and a last answer with `done`."""

    def __init__(
        self,
        run: Run,
        storage: Storage,
        responder: Responder,
        control: Control,
        rejected: Rejected,
        outbox: Outbox,
    ) -> None:
        self._responder = responder
        self._counters = run.counters
        self._writer = storage.writer
        self._rejected = rejected
        self._outbox = outbox
        self._problem = ""
        control.answer(PART, self.receive)

    def receive(self, message: Message) -> ReasonCode:
        """Accept a request; its Response Topic must be below `$CONTROL/answers/`."""
        topic = message.response_topic or ""
        if not topic.startswith(ANSWERS):
            logger.warning("rejected: response topic %.80r is not below %s", topic, ANSWERS)
            return ReasonCode.TOPIC_NAME_INVALID
        try:
            reply = self._responder.reply_to(message)
        except MqttError as error:
            return error.reason_code
        return self._responder.accept(lambda: self._serve(message, reply))

    async def _serve(self, message: Message, answer: Reply) -> None:
        try:
            request = Request(message.payload, self._outbox.uplinks.names)
            last = await self._do(request, answer)
        except RequestError as error:
            last = {"error": str(error)}
        except sqlite3.Error as error:
            last = {"error": f"the database could not be read: {error}"}
        if "error" not in last and request.word in ("retry", "drop"):
            logger.info(
                "rejected messages: %s of %s, requested by client %.80r",
                *(request.word, last["count"], message.client_id),
            )
        answer({"done": True, **last})

    async def _do(self, request: Request, answer: Reply) -> Answer:
        """Execute the request page by page; return the last answer."""
        await self._writer.wait_for(self._writer.batch)
        after, count, self._problem = 0, 0, ""
        while not self._problem and (page := await self._rejected.read(after, PAGE)):
            after = page[-1].identifier
            found = [each for each in page if request.matches(each)]
            count += len(self._each(request.word, found, answer))
        if self._problem:
            return {"count": count, "error": self._problem}
        if request.numbers and not count:
            return {"count": 0, "error": f"none of these is stored: {', '.join(request.numbers)}"}
        await self._writer.wait_for(self._writer.batch)
        return {"count": count}

    def _each(self, word: str, found: list[RejectedRow], answer: Reply) -> list[RejectedRow]:
        """Execute it for messages of one page; return those that it was done for."""
        found = [each for each in found if self._rejected.holds(each.identifier)]
        if word == "retry":
            found = self._retry(found)
        if word in ("retry", "drop"):
            self._rejected.remove([each.identifier for each in found])
            self._outbox.end_turn()
            name = "retried" if word == "retry" else "deleted"
            self._counters.add(f"tidegate/uplink/rejected_{name}", len(found))
        elif word == "show":
            for each in found:
                answer({"rejected": [_in_full(each)]})
        elif found:
            answer({"rejected": [_in_short(each) for each in found]})
        return found

    def _retry(self, found: list[RejectedRow]) -> list[RejectedRow]:
        """Return messages to the outbox with their numbers; return those that fit.

        They are sent like messages that the fleet recalls: marked as sent before, without expiry.
        """
        done = []
        names = self._outbox.uplinks.names
        for each in found:
            row = each.row
            row.lane, row.message_expiry, row.size = RECALL, None, 0
            row.uplinks = 1 << (names.index(each.uplink) if each.uplink in names else 0)
            if not self._outbox.fits(row):
                self._problem = f"{self._outbox.refusal}: some are still rejected"
                break
            self._outbox.add(row)
            done.append(each)
        return done


def _are_texts(numbers: object) -> bool:
    if not isinstance(numbers, list) or not numbers:
        return False
    return all(isinstance(each, str) for each in numbers)


def _in_short(rejected: RejectedRow) -> Answer:
    row = rejected.row
    return {
        "number": rejected.number,
        "uplink": rejected.uplink,
        "cause": rejected.cause,
        "code": f"0x{rejected.code:02X}",
        "topic": row.message.topic[:SHOWN_TOPIC],
        "bytes": len(row.message.payload),
        "time": row.time,
        "rejected_at": rejected.rejected_at,
    }


def _in_full(rejected: RejectedRow) -> Answer:
    from base64 import b64encode

    row = rejected.row
    return {
        **_in_short(rejected),
        "topic": row.message.topic,
        "qos": row.message.qos,
        "retain": row.message.retain,
        "client_id": row.message.client_id,
        "username": row.message.username,
        "content_type": row.message.content_type,
        "response_topic": row.message.response_topic,
        "message_expiry": row.message_expiry,
        "user_properties": row.message.user_properties,
        "payload": b64encode(row.message.payload).decode(),
    }
