"""Makes all queries of a running gateway; the query `status`."""

from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.channels import ChannelQueries
from gateway.app.query.clients import ClientQueries
from gateway.app.query.ends import Ends
from gateway.app.query.events import ClientEvents, EventLog
from gateway.app.query.queues import Attempts, QueueQueries
from gateway.app.query.series import Series
from gateway.app.query.topics import TopicQueries
from gateway.app.query.trials import RuleTrials
from gateway.app.query.why import WhyQuery
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.compiled import build
from gateway.settings.log import PARTS, Level
from gateway.storage.engine.damage import free_bytes
from gateway.telemetry.health import refusing
from gateway.telemetry.logs import levels, set_level
from gateway.telemetry.process_metrics import resident_bytes
from gateway.version import COMMIT, VERSION

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
            raise RequestError("log/level needs part and level, or neither to list the levels")
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
        ChannelQueries(core, control, self.responder)
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


MAXIMUM_SHOWN = 100
"""Alarms, silent bridges, and stuck channels, that are shown."""

STUCK_SECONDS = 60.0
"""Seconds without an acknowledgement after which a channel's oldest message is stuck."""

DOWN = ("disconnected", "paused")
SILENT = ("silent", "waiting")


class StatusQuery:
    """Answers with what a person wants to know first."""

    def __init__(
        self, run: Run, storage: Storage, core: Core, responder: Responder, events: EventLog
    ) -> None:
        self._run = run
        self._database, self._writer, _ = storage
        self._broker = core.broker
        self._events = events
        self._began = run.clock.monotonic()
        self._outbox: Outbox | None = None
        self._attempts: Attempts = lambda _: None
        responder.know("status", self._status)

    def follow(self, outbox: "Outbox", attempts: Attempts) -> None:
        """Answer for uplinks, too."""
        self._outbox, self._attempts = outbox, attempts

    async def _status(self, _: Request) -> Answer:
        values, broker = self._run.counters.values, self._broker
        troubles = [refusing(self._writer), *(ask() for ask in self._run.troubles)]
        troubles = list(filter(None, troubles))
        uplinks = self._uplinks()
        alarms = [
            {"name": event.subject, "since": event.time, "text": event.text}
            for event in self._events.lasting("alarm")[:MAXIMUM_SHOWN]
        ]
        silent = self._silent()
        down = any(each["state"] in DOWN for each in uplinks)
        verdict = "attention" if alarms or silent or down else "well"
        connected = len(broker.clients)
        return {
            "verdict": "trouble" if troubles else verdict,
            "troubles": troubles,
            "gateway": self._run.configuration.gateway_id,
            "version": VERSION,
            "build": build(),
            "commit": COMMIT or "unknown",
            "uptime_seconds": round(self._run.clock.monotonic() - self._began),
            "uplinks": uplinks,
            "outbox": self._waiting(),
            "survives_seconds": values.get("tidegate/outbox/survives_seconds"),
            "channels_stuck": self._stuck(),
            "channels_waiting": sum(channel.depth for channel in broker.channels),
            "clients": {"connected": connected, "offline": len(broker.sessions) - connected},
            "free_bytes": None if self._database.in_memory else free_bytes(self._run.data),
            "resident_bytes": resident_bytes(),
            "memory_bytes": values.get("tidegate/memory/bytes", 0),
            "memory_limit": values.get("tidegate/memory/limit", 0),
            "alarms": alarms,
            "silent": silent,
        }

    def _uplinks(self) -> list[dict[str, object]]:
        if self._outbox is None:
            return []
        values, bits = self._run.counters.values, self._outbox.uplinks
        found = []
        for name, rows in zip(bits.names, bits.rows, strict=True):
            part = f"tidegate/uplink/{name}/" if bits.several else "tidegate/uplink/"
            figures: dict[str, object] = {
                key: str(values.get(part + key, "")) for key in ("state", "error", "destination")
            }
            attempt = self._attempts(name)
            found.append(
                {"name": name, **figures, "waiting": rows, "next_attempt_seconds": attempt}
            )
        return found

    def _waiting(self) -> dict[str, object] | None:
        outbox = self._outbox
        if outbox is None:
            return None
        oldest = outbox.oldest.time if outbox.rows else None
        waited = None
        if oldest is not None:
            waited = max(0.0, (self._run.clock.wall_ms() - oldest) / 1000)
        return {"messages": outbox.rows, "bytes": outbox.bounds.bytes, "oldest_seconds": waited}

    def _stuck(self) -> list[dict[str, object]]:
        """Return the channels whose oldest message has not been acknowledged for long."""
        now, found = self._run.clock.monotonic(), []
        for channel in self._broker.channels:
            waits = channel.depth or channel.in_flight
            if waits and (oldest := channel.oldest(now)) >= STUCK_SECONDS:
                row: dict[str, object] = {
                    "name": channel.settings.share_name,
                    "state": "paused" if channel.waiting.paused else "open",
                    "depth": channel.depth,
                    "inflight": channel.in_flight,
                    "consumers": len(channel.consumers),
                    "oldest_seconds": round(oldest),
                }
                found.append((oldest, row))
        found.sort(key=lambda each: -each[0])
        return [row for _, row in found[:MAXIMUM_SHOWN]]

    def _silent(self) -> list[dict[str, object]]:
        """Return the bridges with silent sensors, by their figure `<kind>/<bridge>/state`."""
        found: list[dict[str, object]] = []
        for name, value in self._run.counters.values.items():
            levels = name.split("/")
            if value not in SILENT or len(levels) != 4 or levels[3] != "state":
                continue
            _, kind, bridge, _ = levels
            if kind not in ("uplink", "channels"):
                error = str(self._run.counters.values.get(f"tidegate/{kind}/{bridge}/error", ""))
                found.append({"kind": kind, "name": bridge, "state": value, "error": error})
        return found[:MAXIMUM_SHOWN]
