"""The one way of a bridge's readings into the broker, with their counts and first log line."""

import logging

from gateway.bridges.interfaces import Publish
from gateway.bridges.readings.reading import Reading, to_message
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import FAILURE

NAMES_MAX = 256
"""Names and texts that are logged once each; beyond them only the counters speak."""

logger = logging.getLogger(__name__)


class ReadingPublisher:
    """Publishes readings as the client `client_id`."""

    def __init__(
        self, client_id: str, *, publish: Publish, counters: Counters, clock: Clock
    ) -> None:
        self._client_id = client_id
        self._publish = publish
        self._counters = counters
        self._clock = clock
        self._logged: set[str] = set()

    def publish(self, reading: Reading) -> bool:
        """Publish; return whether the broker took it. The first of each node is logged."""
        code = self._publish(
            to_message(reading, self._client_id, self._clock.wall_ms(), self._clock.monotonic())
        )
        if code >= FAILURE:
            self._warn_once(f"readings are not taken: {code.name}")
            return False
        self._counters.add("tidegate/serial/readings")
        if self._is_new(reading.node):
            logger.info("first reading: %s", reading)
        return True

    def reject(self, reason: str, count: int = 1) -> None:
        """Count readings that can never be published, and log each reason once."""
        self._counters.add("tidegate/serial/rejected", count)
        self._warn_once(f"a reading was refused: {reason}")

    def _warn_once(self, text: str) -> None:
        if self._is_new(text):
            logger.warning("%s: %s", self._client_id, text)

    def _is_new(self, key: str) -> bool:
        if key in self._logged or len(self._logged) == NAMES_MAX:
            return False
        self._logged.add(key)
        return True
