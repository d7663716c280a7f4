"""Brings what is retained here up to a fleet's broker that does not have it yet."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from time import perf_counter
from typing import Protocol

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.packets import Publish, SubscriptionRequest
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import topic_matches
from gateway.routing.retained.retained import RetainedMessages
from gateway.settings.uplink import RuleSettings, UplinkSettings
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import OutboxRow
from gateway.storage.state.note import note, note_of, noted_parts
from gateway.uplink.rules.rules import RuleSet
from gateway.uplink.rules.targets import fill

logger = logging.getLogger(__name__)

MAX_WAITING = 64
"""Retained messages of one uplink in the outbox at a time: live ones pass them, and what comes for
the same topic meanwhile takes their place."""

PAGE = 256
"""Entries of the broker's retained messages that are read at a time."""

SLICE = 0.002
"""Seconds for which messages are matched before everybody else has a turn."""

CAPACITY_SECONDS = 1.0
"""Seconds between two checks whether a full outbox has room."""

COMPARE_SECONDS = 10.0
"""For how long a fleet's broker is listened to for what it retains, on request."""

MAX_STALE = 10_000
"""Topics to clear at the fleet that are known at a time; more need another request."""

TOPIC = "{topic}"

NOTE = "retained_up"
"""Below it stands on disk which rules' retained messages an uplink's fleet has."""


@dataclass(frozen=True, slots=True)
class RetainedParts:
    """What the retained messages of all uplinks are brought up with."""

    retained: RetainedMessages
    rules: RuleSet
    outbox: Outbox
    database: Database
    writer: Writer
    clock: Clock


class Subscriber(Protocol):
    """The connection to the fleet's broker, which says what is retained there."""

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Ask for messages."""
        ...

    def unsubscribe(self, *topic_filters: str) -> None:
        """Ask for them no more."""
        ...

    def flush(self) -> None:
        """Send what was asked."""
        ...


class RetainedUp:
    """One uplink's retained messages, of its rules with `retain`, in the lane `backlog`.

    Each rule's are brought up once: with its first connection, and again where the fleet's broker
    has no session of the gateway, since it may have lost everything. Which rules are done is on
    disk, so a pass that was cut short begins anew. At most MAX_WAITING are in the outbox.
    Counted in `tidegate/uplink/retained_up`.
    """

    def __init__(self, parts: RetainedParts, counters: Counters, name: str, uplink: int) -> None:
        self._parts = parts
        self._counters = counters
        self._note = note_of(NOTE, name)
        self._name = f"uplink {name}".rstrip()
        self._uplink = uplink
        self._done: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._settings: UplinkSettings | None = None
        self._client: Subscriber | None = None
        self._own: dict[str, str] = {}
        self._stale: dict[str, None] = {}
        parts.outbox.on_change.append(self._changed.set)
        counters.set("tidegate/uplink/retained_up", 0)

    async def load(self) -> None:
        """Learn of which rules the fleet has what is retained."""
        self._done.update(await noted_parts(self._parts.database, self._note))

    def go_on(self, before: "RetainedUp") -> None:
        """Know what an earlier link has brought up to the same fleet, which ends with this."""
        for key in before.close() - self._done:
            note(self._parts.writer, note_of(self._note, key))
            self._done.add(key)

    def close(self) -> set[str]:
        """End, also without a connection; return of which rules the fleet has what is retained."""
        self._stop()
        if self._changed.set in self._parts.outbox.on_change:
            self._parts.outbox.on_change.remove(self._changed.set)
        return self._done

    def superseded(self, row: OutboxRow) -> bool:
        """Return whether the row is not what its topic retains now: the fleet is not to keep it."""
        if not row.message.retain:
            return False
        current = self._parts.retained.get(row.message.topic)
        if current is None:
            return bool(row.message.payload)  # it was cleared, or is
        return current.received_at != row.time

    def connected(self, settings: UplinkSettings, client: Subscriber, *, present: bool) -> None:
        """Bring up what this connection's fleet lacks; `present` is whether it has a session."""
        self._settings, self._client = settings, client
        self._begin(anew=not present)

    def disconnected(self) -> None:
        """Stop; what is in the outbox goes up by the next connection."""
        self._settings = self._client = None
        self._own = {}
        self._stop()

    def again(self) -> None:
        """Bring up everything that is retained, whether the fleet has it or not.

        Of a connection that is up, topics that carry this gateway's id are compared, too: those
        that nothing is retained of here are cleared there.
        """
        if self._client is not None:
            self._begin(anew=True)
            self._ask(self._client)
            return
        for key in self._done:  # with the next connection
            note(self._parts.writer, note_of(self._note, key), there=False)
        self._done.clear()

    def _ask(self, client: Subscriber) -> None:
        """Subscribe to what the fleet's broker retains of this gateway alone, for a while."""
        settings = self._settings
        self._own = {
            prefix: rule.topic
            for rule in _retaining(settings)
            if (prefix := _own_prefix(settings, rule))
        }
        filters = [f"{prefix}#" for prefix in self._own]
        if not filters:
            return
        client.subscribe(*(SubscriptionRequest(each, no_local=True) for each in filters))
        client.flush()

        def end() -> None:
            if self._client is client:
                self._own = {}
                client.unsubscribe(*filters)
                client.flush()

        asyncio.get_running_loop().call_later(COMPARE_SECONDS, end)

    def compare(self, publish: Publish) -> bool:
        """Return whether this is what the fleet's broker retains, and was asked for here."""
        if not self._own or not publish.retain:
            return False
        prefix = next((each for each in self._own if publish.topic.startswith(each)), None)
        if prefix is None:
            return False
        topic = publish.topic.removeprefix(prefix)
        if publish.payload and topic_matches(self._own[prefix], topic):
            if self._task is None and self._parts.retained.get(topic) is None:
                self._task = asyncio.get_running_loop().create_task(self._clear())
            if len(self._stale) < MAX_STALE:
                self._stale[topic] = None
        return True

    async def _clear(self) -> None:
        """Clear topics at the fleet that nothing is retained of here."""
        while self._stale:
            topic, retained = next(iter(self._stale)), self._parts.retained
            del self._stale[topic]
            while retained.get(topic) is None and not self._put(_clearing(topic, self._parts)):
                await self._wait()
        self._task = None

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begin(self, *, anew: bool) -> None:
        self._stop()
        rules = {key_of(self._settings, rule): rule for rule in _retaining(self._settings)}
        for key in [each for each in self._done if anew or each not in rules]:
            self._done.discard(key)
            note(self._parts.writer, note_of(self._note, key), there=False)
        lacking = {key: rule.topic for key, rule in rules.items() if key not in self._done}
        if lacking:
            self._task = asyncio.get_running_loop().create_task(self._bring_up(lacking))

    async def _bring_up(self, lacking: dict[str, str]) -> None:
        """Bring up what matches the topic filters of these rules, by key."""
        topics, count = tuple(dict.fromkeys(lacking.values())), 0
        log = self._parts.retained.log
        cursor = log.open()
        try:
            until = perf_counter() + SLICE
            while not cursor.done:
                for publication in log.read(cursor, PAGE):
                    if perf_counter() >= until:
                        await asyncio.sleep(0)
                        until = perf_counter() + SLICE
                    if any(topic_matches(each, publication.topic) for each in topics):
                        count += await self._add(publication)
        finally:
            log.close(cursor)
        for key in lacking:
            self._done.add(key)
            note(self._parts.writer, note_of(self._note, key))
        self._parts.outbox.end_turn()
        if count:
            logger.info("%s: %d retained messages go up", self._name, count)
        await self._clear()

    async def _add(self, publication: Publication) -> int:
        """Put a message into the outbox once there is room, if it is retained still."""
        retained, clock = self._parts.retained, self._parts.clock
        while retained.get(publication.topic) is publication:
            if publication.expired(clock.monotonic()):
                return 0
            if self._put(publication.new_message(0)):
                return 1
            await self._wait()
        return 0

    def _put(self, message: Message) -> bool:
        """Put a message into the outbox; return False if there is no room now."""
        rules = self._parts.rules
        if rules.brought_up.waiting(self._uplink) >= MAX_WAITING:
            return False
        added = rules.bring_up(message, self._uplink)
        if added:
            self._parts.outbox.end_turn()
            self._counters.add("tidegate/uplink/retained_up", added)
        return added is not None

    async def _wait(self) -> None:
        """Return after a commit, or when time has passed: room also comes without one."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CAPACITY_SECONDS):
                await self._changed.wait()


def _retaining(settings: UplinkSettings | None) -> Iterable[RuleSettings]:
    return () if settings is None else (rule for rule in settings.targets if rule.retain)


def _own_prefix(settings: UplinkSettings | None, rule: RuleSettings) -> str:
    """Return what stands before the local topic where that is this gateway's alone, else ""."""
    if settings is None:
        return ""
    if rule.target is None:
        return settings.topic("data/")
    before = rule.target.removesuffix(TOPIC)
    if before == rule.target or "{gateway}" not in before.split("/"):
        return ""
    prefix = fill(before, settings.gateway_id, "")
    return "" if "{" in before.replace("{gateway}", "") else prefix


def _clearing(topic: str, parts: RetainedParts) -> Message:
    """Return the message that clears a topic."""
    now = parts.clock.wall_ms()
    return Message(topic, b"", 1, retain=True, received_at=now, arrived=parts.clock.monotonic())


def key_of(settings: UplinkSettings | None, rule: RuleSettings) -> str:
    """Return what a rule is noted by: the same until its messages go elsewhere, or are others."""
    url = "" if settings is None else settings.url
    words: Sequence[str | None] = (url, rule.topic, rule.where, rule.target, rule.stream)
    return sha256("\0".join(word or "" for word in words).encode()).hexdigest()[:16]
