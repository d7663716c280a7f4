"""The one way of a bridge's readings into the broker, with their counts and first log line."""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace

from gateway.bridges.readings.event_time import is_good
from gateway.bridges.readings.plausibility import Plausibility
from gateway.bridges.readings.reading import Reading, to_message
from gateway.bridges.readings.registry import quantity_name, unit_name
from gateway.bridges.supervision.interfaces import Publish
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import FAILURE

NAMES_MAX = 256
"""Names and texts that are logged once each; beyond them only the counters speak."""

TOLD_MAX = 400
"""Characters of what was refused, with its reason; the rest is left out."""

VALUES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[-+]?\d[\d.]*")
"""Numbers and quoted values of a reason, without which it says what kind it is of."""

logger = logging.getLogger(__name__)


class ReadingPublisher:
    """Publishes readings as the client `client_id`, `<kind>:<bridge>`, in the registry's words.

    A time that the node's clock cannot be right about is replaced by the gateway's and counted.
    """

    def __init__(
        self,
        client_id: str,
        *,
        publish: Publish,
        counters: Counters,
        clock: Clock,
        retain: bool = False,
    ) -> None:
        self.client_id = client_id
        self.on_reading: Callable[[Reading], None] = lambda _: None
        self.keep_apart: Callable[[Reading, str], Reading] = lambda reading, _source: reading
        """Gives a reading another instance if another source has its series."""
        self._kind, _, bridge = client_id.partition(":")
        of_kind = f"tidegate/{self._kind}/readings"
        self._bridge = f"tidegate/{self._kind}/{bridge}"
        self._figures = ("tidegate/bridges/readings", of_kind, f"{self._bridge}/readings")
        self._publish = publish
        self._counters = counters
        self._clock = clock
        self._retain = retain
        self._logged: set[str] = set()
        self._plausibility = Plausibility()

    def publish(self, reading: Reading, source: str = "") -> bool:
        """Publish; return whether the broker took it. The first of each node is logged.

        `source` tells several sources of one bridge apart.
        """
        now = self._clock.wall_ms()
        reading = self._marked(self.keep_apart(self._spelled(reading, now), source))
        code = self._publish(
            to_message(reading, self.client_id, now, self._clock.monotonic(), retain=self._retain)
        )
        if code >= FAILURE:
            self._warn_once(f"readings are not taken: {code.name}")
            return False
        for name in self._figures:
            self._counters.add(name)
        self.on_reading(reading)
        if self._is_new(reading.node):
            logger.info("first reading: %s", reading)
        return True

    def reject(self, reason: str, count: int = 1, example: str = "") -> None:
        """Count readings that can never be published, and show the last of them.

        Each kind of reason is logged once: reasons that differ by numbers and quoted values are of
        one kind. `example` is what the source wrote.
        """
        self._counters.add(f"tidegate/{self._kind}/rejected", count)
        told = (f"{reason}: {example}" if example else reason)[:TOLD_MAX]
        self._counters.set(f"{self._bridge}/refused", told)
        if self._is_new(f"refused {VALUES.sub('', reason)[:TOLD_MAX]}"):
            logger.warning("%s: a reading was refused: %s", self.client_id, told)

    def wonder(self, names: list[str]) -> None:
        """Log, once for each, names that do not say what their numbers mean."""
        new = [name for name in names if len(name) <= TOLD_MAX and self._is_new(f"name {name}")]
        if new:
            logger.warning(
                "%s: no unit is known for %s: say in `map` what they mean, such as"
                ' %s = { quantity = "...", unit = "..." }',
                self.client_id,
                ", ".join(new),
                json.dumps(new[0], ensure_ascii=False),
            )

    def _marked(self, reading: Reading) -> Reading:
        """Return the reading with what is wrong with it, which is counted and logged once."""
        quality = self._plausibility.quality(reading)
        if not quality:
            return reading
        self._counters.add(f"tidegate/{self._kind}/marked")
        if self._is_new(f"marked {reading.topic} {quality}"):
            logger.warning("%s: %s: %s", self.client_id, quality.replace("_", " "), reading)
        return replace(reading, quality=quality)

    def _spelled(self, reading: Reading, now: int) -> Reading:
        """Return the reading with the registry's names and a time that can be right."""
        time = reading.time
        if not is_good(time, now):
            self._counters.add(f"tidegate/{self._kind}/clock_errors")
            time = now
        quantity, unit = quantity_name(reading.quantity), unit_name(reading.unit)
        if (quantity, unit, time) == (reading.quantity, reading.unit, reading.time):
            return reading
        return replace(reading, quantity=quantity, unit=unit, time=time)

    def _warn_once(self, text: str) -> None:
        if self._is_new(text):
            logger.warning("%s: %s", self.client_id, text)

    def _is_new(self, key: str) -> bool:
        if key in self._logged or len(self._logged) == NAMES_MAX:
            return False
        self._logged.add(key)
        return True
