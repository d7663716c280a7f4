"""The last message of each topic, its usual interval, and silent topics: `topics`, `topic`."""

from collections.abc import Iterable, Iterator
from itertools import islice

from gateway.app.parts import Core, Run
from gateway.app.query.clients import in_order
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.broker.publishing.topic_memory import LENGTH, PAYLOAD_BYTES, Topic, TopicMemory
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter, split_shared, topic_matches

KNOWN_INTERVALS = 3
"""Messages after which an interval is usual."""

SILENT_TIMES = 3.0
"""A topic is silent after so many of its usual intervals, and SILENT_SECONDS at least."""

SILENT_SECONDS = 5.0

MAXIMUM_RECEIVERS = 100
"""Receivers of a topic that are shown."""

MAXIMUM_RECEIVER_LETTERS = 16 * 1024
"""Characters of their client identifiers."""

SWEPT = 500
"""Topics that are read in a second, so that it takes less than a hundredth of a core."""

STATES = ("all", "silent")
SORTS = ("topic", "rate", "silent_seconds", "count", "bytes")


class TopicQueries:
    """Answers from the remembered topics and the broker's subscriptions."""

    def __init__(self, run: Run, core: Core, responder: Responder) -> None:
        self._run = run
        self._broker = core.broker
        self._clock = run.clock
        self._memory = TopicMemory(run.counters, core.broker.admissions.forget_topic)
        self._sweep: Iterator[None] | None = None
        responder.know("topics", self._topics, "match", "state", "sort", "offset", "limit")
        responder.know("topic", self._topic, "topic")
        self.remember(run.configuration.broker.remembered_topics)

    def remember(self, maximum: int) -> None:
        """Remember so many topics from now on, 0 for none."""
        self._memory.limit(maximum)
        self._broker.topic_memory = self._memory if maximum else None
        self._broker.admissions.joined = None
        if maximum and self._sweep is None:
            self._sweep = self._memory.sweep()
            self._run.every(1.0, self._read_some)

    def _read_some(self) -> None:
        """Release publications of last messages, a bounded number of them."""
        if sum(1 for _ in islice(self._sweep or (), SWEPT)) < SWEPT:
            self._sweep = self._memory.sweep()

    async def _topics(self, request: Request) -> Answer:
        if not self._memory.maximum:
            raise RequestError("topics are not remembered: [broker] remembered_topics is 0")
        match = request.text("match")
        state, sort = request.word("state", STATES), request.word("sort", SORTS)
        if match is not None:
            _check(match)
        now, topics = self._clock.monotonic(), self._memory.topics
        keys: list[tuple[float, str]] = []
        for key, topic in list(topics.items()):
            await request.breathe()
            name = key[LENGTH:].decode()
            if match is not None and not topic_matches(match, name):
                continue
            topic.read()
            if state == "all" or is_silent(topic, now):
                keys.append((_key(topic, sort, now), name))
        names = [name for _, name in await in_order(request, keys)]
        return await request.page(names, self._row)

    def _row(self, name: str) -> dict[str, object] | None:
        topic = self._memory.find(name)
        if topic is None:
            return None
        topic.read()
        now = self._clock.monotonic()
        usual = topic.count >= KNOWN_INTERVALS
        return {
            "topic": name,
            "time": self._clock.wall_ms() - round(1000 * (now - topic.arrived)),
            **payload_of(topic.payload, topic.size),
            "qos": topic.qos,
            "publisher": topic.client_id,
            "count": topic.count,
            "bytes": topic.bytes,
            "interval_seconds": round(topic.interval, 3) if usual else None,
            "rate": _rate(topic, now),
            "silent_seconds": round(max(0.0, now - topic.arrived), 1),
            "silent": is_silent(topic, now),
            "retained": self._broker.retained.get(name) is not None,
        }

    async def _topic(self, request: Request) -> Answer:
        name = request.needed("topic")
        if not name or "#" in name or "+" in name or "\0" in name:
            raise RequestError(f"topic {name[:80]!r} is no topic name")
        await request.breathe()
        router = self._broker.router
        route = router.route(router.match(name))
        receivers: dict[str, None] = {}
        for subscriber in (each.subscriber for each in route.sessions):
            receivers[subscriber.client_id] = None
        filtered: dict[str, None] = {}
        for _, subscription in list(router.subscriptions()) if route.selective else ():
            await request.breathe()
            client_id = subscription.subscriber.client_id
            topic_filter = split_shared(subscription.topic_filter)[1]
            if client_id not in receivers and topic_matches(topic_filter, name):
                filtered[client_id] = None
        retained = self._broker.retained.get(name)
        packet = None if retained is None else retained.packets.one(0)
        return {
            "topic": self._row(name),
            "remembered": self._memory.maximum > 0,
            "receivers": _first(receivers),
            "filtered": _first(filtered),
            "retained": None if packet is None else payload_of(packet[:PAYLOAD_BYTES], len(packet)),
        }


def _first(names: Iterable[str]) -> list[str]:
    """Return the first of some names, as many as fit into an answer."""
    found: list[str] = []
    letters = 0
    for name in names:
        letters += len(name)
        if len(found) >= MAXIMUM_RECEIVERS or (found and letters > MAXIMUM_RECEIVER_LETTERS):
            break
        found.append(name)
    return found


def is_silent(topic: Topic, now: float) -> bool:
    """Return whether a topic has had no message for much longer than usual."""
    if topic.count < KNOWN_INTERVALS:
        return False
    return now - topic.arrived > max(SILENT_SECONDS, SILENT_TIMES * topic.interval)


def _rate(topic: Topic, now: float) -> float:
    """Return about how many messages a second arrive now."""
    if topic.count < KNOWN_INTERVALS or is_silent(topic, now):
        return 0.0
    return round(1 / max(topic.interval, 1e-3), 2)


def _key(topic: Topic, sort: str, now: float) -> float:
    if sort == "topic":
        return 0.0
    if sort == "rate":
        return -_rate(topic, now)
    if sort == "silent_seconds":
        return topic.arrived
    return -(topic.count if sort == "count" else topic.bytes)


def payload_of(payload: bytes, size: int) -> dict[str, object]:
    """Return a payload as text if it is UTF-8, or else in Base64; it may be truncated."""
    try:
        return {"payload": payload.decode(), "size": size}
    except UnicodeDecodeError as error:
        if size > len(payload) and error.start >= len(payload) - 3:  # within the last character
            return {"payload": payload[: error.start].decode(), "size": size}
    import base64

    return {"payload_base64": base64.b64encode(payload).decode(), "size": size}


def _check(topic_filter: str) -> None:
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:
        raise RequestError(f"match {topic_filter[:80]!r}: {error.reason}") from None
