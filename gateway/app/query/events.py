"""Stores events that a person may want to know of, and answers the query `events`."""

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress

from gateway.app.parts import Happening, Run, Stage, Storage
from gateway.app.query.ends import Ends
from gateway.app.responder import Answer, Request, Responder
from gateway.broker.notices import ConnectionEnd, ConnectRefusal, Denial, Notice
from gateway.compiled import build
from gateway.storage.state.events import EVER, Event, EventRows
from gateway.version import describe

logger = logging.getLogger(__name__)

REPEATED_MS = 3_600_000
"""Milliseconds within which repetitions for a subject are one event, counted."""

SAVE_SECONDS = 600.0
"""Seconds between two writes of an event's repetitions."""

MAXIMUM_SUBJECTS = 30
"""Subjects of one kind that begin events within REPEATED_MS; further ones count as OTHERS."""

COMMIT_SECONDS = 2.0
"""Seconds that a query waits for events to be on disk."""

OTHERS = "others"

SHOWN = 200
"""Characters of a subject; a text has at most five times as many."""

DENIED = "denied"

KINDS = (
    "start",
    "stop",
    "alarm",
    "link",
    "refused",
    "ended",
    "flapping",
    "shared",
    DENIED,
    "order",
    "reload",
)

SEVERITIES = ("info", "warning", "error")

Key = tuple[str, str]
"""Kind and subject."""


class EventLog:
    """Events of a run, which are written soon and again when they end; repetitions less often."""

    def __init__(self, run: Run, storage: Storage) -> None:
        self._run = run
        self._clock = run.clock
        self._writer = storage.writer
        self._rows = EventRows(storage.database, storage.writer)
        self._open: dict[Key, Event] = {}
        self._repeated: OrderedDict[Key, Event] = OrderedDict()  # the oldest first
        self._unsaved: dict[int, Event] = {}
        self._start: Event | None = None

    async def begin(self) -> None:
        """Record the start, and how the run before ended; then store events."""
        now, lasting = self._clock.wall_ms(), await self._rows.load()
        for event in lasting:
            event.until = now
            self._rows.save(event)
        severity, text = "info", f"{describe(build())} started"
        if any(event.kind == "start" for event in lasting):
            severity = "warning"
            text += " after a power cut, a crash or a kill: the run before did not stop"
        elif self._rows.last_id:
            text += " after a stop"
        self._start = Event(0, now, None, severity, "start", "gateway", text)
        self._rows.add(self._start)
        self._run.event.listen(self.record)
        self._run.every(SAVE_SECONDS, self.save)
        self._run.at_stop.append(self.stop)

    def stop(self) -> None:
        """Record that the gateway stops, and why; lasting events end with it."""
        now = self._clock.wall_ms()
        fault = self._run.fault
        restarts = " and restarts" if self._run.restarting else ""
        text = (
            f"stopped because of a fault: {fault}" if fault else f"stopped as requested{restarts}"
        )
        self._rows.add(Event(0, now, now, "error" if fault else "info", "stop", "gateway", text))
        for event in filter(None, [self._start, *self._open.values()]):
            event.until = now
            self._unsaved[event.id] = event
        self.save()

    def record(self, happening: Happening) -> None:
        """Record an event: once, or from its beginning to its end."""
        kind, subject, text = happening.kind, happening.subject[:SHOWN], happening.text[: 5 * SHOWN]
        now, key = self._clock.wall_ms(), (kind, subject)
        if happening.stage is Stage.ENDS:
            event = self._open.pop(key, None)
            if event is not None:
                event.until = now
                event.text = f"{event.text}; {text}" if text else event.text
                self._rows.save(event)
        elif happening.stage is Stage.BEGINS:
            event = self._open.get(key)
            if event is None:
                event = Event(0, now, None, happening.severity, kind, subject, text)
                self._open[key] = event
                self._rows.add(event)
            elif event.text != text:
                event.text = text
                self._unsaved[event.id] = event
        else:
            self._repeat(key, now, happening.severity, text)

    def _repeat(self, key: Key, now: int, severity: str, text: str) -> None:
        while self._repeated:
            oldest = next(iter(self._repeated.values()))
            if 0 <= now - oldest.time < REPEATED_MS:
                break
            self._forget_oldest()
        kind = key[0]
        if key not in self._repeated:
            subjects = sum(each == kind for each, _ in self._repeated)
            if subjects >= MAXIMUM_SUBJECTS:
                key = (kind, OTHERS)
        event = self._repeated.get(key)
        if event is None:
            event = self._repeated[key] = Event(0, now, now, severity, kind, key[1], text)
            self._rows.add(event)
            if kind == DENIED:  # the first of a client within the hour, and at most 31 clients
                logger.warning("client %r %s", key[1], text)
            return
        event.until, event.text = now, text
        event.count += 1
        self._unsaved[event.id] = event

    def _forget_oldest(self) -> None:
        _, event = self._repeated.popitem(last=False)
        if self._unsaved.pop(event.id, None) is not None:
            self._rows.save(event)

    def save(self) -> None:
        """Write changed events."""
        for event in self._unsaved.values():
            self._rows.save(event)
        self._unsaved.clear()

    def lasting(self, kind: str) -> list[Event]:
        """Return the events of a kind that have not ended, the oldest first."""
        return [event for (each, _), event in self._open.items() if each == kind]

    def answer(self, responder: Responder) -> None:
        """Answer the query `events`."""
        responder.know("events", self._events, "after", "since", "kind", "offset", "limit")

    async def _events(self, request: Request) -> Answer:
        after = request.whole("after", 0, EVER, 0)
        since = request.whole("since", 0, EVER, 0)
        kind = request.word("kind", ("all", *KINDS))
        offset, limit = request.window
        self.save()
        await self._commit()
        wanted = None if kind == "all" else kind
        total, found = await self._rows.read(after, since, wanted, offset, limit)
        page = await request.page(found, _row, total=total)
        return {**page, "last": self._rows.last_id}

    async def _commit(self) -> None:
        """Wait until events are on disk, up to a limit: the disk may fail."""
        writer, batch = self._writer, self._rows.batch
        if writer.committed >= batch:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(COMMIT_SECONDS):
                await writer.wait_for(batch)


class ClientEvents:
    """Makes events of the broker's notices about clients."""

    def __init__(self, run: Run, ends: Ends) -> None:
        self._event = run.event
        self._clock = run.clock
        self._ends = ends

    def record(self, notice: Notice) -> None:
        """Record a refusal, a denial, or a conspicuous end of a connection."""
        who = notice.client_id or "without identifier"
        user = "" if notice.username is None else f" of user {notice.username[:SHOWN]!r}"
        if isinstance(notice, ConnectRefusal):
            self._event.once("refused", who, f"at {notice.peer}{user}: {notice.reason}", "warning")
        elif isinstance(notice, Denial):
            text = f"{user.lstrip()} may not {notice.right} {notice.topic[:SHOWN]!r}".lstrip()
            self._event.once(DENIED, who, text, "warning")
        elif isinstance(notice, ConnectionEnd):
            self._ends.add(notice)
            now = self._clock.monotonic()
            if not notice.expected:
                self._event.once("ended", who, f"at {notice.peer}{user}: {notice.reason}")
            if self._ends.is_shared(notice.client_id, now):
                text = f"probably two devices use this identifier; one is at {notice.peer}{user}"
                self._event.once("shared", who, text, "warning")
            elif self._ends.is_flapping(notice.client_id, now):
                text = f"connects again and again, at {notice.peer}{user}: {notice.reason}"
                self._event.once("flapping", who, text, "warning")


def _row(event: Event) -> dict[str, object]:
    return {
        "id": event.id,
        "time": event.time,
        "until": event.until,
        "severity": event.severity,
        "kind": event.kind,
        "subject": event.subject,
        "text": event.text,
        "count": event.count,
    }
