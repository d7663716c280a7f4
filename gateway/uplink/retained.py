"""Sends this broker's retained messages to a fleet's broker that lacks them."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from gateway.background import background
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.hashes import sha256
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
"""Retained messages of one uplink in the outbox at a time: live ones overtake them, and newer
messages of the same topic replace them."""

PAGE = 256
"""Entries of the broker's retained messages that are read at a time."""

SLICE = 0.002
"""Seconds for which messages are matched before other tasks run."""

CAPACITY_SECONDS = 1.0
"""Seconds between two checks whether a full outbox has capacity."""

COMPARE_SECONDS = 10.0
"""Seconds for which retained messages of the fleet's broker are received, on request."""

MAX_STALE = 10_000
"""Topics to clear at the fleet that are known at a time; more need another request."""

MAX_REFUSED = 10_000
"""Retained messages that a fleet rejected and that are known at a time; the oldest are forgotten,
and tried again with the next pass."""

TOPIC = "{topic}"

NOTE = "retained_up"
"""Prefix of the notes on disk of rules whose retained messages an uplink's fleet has."""


@dataclass(frozen=True, slots=True)
class RetainedParts:
    """What all uplinks use to send retained messages."""

    retained: RetainedMessages
    rules: RuleSet
    outbox: Outbox
    database: Database
    writer: Writer
    clock: Clock


class Subscriber(Protocol):
    """The connection to the fleet's broker, which reports what is retained there."""

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Subscribe."""
        ...

    def unsubscribe(self, *topic_filters: str) -> None:
        """Unsubscribe."""
        ...

    def flush(self) -> None:
        """Send the requests."""
        ...


class RetainedUp:
    """One uplink's retained messages, of its rules with `retain`, in the lane `backlog`.

    Each rule's are sent once: with its first connection, and again if the fleet's broker has no
    session of the gateway, since it may have lost everything. Finished rules are noted on disk, so
    an interrupted pass begins again. At most MAX_WAITING are in the outbox. Counted in
    `tidegate/uplink/retained_up`.
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
        self._refused: dict[str, int | None] = {}  # when they were received here, by topic
        parts.outbox.on_change.append(self._changed.set)
        counters.set("tidegate/uplink/retained_up", 0)

    async def load(self) -> None:
        """Load which rules' retained messages the fleet has."""
        self._done.update(await noted_parts(self._parts.database, self._note))

    def continue_from(self, before: "RetainedUp") -> None:
        """Continue from an earlier link to the same fleet, which ends with this."""
        for key in before.close() - self._done:
            note(self._parts.writer, note_of(self._note, key))
            self._done.add(key)

    def close(self) -> set[str]:
        """Stop, also without a connection.

        Return the rules whose retained messages the fleet has.
        """
        self._stop()
        if self._changed.set in self._parts.outbox.on_change:
            self._parts.outbox.on_change.remove(self._changed.set)
        return self._done

    def superseded(self, row: OutboxRow) -> bool:
        """Return whether the row is outdated: its topic now retains another message."""
        if not row.message.retain:
            return False
        current = self._parts.retained.get(row.message.topic)
        if current is None:
            return bool(row.message.payload)  # it was cleared, or is to be cleared
        return current.received_at != row.time

    def refused(self, row: OutboxRow) -> None:
        """Note a message that the fleet rejected: it is not brought up again by itself.

        At a fleet without sessions it would end each connection anew.
        """
        if row.message.retain:
            self._refused.pop(row.message.topic, None)
            self._refused[row.message.topic] = row.time
            if len(self._refused) > MAX_REFUSED:
                del self._refused[next(iter(self._refused))]
            self._parts.rules.brought_up.refused(row, self._uplink)

    def connected(self, settings: UplinkSettings, client: Subscriber, *, present: bool) -> None:
        """Send what this connection's fleet lacks; `present` is whether it has a session."""
        self._settings, self._client = settings, client
        self._begin(anew=not present)

    def disconnected(self) -> None:
        """Stop; rows in the outbox are sent by the next connection."""
        self._settings = self._client = None
        self._own = {}
        self._stop()

    def again(self) -> None:
        """Send all retained messages, whether the fleet has them or not.

        If connected, topics with this gateway's id are compared, too: those without a retained
        message here are cleared there.
        """
        self._refused.clear()
        if self._client is not None:
            self._begin(anew=True)
            self._ask(self._client)
            return
        for key in self._done:  # with the next connection
            note(self._parts.writer, note_of(self._note, key), there=False)
        self._done.clear()

    def _ask(self, client: Subscriber) -> None:
        """Subscribe for a while to the retained messages of this gateway at the fleet's broker."""
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
        """Return whether this is a requested retained message of the fleet's broker."""
        if not self._own or not publish.retain:
            return False
        prefix = next((each for each in self._own if publish.topic.startswith(each)), None)
        if prefix is None:
            return False
        topic = publish.topic.removeprefix(prefix)
        if publish.payload and topic_matches(self._own[prefix], topic):
            if self._task is None and self._parts.retained.get(topic) is None:
                self._task = background(self._clear())
            if len(self._stale) < MAX_STALE:
                self._stale[topic] = None
        return True

    async def _clear(self) -> None:
        """Clear topics at the fleet that have no retained message here."""
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
            self._task = background(self._bring_up(lacking))

    async def _bring_up(self, lacking: dict[str, str]) -> None:
        """Send the retained messages for the topic filters of these rules, by key."""
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
            logger.info("%s: %d retained messages are sent", self._name, count)
        await self._clear()

    async def _add(self, publication: Publication) -> int:
        """Add a message to the outbox once it fits, if it is still retained."""
        retained, clock = self._parts.retained, self._parts.clock
        while retained.get(publication.topic) is publication:
            refused = self._refused.get(publication.topic, 0) == publication.received_at
            if refused or publication.expired(clock.monotonic()):
                return 0
            if self._put(publication.new_message(0)):
                return 1
            await self._wait()
        return 0

    def _put(self, message: Message) -> bool:
        """Add a message to the outbox; return False if it does not fit now."""
        rules = self._parts.rules
        if rules.brought_up.waiting(self._uplink) >= MAX_WAITING:
            return False
        added = rules.bring_up(message, self._uplink)
        if added:
            self._parts.outbox.end_turn()
            self._counters.add("tidegate/uplink/retained_up", added)
        return added is not None

    async def _wait(self) -> None:
        """Return after a commit, or a while: capacity also becomes free without one."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CAPACITY_SECONDS):
                await self._changed.wait()


def _retaining(settings: UplinkSettings | None) -> Iterable[RuleSettings]:
    return () if settings is None else (rule for rule in settings.targets if rule.retain)


def _own_prefix(settings: UplinkSettings | None, rule: RuleSettings) -> str:
    """Return the prefix of the local topic if only this gateway has it, else ""."""
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
    """Return the key of a rule's note: the same until its target or messages change."""
    url = "" if settings is None else settings.url
    words: Sequence[str | None] = (url, rule.topic, rule.where, rule.target, rule.stream)
    digest: str = sha256("\0".join(word or "" for word in words).encode()).hexdigest()
    return digest[:16]
