"""The sensors that were heard, each with its last reading and a few before it."""

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from tui.reading import Reading, read
from tui.text import printable

MAX_SENSORS = 5_000
"""sensors kept; the one least recently heard is dropped and counted"""
MAX_TOPIC = 256
"""characters of a topic; a message on a longer one is counted and not kept"""
MAX_RECENT = 32
"""numbers kept of each sensor for its sparkline"""
MAX_PAYLOAD = 1_024
"""bytes kept of the last payload"""
LATE_FACTOR = 3.0
"""a sensor is late when it was silent for so many times its usual interval"""
LATE_AFTER = 30.0
"""seconds before a sensor can be late at all"""
NO_READINGS = ("/command", "/command/answer", "/set")
"""ends of topics on which sensors are told something (docs/serial-protocol.md, "Commands")"""
SMOOTHING = 0.3
"""weight of the newest interval in the usual one"""


@dataclass(slots=True)
class Sensor:
    """One topic: its last reading, when it was heard and how often it usually is."""

    topic: str
    shown_name: str
    """the topic below `sensors/`, printable"""
    reading: Reading
    payload: bytes
    updated: float | None
    """seconds since 1970; None for a retained message that does not say when it was measured"""
    retained: bool
    heard: float | None = None
    """when the last message came that was not retained"""
    usual_interval: float | None = None
    messages: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))

    def age(self, now: float) -> float | None:
        """Return the seconds since the last reading; None when nobody knows."""
        return None if self.updated is None else max(0.0, now - self.updated)

    def hear(self, payload: bytes, now: float, *, retained: bool, listening_since: float) -> None:
        """Take the next message; an interval in which nobody listened says nothing."""
        self.reading = read(payload)
        self.payload = payload[:MAX_PAYLOAD]
        self.retained = retained
        self.messages += 1
        if self.reading.number is not None:
            self.recent.append(self.reading.number)
        if retained:
            self.updated = self.reading.time
            return
        if self.heard is not None and self.heard >= listening_since:
            self._note_interval(now - self.heard)
        self.heard = self.updated = now

    def _note_interval(self, interval: float) -> None:
        usual = self.usual_interval
        self.usual_interval = interval if usual is None else usual + SMOOTHING * (interval - usual)


class Sensors:
    """At most MAX_SENSORS sensors by topic, the least recently heard first."""

    def __init__(self, limit: int = MAX_SENSORS) -> None:
        self.limit = limit
        self.dropped = 0
        """sensors forgotten because there were too many"""
        self.refused = 0
        """messages whose topic was too long"""
        self.revision = 0
        """rises whenever a sensor is added or dropped"""
        self._listening_since = 0.0
        self._listened_until = math.inf
        self._by_topic: OrderedDict[str, Sensor] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_topic)

    def get(self, topic: str) -> Sensor | None:
        """Return the sensor of this topic, or None."""
        return self._by_topic.get(topic)

    def hear(self, topic: str, payload: bytes, now: float, *, retained: bool = False) -> None:
        """Take a message; `now` is in seconds since 1970. Never raises."""
        if len(topic) > MAX_TOPIC:
            self.refused += 1
            return
        if topic.endswith(NO_READINGS):
            return
        sensor = self._by_topic.get(topic)
        if sensor is None:
            sensor = self._add(topic)
        self._by_topic.move_to_end(topic)
        sensor.hear(payload, now, retained=retained, listening_since=self._listening_since)

    def matching(self, words: str) -> list[str]:
        """Return, sorted, the topics that contain each of these words, in any case."""
        wanted = words.casefold().split()
        return sorted(
            topic for topic in self._by_topic if all(word in topic.casefold() for word in wanted)
        )

    def listen(self, now: float) -> None:
        """Count silence from now on: there is a connection."""
        self._listening_since, self._listened_until = now, math.inf

    def stop_listening(self, now: float) -> None:
        """Count silence no longer: there is no connection."""
        self._listened_until = min(now, self._listened_until)

    def is_late(self, sensor: Sensor, now: float) -> bool:
        """Return whether the sensor is silent for much longer than it usually is."""
        if sensor.usual_interval is None or sensor.heard is None:
            return False
        silent_since = max(sensor.heard, self._listening_since)
        silence = min(now, self._listened_until) - silent_since
        return silence > max(LATE_AFTER, LATE_FACTOR * sensor.usual_interval)

    def late(self, now: float) -> int:
        """Return how many sensors are late."""
        return sum(self.is_late(sensor, now) for sensor in self._by_topic.values())

    def _add(self, topic: str) -> Sensor:
        if len(self._by_topic) >= self.limit:
            self._by_topic.popitem(last=False)
            self.dropped += 1
        self.revision += 1
        name = printable(topic.removeprefix("sensors/"), MAX_TOPIC)
        sensor = Sensor(topic, name, Reading(""), b"", None, retained=False)
        self._by_topic[topic] = sensor
        return sensor
