"""The gateway's interface to one bridge: it publishes readings and figures, receives messages."""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gateway.bridges.readings.reading import (
    Reading,
    RefusedReadingError,
    Value,
    instance_name,
    series_topic,
)
from gateway.bridges.readings.reading_map import NO_UNITS, Found, ReadingMap
from gateway.bridges.readings.reading_publisher import ReadingPublisher, joined
from gateway.bridges.supervision.control import Control
from gateway.bridges.supervision.interfaces import Receive, Services
from gateway.bridges.supervision.silence import Silence
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode

TROUBLES_MAX = 256
"""Devices, and parts of them, whose trouble is shown; trouble of further ones is only logged."""

LINES_MAX = 5
"""Lines of one kind that are logged an hour; further ones are counted, and the next line says how
many they were."""

UNLISTED_MAX = 500
"""Unlisted nodes that are remembered; the oldest is forgotten for a further one."""

HOUR = 3_600.0
"""Seconds."""

KINDS_MAX = 256
"""Kinds of lines that are counted; the oldest is forgotten for a further one."""

NOT_STARTED = "not yet started"

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Lines:
    """The lines of one kind that were logged since `since`, and those left out."""

    since: float
    logged: int = 0
    dropped: int = 0


class Host:
    """One bridge's side of the gateway; `name` is unique within its kind.

    `services` are the parts of the application, for bridges that need more.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        services: Services,
        *,
        retain: bool = False,
        silence: float = 0.0,
        reading_map: ReadingMap | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.services = services
        self.title = f"{kind} {name}"
        self.map = reading_map or ReadingMap()
        self.publisher = ReadingPublisher(kind, name, services, retain=retain)
        self.silence = Silence(silence)
        self.received_at: float | None = None
        """When the bridge last received something, monotonic seconds."""
        self._sent = 0
        self._sent_at = 0.0
        self.counted: Counter[str] = Counter()
        """The bridge's counters, by the names of its kind."""
        self._unlisted: OrderedDict[str, None] = OrderedDict()
        """Nodes received by radio that are not listed, the oldest first."""
        self._ends: list[Callable[[], None]] = []
        self._troubles: dict[str, str] = {}
        self._lines: dict[str, Lines] = {}
        self.show("restarts", 0)
        self.waiting(NOT_STARTED)

    def publish(self, reading: Reading, source: str = "") -> bool:
        """Publish a reading; return whether the broker accepted it.

        `source` names where the bridge reads it: two sources of one series are kept apart.
        """
        accepted = self.publisher.publish(reading, source)
        if accepted:
            self.received()
        return accepted

    def read(
        self,
        node: str,
        quantity: str,
        value: Value,
        unit: str | None = None,
        time: int | None = None,
        *,
        instance: str = "",
        source: str = "",
        lossy: bool = False,
    ) -> bool:
        """Publish a reading; return whether it was accepted. An invalid one is counted.

        `time` is milliseconds since 1970, by default now. `instance` distinguishes several of one
        quantity at a node; `source` is that of `publish`. `lossy` means that the source does not
        send again, so that a rejected reading counts as lost.
        """
        now = self.services.clock.wall_ms()
        try:
            reading = Reading(node, quantity, value, unit, now if time is None else time, instance)
        except RefusedReadingError as failure:
            self.publisher.reject(str(failure))
            return False
        accepted = self.publish(reading, source)
        if lossy and not accepted:
            self.count("lost")
        return accepted

    def read_fields(
        self,
        node: str,
        fields: dict[str, object],
        time: int | None = None,
        *,
        units: Mapping[str, str] = NO_UNITS,
        instance: str = "",
        source: str = "",
        lossy: bool = False,
    ) -> int:
        """Publish the readings that the map finds in named values; return how many were found.

        `units` are the units of names that the source states. A name whose number has no clear
        meaning is logged once. `instance` is for values whose names have none. Two values of one
        series are kept apart by the name of the second.
        """
        found = self.map.readings(fields, units)
        unclear = []
        sources: dict[str, str] = {}
        for each in found:
            own = self._own_instance(node, each, instance, sources)
            accepted = self.read(
                *(node, each.quantity, each.value, each.unit, time),
                instance=own,
                source=source,
                lossy=lossy,
            )
            if accepted and each.unclear:
                unclear.append(each.unclear)
        self.publisher.report_unclear(unclear)
        return len(found)

    def _own_instance(self, node: str, found: Found, instance: str, sources: dict[str, str]) -> str:
        """Return the instance of a value, different from those before it in its message.

        The instance of a second value is remembered, so that it stays the same if only that value
        comes.
        """
        own = found.instance or instance
        if found.identity:
            own = self._instance_of_identity(node, found, own)
        topic = series_topic(node, found.quantity, own)
        source = f"{self.publisher.client_id} {found.path}"
        label = self.services.series_labels.get(topic, source)
        if label is None and topic in sources:
            label = next(
                each
                for each in map(instance_name, found.labels)
                if series_topic(node, found.quantity, joined(own, each)) not in sources
            )
            self.services.series_labels.remember(topic, source, label)
            self.publisher.report_conflict(topic, f"{found.path!r}", f"{sources[topic]!r}", label)
        if label is not None:
            own = joined(own, label)
            topic = series_topic(node, found.quantity, own)
        sources[topic] = found.path
        return own

    def _instance_of_identity(self, node: str, found: Found, own: str) -> str:
        """Return the instance that a value of an object with this identity had first.

        Devices give an object a number only while there are several: without this a thermometer
        would have another series once a second one is added or fails.
        """
        topic, source = series_topic(node, found.quantity), f"{self.kind}:{found.identity}"
        label = self.services.series_labels.get(topic, source)
        if label is None:
            label = own
            self.services.series_labels.remember(topic, source, label)
        return label

    def receive_by_radio(self, node: str, listed: Iterable[str]) -> None:
        """Note a node that may be somebody else's unless a pattern lists it."""
        strangers = self.services.strangers
        if any(fnmatchcase(node, each) for each in listed):
            strangers.discard(node)
            return
        strangers.add(node)
        self._unlisted[node] = None
        self._unlisted.move_to_end(node)
        if len(self._unlisted) > UNLISTED_MAX:
            strangers.discard(self._unlisted.popitem(last=False)[0])

    def send(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> ReasonCode:
        """Publish any message; a code of 0x80 or above is a rejection."""
        clock = self.services.clock
        now = clock.monotonic()
        code = self.services.publish(
            Message(
                topic,
                payload,
                qos=qos,
                retain=retain,
                client_id=self.publisher.client_id,
                received_at=clock.wall_ms(),
                arrived=now,
            )
        )
        if code < FAILURE:
            self._sent += 1
            self._sent_at = now
        return code

    def listen(self, topic_filter: str, receive: Receive) -> None:
        """Hand messages of the broker to `receive` until the bridge ends or is rebuilt."""
        client_id = self.publisher.client_id
        self._ends.append(self.services.subscribe(client_id, topic_filter, receive))

    def offer(self, topic: str, control: Control, receive: Receive) -> None:
        """Hand messages on `<topic>/set` to `receive`, and offer them as a control."""
        controls = self.services.controls
        controls[topic] = control

        def withdraw() -> None:
            controls.pop(topic, None)

        self._ends.append(withdraw)
        self.listen(f"{topic}/set", receive)

    def set_longest_gap(self, topic: str, seconds: float) -> None:
        """Set after how many seconds a series is published even if unchanged."""
        self.services.gaps[topic] = seconds

    def at_forget(self, forget: Callable[[str], int]) -> None:
        """Call `forget` with the name of each node that is to be forgotten."""
        forgetters = self.services.forgetters
        forgetters.append(forget)
        self._ends.append(lambda: forgetters.remove(forget))

    def at_end(self, end: Callable[[], None]) -> None:
        """Call `end` when the bridge ends or is rebuilt."""
        self._ends.append(end)

    def received(self) -> None:
        """Report that the source is alive; publishing a reading reports that as well."""
        self.received_at = self.services.clock.monotonic()
        self.silence.received(self.received_at)
        if self._silent:
            self._silent = ""
            self.services.alarm(self.alarm_name, "")
            self.working()

    def working(self) -> None:
        """Report that everything the bridge needs is available."""
        if self._state == "waiting":
            self.log(logging.INFO, "open")
        self._set_state("silent" if self._silent else "open", self._silent)

    def waiting(self, reason: str) -> None:
        """Report why the bridge cannot work; each new reason is logged."""
        if reason not in (self._error, NOT_STARTED):
            self.log(logging.WARNING, f"waiting: {reason}")
        if reason != NOT_STARTED:
            self.services.owners.lost(self.publisher.client_id)
        self._set_state("waiting", reason)

    def silent(self, text: str) -> None:
        """Report that nothing arrives although nothing failed."""
        logger.warning("%s: %s", self.title, text)
        self._silent = text
        self._set_state("silent", text)
        self.services.alarm(self.alarm_name, text)

    def log(self, level: int, text: str, kind: str = "") -> None:
        """Log a line, unless LINES_MAX of its kind (by default its text) came within the hour."""
        now = self.services.clock.monotonic()
        lines = self._lines.get(kind or text)
        if lines is None or now - lines.since >= HOUR:
            if len(self._lines) == KINDS_MAX:
                del self._lines[next(iter(self._lines))]
            dropped = 0 if lines is None else lines.dropped
            lines = self._lines[kind or text] = Lines(now)
            if dropped:
                text += f" ({dropped} such lines were left out)"
        lines.logged += 1
        if lines.logged > LINES_MAX:
            lines.dropped += 1
        else:
            logger.log(level, "%s: %s", self.title, text)

    def count(self, name: str, number: int = 1) -> None:
        """Raise a counter of the kind."""
        self.counted[name] += number
        self.services.counters.add(f"tidegate/{self.kind}/{name}", number)

    def show(self, name: str, value: float | str) -> None:
        """Show a gauge of this bridge."""
        self.services.counters.set(f"tidegate/{self.kind}/{self.name}/{name}", value)

    def trouble(self, source: str, text: str) -> None:
        """Report the trouble of a device or a part of it; an empty text ends it."""
        if not text:
            self._troubles.pop(source, None)
        elif source in self._troubles or len(self._troubles) < TROUBLES_MAX:
            self._troubles[source] = text

    def status(self) -> dict[str, object]:
        """Return the state of the bridge for `tidegate bridges status`; ages in seconds."""
        clock = self.services.clock
        now, wall = clock.monotonic(), clock.wall_ms()
        return {
            "state": self._state,
            "error": self._error,
            "age": None if self.received_at is None else round(now - self.received_at, 3),
            "sent": self._sent,
            "sent_age": round(now - self._sent_at, 3) if self._sent else None,
            "counted": dict(self.counted),
            "troubles": dict(self._troubles),
            "refused": [
                {
                    "reason": reason,
                    "count": each.count,
                    "example": each.example,
                    "age": (wall - each.last) / 1000,
                }
                for reason, each in self.publisher.refusals.items()
            ],
        }

    def last(self, topic: str) -> dict[str, object]:
        """Return the last reading of a series, with its age in seconds."""
        each = self.publisher.last[topic]
        return {
            "node": each.node,
            "quantity": each.quantity,
            "instance": each.instance,
            "value": each.value,
            "unit": each.unit,
            "time": each.time,
            "age": (self.services.clock.wall_ms() - each.time) / 1000,
            "quality": each.quality,
        }

    def release(self) -> None:
        """End the subscriptions of `listen`, and call the functions given to `at_end`."""
        while self._ends:
            self._ends.pop()()

    def close(self) -> None:
        """End the subscriptions, and the alarm."""
        self.release()
        self.services.owners.ended(self.publisher.client_id)
        self.services.alarm(self.alarm_name, "")
        self._set_state("off", "")

    @property
    def alarm_name(self) -> str:
        """The name of this bridge's alarm."""
        return f"bridge-{self.kind}-{self.name}"

    def _set_state(self, state: str, error: str) -> None:
        self._state, self._error = state, error
        self.show("state", state)
        self.show("error", error)

    _state = ""
    _error = ""
    _silent = ""
    """The text of the alarm until something arrives."""
