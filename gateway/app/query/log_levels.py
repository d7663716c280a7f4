"""The query `log/level`: the least severity of a part's log lines."""

from gateway.app.control import Control
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.settings.log import PARTS, Level
from gateway.telemetry.logs import levels, set_level


class LogLevels:
    """Returns the levels, and changes one of them until the next start or reload."""

    def __init__(self, control: Control, responder: Responder) -> None:
        self._control = control
        responder.know("log/level", self._level, "part", "level")

    async def _level(self, request: Request) -> Answer:
        part, level = request.text("part"), request.text("level")
        if (part is None) is not (level is None):
            raise RequestError("log/level needs part and level, or neither to say the levels")
        if part is not None:
            part, level = request.word("part", PARTS), request.word("level", tuple(Level))
            what = f"lines of {level} and above are written of {part}"
            self._control.note_order(f"log: {what}", request.client_id)
            set_level(part, Level(level))
        return {"levels": levels()}
