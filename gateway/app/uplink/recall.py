"""Requests for messages of the history, from a client of the gateway or from the fleet."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Run, Storage
from gateway.app.responder import Reply, Responder, to_json
from gateway.counters import Counters
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.outbox import Outbox
from gateway.uplink.context import RECALL_ANSWERS
from gateway.uplink.recall import Recall, RecallError, Report, parse_request
from gateway.uplink.reports.control_messages import ControlMessage, ControlMessages
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.settings.uplink import UplinkSettings

logger = logging.getLogger(__name__)


def start_recall(
    run: Run,
    storage: Storage,
    responder: Responder,
    control: Control,
    outbox: Outbox,
    uplinks: "Sequence[tuple[Uplink, UplinkSettings]]",
    stack: AsyncExitStack,
) -> None:
    """Answer `$CONTROL/tidegate/recall`, and the fleet by uplinks where it may ask.

    Requests end with the stack.
    """
    recall = Recall(
        storage.database, outbox, run.counters, history=lambda: run.configuration.history.keep > 0
    )
    stack.push_async_callback(recall.close)
    requests = RecallRequests(responder, run.counters, recall, outbox.uplinks.every)
    control.answer("recall", requests.receive)
    for index, (uplink, config) in enumerate(uplinks):
        if config.recall:
            messages = uplink.control_messages
            requests = RecallRequests(responder, run.counters, recall, 1 << index, messages)
            uplink.requests.recall = requests.receive_of_fleet


class RecallRequests:
    """Accepts requests and sends the answers: `accepted`, then `done`; or `refused`.

    Recalled messages are sent by `uplinks`; the answers to a fleet's requests are
    `control_messages`.
    """

    def __init__(
        self,
        responder: Responder,
        counters: Counters,
        recall: Recall,
        uplinks: int,
        control_messages: ControlMessages | None = None,
    ) -> None:
        self._responder = responder
        self._counters = counters
        self._recall = recall
        self._uplinks = uplinks
        self._control_messages = ControlMessages() if control_messages is None else control_messages

    def receive(self, message: Message) -> ReasonCode:
        """Accept a request of a client; the answers are sent to its Response Topic, if any."""
        try:
            answer = self._answer_to(message)
        except MqttError as error:
            logger.warning("recall: response topic %.80r: %s", message.response_topic, error.reason)
            return error.reason_code
        return self._begin(message.payload, answer)

    def receive_of_fleet(self, payload: bytes) -> None:
        """Accept a request of the fleet; the answers are sent to `<prefix>/<gateway id>/recall`."""
        self._begin(payload, self._answer_fleet)

    def _begin(self, payload: bytes, answer: Callable[[Report], None]) -> ReasonCode:
        identifier: Report = {}
        try:
            request = parse_request(payload)
            if request.id is not None:
                identifier = {"id": request.id}
            self._recall.begin(request, lambda report: answer(identifier | report), self._uplinks)
        except RecallError as error:
            logger.warning("a recall was refused: %s", error)
            self._counters.add("tidegate/recall/refused")
            answer(identifier | {"state": "refused", "error": str(error)})
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        answer(identifier | {"state": "accepted"})
        return ReasonCode.SUCCESS

    def _answer_fleet(self, report: Report) -> None:
        if not self._control_messages.send(ControlMessage(RECALL_ANSWERS, to_json(report))):
            logger.warning(
                "an answer to a recall was dropped: too many control messages wait for the fleet"
            )

    def _answer_to(self, request: Message) -> Callable[[Report], None]:
        """Return a function that answers the request; raise MqttError if no answer is possible."""
        if request.response_topic is None:
            return lambda report: logger.info("recall: %s", report)
        reply = self._responder.reply_to(request)
        loop = asyncio.get_running_loop()
        return lambda report: _soon(loop, reply, report)


def _soon(loop: asyncio.AbstractEventLoop, reply: Reply, report: Report) -> None:
    """Answer after the publishing of the request itself."""
    loop.call_soon(reply, report)
