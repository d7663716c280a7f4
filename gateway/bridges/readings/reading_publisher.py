"""Publishes the readings of a bridge in the broker, and records what was refused."""

import json
import logging
import math
import re
from dataclasses import dataclass, replace

from gateway.bridges.readings.reading import Reading, instance_name, series_topic
from gateway.bridges.readings.registry import (
    Kind,
    Quantity,
    instance_of,
    quantity_name,
    unit_name,
    usual_value,
)
from gateway.bridges.supervision.interfaces import Services
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE

NAMES_MAX = 256
"""Names and texts that are logged once each; further ones are only counted."""

SERIES_MAX = 1_000
"""Series whose last value `tidegate bridges status` shows; further ones are not stored."""

KINDS_MAX = 32
"""Kinds of refusals that are counted separately; further ones are counted together."""

OTHER_KINDS = "others"

CONFLICTS_LOGGED = 10
"""Conflicts of one bridge that are logged; further ones are counted."""

REASON_MAX = 400
"""Characters of a refused value with its reason; the rest is cut off."""

VALUES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[-+]?\d[\d.]*")
"""Numbers and quoted values of a reason; without them the kind of reason remains."""

EARLIEST = 1_704_067_200_000
"""Milliseconds at the start of 2024: a clock before that was never set."""

AHEAD_MAX = 86_400_000
"""Milliseconds by which a node's clock may be ahead of the gateway's."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Refusals:
    """Readings that were refused for one kind of reason; `last` is wall time, milliseconds."""

    count: int = 0
    example: str = ""
    last: int = 0


class ReadingPublisher:
    """Publishes readings as the client `<kind>:<name>`, in the registry's words.

    An impossible time of a node's clock is replaced by the gateway's and counted. A second source
    of a series is published under a different instance.
    """

    def __init__(self, kind: str, name: str, services: Services, *, retain: bool = False) -> None:
        self.client_id = f"{kind}:{name}"
        self.last: dict[str, Reading] = {}
        """The last reading of each series, by its topic."""
        self.refusals: dict[str, Refusals] = {}
        """Refused readings, by the kind of reason."""
        self.commit_within: float | None = 0.0
        """How soon the last accepted reading has to be on disk: by the class of its topic."""
        self._title = f"{kind} {name}"
        self._of_kind = f"tidegate/{kind}"
        self._of_bridge = f"tidegate/{kind}/{name}"
        self._figures = (
            "tidegate/bridges/readings",
            f"{self._of_kind}/readings",
            f"{self._of_bridge}/readings",
        )
        self._services = services
        for figure in self._figures:
            services.counters.add(figure, 0)
        self._retain = retain
        self._logged: set[str] = set()
        self._conflicts: set[tuple[str, str]] = set()
        self._plausibility = Plausibility()

    def publish(self, reading: Reading, source: str = "") -> bool:
        """Publish; return whether the broker accepted it. The first reading of each node is logged.

        `source` distinguishes several sources of one bridge.
        """
        services = self._services
        now = services.clock.wall_ms()
        reading = self._corrected(reading, now)
        topic = series_topic(reading.node, reading.quantity, reading.instance)
        label = self._label(topic, source)
        if label:
            reading = replace(reading, instance=joined(reading.instance, label))
            topic = reading.topic
        quality = self._plausibility.quality(reading)
        if quality:
            reading = self._marked(reading, quality)
        message = Message(
            topic,
            reading.payload,
            qos=1,
            retain=self._retain,
            client_id=self.client_id,
            received_at=now,
            arrived=services.clock.monotonic(),
        )
        code = services.publish(message)
        if code >= FAILURE:
            if self._is_new(code.name):
                logger.warning("%s: readings are not accepted: %s", self.client_id, code.name)
            return False
        self.commit_within = message.commit_within
        services.counters.add_each(self._figures)
        if topic in self.last or len(self.last) < SERIES_MAX:
            self.last[topic] = reading
        if reading.node not in self._logged and self._is_new(reading.node):
            logger.info("first reading: %s", reading)
        return True

    def reject(self, reason: str, count: int = 1, example: str = "") -> None:
        """Count readings that can never be published, and show the last of them.

        Each kind of reason is logged once: reasons that differ by numbers and quoted values are of
        one kind. `example` is the source's original text.
        """
        counters = self._services.counters
        counters.add(f"{self._of_kind}/rejected", count)
        shown = (f"{reason}: {example}" if example else reason)[:REASON_MAX]
        counters.set(f"{self._of_bridge}/refused", shown)
        kind = VALUES.sub("…", reason)[:REASON_MAX]
        if kind not in self.refusals and len(self.refusals) == KINDS_MAX:
            kind = OTHER_KINDS
        refusals = self.refusals.setdefault(kind, Refusals())
        refusals.count += count
        refusals.example, refusals.last = shown, self._services.clock.wall_ms()
        if self._is_new(f"refused {kind}"):
            logger.warning("%s: a reading was refused: %s", self.client_id, shown)

    def report_unclear(self, names: list[str]) -> None:
        """Log names with an unclear meaning, once each."""
        new = [name for name in names if len(name) <= REASON_MAX and self._is_new(f"name {name}")]
        if new:
            logger.warning(
                "%s: no unit is known for %s: define it in `map`, such as"
                ' %s = { quantity = "...", unit = "..." }',
                self.client_id,
                ", ".join(new),
                json.dumps(new[0], ensure_ascii=False),
            )

    def report_conflict(self, topic: str, source: str, other: str, label: str) -> None:
        """Count a second source of a series, and log it once."""
        self._services.counters.add(f"{self._of_kind}/node_conflicts")
        if (topic, label) not in self._conflicts and len(self._conflicts) < CONFLICTS_LOGGED:
            self._conflicts.add((topic, label))
            logger.warning(
                "%s: %s has two sources, %s and %s; the second is published with the instance %s",
                *(self._title, topic, other, source, label),
            )

    def _corrected(self, reading: Reading, now: int) -> Reading:
        """Return the reading with the registry's names and a plausible time."""
        time = reading.time
        # while the gateway's own clock is not set, the node's is used
        if now >= EARLIEST and not EARLIEST <= time <= now + AHEAD_MAX:
            self._services.counters.add(f"{self._of_kind}/clock_errors")
            time = now
        quantity, unit = quantity_name(reading.quantity), unit_name(reading.unit)
        if (quantity, unit, time) == (reading.quantity, reading.unit, reading.time):
            return reading
        return replace(reading, quantity=quantity, unit=unit, time=time)

    def _label(self, topic: str, source: str) -> str:
        """Return the label of a second source of the series; empty for the first."""
        services, bridge = self._services, self.client_id
        key = f"{bridge} {source}"
        label = services.series_labels.get(topic, key) if source else None
        if label is None:
            now, labels = services.clock.monotonic(), services.series_labels
            other = services.owners.other(topic, bridge, source, now, labels)
            if other is None:
                return ""
            same = other.bridge == bridge
            label = instance_name(source if same and source else bridge.replace(":", "-"))
            if same:
                services.series_labels.remember(topic, key, label)
            before = other.source if same and other.source else other.bridge.replace(":", " ")
            self.report_conflict(topic, source if same and source else self._title, before, label)
        return label

    def _marked(self, reading: Reading, quality: str) -> Reading:
        """Return the reading marked as implausible; that is counted, and logged once."""
        self._services.counters.add(f"{self._of_kind}/marked")
        if self._is_new(f"marked {reading.topic} {quality}"):
            logger.warning("%s: %s: %s", self.client_id, quality.replace("_", " "), reading)
        return replace(reading, quality=quality)

    def _is_new(self, key: str) -> bool:
        if key in self._logged or len(self._logged) == NAMES_MAX:
            return False
        self._logged.add(key)
        return True


def joined(instance: str, label: str) -> str:
    """Return an instance that contains both."""
    return instance_name(f"{instance}-{label}") if instance else label


OUT_OF_RANGE = "out_of_range"
"""Outside the limits of the quantity."""

FELL = "fell"
"""A total below the one before: the meter was reset, or one of the two values is wrong."""

JUMPED = "jumped"
"""A total that rose by more than is possible between two readings."""

PERIODS = ("today", "day", "week", "month", "year")
"""Instances of totals that begin at 0 again."""

CHECKED_SERIES_MAX = 10_000
"""Series whose last value is stored; of others falls and jumps are not noticed."""


class Plausibility:
    """Checks readings, each series in the order of its times."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}

    def quality(self, reading: Reading) -> str:
        """Return the word for an implausible reading, empty for a plausible one."""
        quantity, value = instance_of(reading.quantity), reading.value
        if quantity is None or isinstance(value, bool | str):
            return ""
        usual = usual_value(quantity, value, reading.unit)
        if usual is None:
            return ""
        change = ""
        if quantity.kind is Kind.TOTAL:
            change = self._change(reading, quantity, usual)
        if not quantity.low <= usual <= quantity.high:
            return OUT_OF_RANGE
        return change

    def _change(self, reading: Reading, quantity: Quantity, value: float) -> str:
        """Return the word for an implausible change of a total."""
        time, before = self._last.get(reading.topic, (0, math.nan))
        if reading.time < time:
            return ""
        if time or len(self._last) < CHECKED_SERIES_MAX:
            self._last[reading.topic] = (reading.time, value)
        if value < before:
            return "" if reading.instance in PERIODS else FELL
        return JUMPED if value - before > quantity.jump else ""
