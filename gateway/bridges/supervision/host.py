"""What the gateway is to one bridge: readings and figures go there, messages come from it."""

import logging
from collections.abc import Callable, Mapping

from gateway.bridges.readings.reading import Reading, RefusedReadingError, Value
from gateway.bridges.readings.reading_map import NO_UNITS, ReadingMap
from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.supervision.interfaces import Receive, Services
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

OWNERS_MAX = 10_000
"""Topics of which it is known whose they are; of further ones a conflict is not noticed."""

CONFLICTS_TOLD = 10
"""Conflicts of one bridge that are logged; further ones are counted."""

NOT_STARTED = "not yet started"

logger = logging.getLogger(__name__)


class Host:
    """One bridge's side of the gateway; `name` tells it apart from others of its kind.

    `services` are the parts of the application themselves, for bridges that need more.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        services: Services,
        *,
        retain: bool = False,
        reading_map: ReadingMap | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.services = services
        self.title = f"{kind} {name}"
        self.map = reading_map or ReadingMap()
        self.publisher = ReadingPublisher(
            f"{kind}:{name}",
            publish=services.publish,
            counters=services.counters,
            clock=services.clock,
            retain=retain,
        )
        self.heard_at: float | None = None
        """When something came the last time, monotonic seconds."""
        self.on_heard: Callable[[float], None] = lambda _now: None
        self.publisher.on_reading = self._published
        self._ends: list[Callable[[], None]] = []
        self.show("restarts", 0)
        self.waiting(NOT_STARTED)

    def read(
        self,
        node: str,
        quantity: str,
        value: Value,
        unit: str | None = None,
        time: int | None = None,
        *,
        lossy: bool = False,
    ) -> bool:
        """Publish a reading; return whether it was taken. One that is not allowed is counted.

        `time` is milliseconds since 1970, by default now. `lossy` says that the source does not
        send again, so that a reading which is not taken counts as lost.
        """
        now = self.services.clock.wall_ms()
        try:
            reading = Reading(node, quantity, value, unit, now if time is None else time)
        except RefusedReadingError as failure:
            self.publisher.reject(str(failure))
            return False
        taken = self.publisher.publish(reading)
        if lossy and not taken:
            self.count("lost")
        return taken

    def read_fields(
        self,
        node: str,
        fields: dict[str, object],
        time: int | None = None,
        *,
        units: Mapping[str, str] = NO_UNITS,
        lossy: bool = False,
    ) -> int:
        """Publish the readings that the map finds in named values; return how many were found.

        `units` are those of names, as far as the source says them. A name that does not say what
        its number means is logged once.
        """
        found = self.map.readings(fields, units)
        unclear = []
        for each in found:
            taken = self.read(node, each.quantity, each.value, each.unit, time, lossy=lossy)
            if taken and each.unclear:
                unclear.append(each.unclear)
        self.publisher.wonder(unclear)
        return len(found)

    def send(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> ReasonCode:
        """Publish any message; a code of 0x80 or above says that it was not taken."""
        clock = self.services.clock
        return self.services.publish(
            Message(
                topic,
                payload,
                qos=qos,
                retain=retain,
                client_id=self.publisher.client_id,
                received_at=clock.wall_ms(),
                arrived=clock.monotonic(),
            )
        )

    def listen(self, topic_filter: str, receive: Receive) -> None:
        """Hand messages of the broker to `receive` until the bridge ends or is made anew."""
        client_id = self.publisher.client_id
        self._ends.append(self.services.subscribe(client_id, topic_filter, receive))

    def at_end(self, end: Callable[[], None]) -> None:
        """Call `end` when the bridge ends or is made anew."""
        self._ends.append(end)

    def _published(self, reading: Reading) -> None:
        self.heard()
        owners, topic = self.services.owners, reading.topic
        owner = owners.get(topic)
        if owner is None:
            if len(owners) < OWNERS_MAX:
                owners[topic] = self.title
        elif owner != self.title:
            owners[topic] = self.title
            self.count("node_conflicts")
            if self._conflicts < CONFLICTS_TOLD:
                self._conflicts += 1
                logger.warning("%s: %s came from %s before", self.title, topic, owner)

    def heard(self) -> None:
        """Say that the source is alive; each reading that is published says so by itself."""
        now = self.heard_at = self.services.clock.monotonic()
        if self._silence:
            self._silence = ""
            self.services.alarm(self.alarm_name, "")
            self.working()
        self.on_heard(now)

    def working(self) -> None:
        """Say that what the bridge needs is there."""
        if self._state == "waiting":
            logger.info("%s: open", self.title)
        self._set_state("silent" if self._silence else "open", self._silence)

    def waiting(self, reason: str) -> None:
        """Say why the bridge cannot work; each new reason is logged."""
        if reason not in (self._error, NOT_STARTED):
            logger.warning("%s: waiting: %s", self.title, reason)
        self._set_state("waiting", reason)

    def silent(self, text: str) -> None:
        """Say that nothing comes although nothing failed."""
        logger.warning("%s: %s", self.title, text)
        self._silence = text
        self._set_state("silent", text)
        self.services.alarm(self.alarm_name, text)

    def count(self, name: str, number: int = 1) -> None:
        """Raise a counter of the kind."""
        self.services.counters.add(f"tidegate/{self.kind}/{name}", number)

    def show(self, name: str, value: float | str) -> None:
        """Show a gauge of this bridge."""
        self.services.counters.set(f"tidegate/{self.kind}/{self.name}/{name}", value)

    def release(self) -> None:
        """End what `listen` began, and call what `at_end` was given."""
        while self._ends:
            self._ends.pop()()

    def close(self) -> None:
        """End what `listen` began, and the alarm."""
        self.release()
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
    _conflicts = 0
    _silence = ""
    """What the alarm says until something comes."""
