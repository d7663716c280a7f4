"""Makes all queries of a running gateway."""

from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.clients import ClientQueries
from gateway.app.query.ends import Ends
from gateway.app.query.events import ClientEvents, EventLog
from gateway.app.query.queues import QueueQueries
from gateway.app.query.series import Series
from gateway.app.query.status import StatusQuery
from gateway.app.query.topics import TopicQueries
from gateway.app.query.trials import RuleTrials
from gateway.app.query.why import WhyQuery
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.settings.log import PARTS, Level
from gateway.telemetry.logs import levels, set_level

if TYPE_CHECKING:
    from gateway.app.query.queues import Attempts
    from gateway.app.query.rule_edit import Check
    from gateway.storage.outbox.outbox import Outbox
    from gateway.uplink.rules.rules import RuleSet


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


class Queries:
    """The queries; those about uplinks wait for `follow`."""

    def __init__(
        self,
        run: Run,
        storage: Storage,
        core: Core,
        control: Control,
        events: EventLog,
        check: "Check",
    ) -> None:
        self.responder = Responder(run, core, control)
        self._queues = QueueQueries(run, core, control, self.responder)
        ends = Ends(run)
        ClientQueries(run, core, control, self.responder, ends)
        self._status = StatusQuery(run, storage, core, self.responder, events)
        events.answer(self.responder)
        self.topics = TopicQueries(run, core, self.responder)
        WhyQuery(storage, self.responder)
        LogLevels(control, self.responder)
        self.trials = RuleTrials(run, core, self.responder, check)
        Series(run, core).answer(self.responder)
        core.broker.notices.listeners.append(ClientEvents(run, ends).record)

        def note_order(what: str, who: str) -> None:
            client = core.broker.clients.get(who)
            place = "" if client is None else f" at {client.peer}"
            run.event.once("order", what, f"requested by client {who!r}{place}")

        control.on_order.append(note_order)

    def follow(self, outbox: "Outbox", rules: "RuleSet", attempts: "Attempts") -> None:
        """Answer for uplinks, too."""
        self._queues.follow(outbox, rules, attempts)
        self.trials.follow(rules)
        self._status.follow(outbox, attempts)
