"""The query `why`: the outcome of a message, by number or topic."""

import asyncio

from gateway.app.parts import Storage
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.errors import TidegateError

NO_HISTORY = 'history is off: set keep in [history], such as keep = "24h", and reload'

MAXIMUM_ROWS = 2_000
"""Earlier messages of a topic from which a rule's memory is rebuilt."""


class WhyQuery:
    """Answers from the database, in a thread of its own."""

    def __init__(self, storage: Storage, responder: Responder) -> None:
        self._database = storage.database
        responder.know("why", self._why, "number", "topic")

    async def _why(self, request: Request) -> Answer:
        number, topic = request.text("number"), request.text("topic")
        if (number is None) is (topic is None):
            raise RequestError("why needs number, EPOCH.STREAM.NUMBER, or topic")
        if self._database.in_memory:
            raise RequestError("everything is in memory only: there is no history")
        return {"lines": await asyncio.to_thread(self._report, number, topic or "")}

    def _report(self, number: str | None, topic: str) -> list[str]:
        # history and SQL are imported only when they are needed
        from gateway.app.query.why_report import report_of_number, report_of_topic
        from gateway.storage.history.reader import open_history

        named = None if number is None else number_of(number)
        try:
            with open_history(self._database.path.parent, MAXIMUM_ROWS) as history:
                if history is not None and history.on:
                    if named is None:
                        return report_of_topic(history, topic)
                    return report_of_number(history, named)
        except TidegateError as error:
            raise RequestError(str(error)) from None
        raise RequestError(NO_HISTORY)


def number_of(text: str) -> tuple[str, str, int]:
    """Return the number `EPOCH.STREAM.NUMBER`; raise RequestError for an invalid one."""
    epoch, _, rest = text.partition(".")
    stream, _, number = rest.rpartition(".")
    if not (epoch and stream and number.isascii() and number.isdecimal() and len(number) < 20):
        raise RequestError(f"number {text[:80]!r} is not EPOCH.STREAM.NUMBER")
    return epoch, stream, int(number)
