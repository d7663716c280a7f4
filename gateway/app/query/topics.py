"""The last message of each topic, how often one comes, and what fell silent: `topics`, `topic`."""

import base64
from collections import OrderedDict
from collections.abc import Iterable

from gateway.app.parts import Core, Run
from gateway.app.query.clients import in_order
from gateway.app.query.watchers import Watchers
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.mqtt.errors import MqttError
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import check_topic_filter, split_shared, topic_matches

PAYLOAD_BYTES = 256
"""Bytes of the last payload that are kept."""

MAXIMUM_TOPIC = 1_024
"""Bytes of a topic name; longer ones are not remembered."""

LATE_SECONDS = 0.25
"""Seconds after which messages are looked at: of a topic that has many, at the last alone."""

MAXIMUM_HELD = 1_000
"""Publications that are held until then; one more has them looked at at once."""

MAXIMUM_HELD_BYTES = 1024 * 1024
"""Bytes of these likewise."""

WEIGHT = 0.2
"""How much the newest interval counts in the usual one."""

KNOWN_INTERVALS = 3
"""Messages from which on an interval is usual."""

SILENT_TIMES = 3.0
"""A topic is silent after so many of its usual intervals, and SILENT_SECONDS at least."""

SILENT_SECONDS = 5.0

MAXIMUM_RECEIVERS = 100
"""Receivers of a topic that are shown."""

MAXIMUM_RECEIVER_LETTERS = 16 * 1024
"""Characters of their client identifiers."""

STATES = ("all", "silent")
SORTS = ("topic", "rate", "silent_seconds", "count", "bytes")

Held = tuple[Publication, int, int]
"""A publication, the number of the first of its messages that is meant, and how many are."""


class Topic:
    """What is remembered of a topic."""

    __slots__ = ("arrived", "bytes", "client_id", "count", "interval", "payload", "qos", "size")

    def __init__(self) -> None:
        self.arrived = 0.0  # the monotonic second of the last message
        self.count = 0
        self.bytes = 0
        self.interval = 0.0
        self.payload = b""
        self.size = 0
        self.qos = 0
        self.client_id: str | None = None

    def silent(self, now: float) -> bool:
        """Return whether it has said nothing for much longer than is usual."""
        if self.count < KNOWN_INTERVALS:
            return False
        return now - self.arrived > max(SILENT_SECONDS, SILENT_TIMES * self.interval)


class TopicMemory:
    """Remembers topics, those that had no message for longest forgotten first.

    Publications are held for a moment and looked at together, from the newest on, so that a topic
    with many messages costs no more than one with few.
    """

    def __init__(self, run: Run, watchers: Watchers) -> None:
        self._clock = run.clock
        self._counters = run.counters
        self._run = run
        self._watchers = watchers
        self._looking = False
        self.maximum = 0
        self._held: list[Held] = []
        self._held_bytes = 0
        self.topics: OrderedDict[str, Topic] = OrderedDict()
        self.remember(run.configuration.broker.remembered_topics)

    def remember(self, maximum: int) -> None:
        """Remember so many topics from now on, 0 for none."""
        self.maximum = maximum
        if maximum:
            self._watchers.add(self.note)
        else:
            self._watchers.discard(self.note)
        while len(self.topics) > maximum:
            self.topics.popitem(last=False)
        if maximum and not self._looking:
            self._looking = True
            self._run.every(LATE_SECONDS, self.look)

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Hold messages that are being delivered."""
        self._held.append((publication, first, count))
        self._held_bytes += len(publication.packets.data)
        if len(self._held) >= MAXIMUM_HELD or self._held_bytes >= MAXIMUM_HELD_BYTES:
            self.look()

    def look(self) -> None:
        """Remember what the messages that are held say."""
        held, self._held, self._held_bytes = self._held, [], 0
        newest: dict[str, tuple[Publication, int]] = {}
        counts: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for publication, first, count in reversed(held):
            packets = publication.packets
            if not publication.mixed:
                size = packets.payload_bytes(first, count)
                runs = [(publication.topic, first + count - 1, count, size)]
            else:
                numbers = range(first + count - 1, first - 1, -1)
                runs = [
                    (publication.topic_of(each), each, 1, packets.payload_bytes(each, 1))
                    for each in numbers
                ]
            for topic, number, messages, size in runs:
                if topic in counts:
                    counts[topic] += messages
                    sizes[topic] += size
                else:
                    newest[topic] = publication, number
                    counts[topic], sizes[topic] = messages, size
        for topic, (publication, number) in newest.items():
            self._remember(topic, publication, number, counts[topic], sizes[topic])

    def _remember(
        self, topic: str, publication: Publication, number: int, count: int, size: int
    ) -> None:
        if topic.startswith("$") or len(topic) > MAXIMUM_TOPIC:
            return
        known = self.topics.get(topic)
        if known is None:
            known = self.topics[topic] = Topic()
            if len(self.topics) > self.maximum:
                self.topics.popitem(last=False)
                self._counters.add("tidegate/topics/forgotten")
        else:
            self.topics.move_to_end(topic)
            interval = max(0.0, publication.arrived - known.arrived) / count
            weight = WEIGHT if known.count > 1 else 1.0
            known.interval += weight * (interval - known.interval)
        payload = publication.packets.one(number)
        known.arrived, known.qos = publication.arrived, publication.qos
        known.client_id = publication.client_id
        known.count += count
        known.bytes += size
        known.size, known.payload = len(payload), bytes(payload[:PAYLOAD_BYTES])


class TopicQueries:
    """Answers by what is remembered, and by what the broker knows of subscriptions."""

    def __init__(self, run: Run, core: Core, responder: Responder, memory: TopicMemory) -> None:
        self._broker = core.broker
        self._clock = run.clock
        self._memory = memory
        responder.know("topics", self._topics, "match", "state", "sort", "offset", "limit")
        responder.know("topic", self._topic, "topic")

    async def _topics(self, request: Request) -> Answer:
        if not self._memory.maximum:
            raise RequestError("topics are not remembered: [broker] remembered_topics is 0")
        match = request.text("match")
        state, sort = request.word("state", STATES), request.word("sort", SORTS)
        if match is not None:
            _check(match)
        self._memory.look()
        now, topics = self._clock.monotonic(), self._memory.topics
        keys: list[tuple[float, str]] = []
        for name, topic in list(topics.items()):
            await request.breathe()
            if match is not None and not topic_matches(match, name):
                continue
            if state == "all" or topic.silent(now):
                keys.append((_key(topic, sort, now), name))
        names = [name for _, name in await in_order(request, keys)]
        return await request.page(names, self._row)

    def _row(self, name: str) -> dict[str, object] | None:
        topic = self._memory.topics.get(name)
        if topic is None:
            return None
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
            "silent": topic.silent(now),
            "retained": self._broker.retained.get(name) is not None,
        }

    async def _topic(self, request: Request) -> Answer:
        name = request.needed("topic")
        if not name or "#" in name or "+" in name or "\0" in name:
            raise RequestError(f"topic {name[:80]!r} is no topic name")
        self._memory.look()
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
        kept = None if retained is None else retained.packets.one(0)
        return {
            "topic": self._row(name),
            "remembered": self._memory.maximum > 0,
            "receivers": _first(receivers),
            "filtered": _first(filtered),
            "retained": None if kept is None else payload_of(kept[:PAYLOAD_BYTES], len(kept)),
        }


def _first(names: Iterable[str]) -> list[str]:
    """Return the first of some names, as many as an answer has room for."""
    found: list[str] = []
    letters = 0
    for name in names:
        letters += len(name)
        if len(found) >= MAXIMUM_RECEIVERS or (found and letters > MAXIMUM_RECEIVER_LETTERS):
            break
        found.append(name)
    return found


def _rate(topic: Topic, now: float) -> float:
    """Return about how many messages a second come now."""
    if topic.count < KNOWN_INTERVALS or topic.silent(now):
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
    """Return a payload as text where it is UTF-8, or else in Base64; it may have been cut."""
    try:
        return {"payload": payload.decode(), "size": size}
    except UnicodeDecodeError as error:
        if size > len(payload) and error.start >= len(payload) - 3:  # within the last character
            return {"payload": payload[: error.start].decode(), "size": size}
    return {"payload_base64": base64.b64encode(payload).decode(), "size": size}


def _check(topic_filter: str) -> None:
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:
        raise RequestError(f"match {topic_filter[:80]!r}: {error.reason}") from None
