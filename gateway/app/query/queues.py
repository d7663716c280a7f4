"""Queries about waiting messages: `queues`, `rules`; and the command `retained/clear`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core, Run
from gateway.app.query.clients import MAXIMUM_SECONDS, in_order, oldest_seconds
from gateway.app.responder import Answer, Request, RequestError, Responder
from gateway.broker.own_names import CONTROL_CLIENT, PREFIX
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.topics import check_topic_filter, topic_matches
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel
    from gateway.storage.outbox.outbox import Outbox
    from gateway.uplink.rules.rules import RuleSet

KINDS = ("all", "uplink", "channel", "delayed", "session")

MAXIMUM_CLEARED = 1_000
"""Retained messages that one request clears; the answer says whether there are more."""

PIECE = 100
"""Retained messages that are checked at a time."""

Key = tuple[str, str]
"""The kind of a queue, and its name."""

Attempts = Callable[[str], int | None]
"""Returns the seconds until the uplink of a name connects by itself."""

Counts = tuple[int, int]
"""How many messages were added to a queue since the start, and removed from it."""


class QueueQueries:
    """Answers from the present state of the broker and, if there is one, the outbox."""

    def __init__(self, run: Run, core: Core, control: Control, responder: Responder) -> None:
        self._control = control
        self._broker = core.broker
        self._core = core
        self._clock = run.clock
        self._counters = run.counters
        self._outbox: Outbox | None = None
        self._rules: RuleSet | None = None
        self._attempts: Attempts = lambda _: None
        self._file = str(Path(run.configuration.file).absolute())
        responder.know("queues", self._queues, "kind", "seconds", "offset", "limit")
        responder.know("rules", self._list_rules, "offset", "limit")
        responder.know("retained/clear", self._clear, "filter")

    def follow(self, outbox: "Outbox", rules: "RuleSet", attempts: Attempts) -> None:
        """Answer for uplinks, too."""
        self._outbox, self._rules, self._attempts = outbox, rules, attempts

    async def _queues(self, request: Request) -> Answer:
        kind = request.word("kind", KINDS)
        seconds = request.seconds("seconds", MAXIMUM_SECONDS)
        fixed = [each for each in self._fixed() if kind in ("all", each[0])]
        sessions: list[tuple[float, str]] = []
        if kind in ("all", "session"):
            for name, session in list(self._broker.sessions.items()):
                await request.breathe()
                if session.queue.messages or len(session.inflight):
                    waiting = session.queue.messages + len(session.inflight)
                    sessions.append((-waiting, name))
        keys = fixed + [("session", name) for _, name in await in_order(request, sessions)]
        before, began = {}, self._clock.monotonic()
        if seconds:
            for key in keys:
                await request.breathe()
                before[key] = self._counts(key)
            await request.sleep(seconds)
        elapsed = max(self._clock.monotonic() - began, 1e-3)
        return await request.page(keys, lambda key: self._row(key, before.get(key), elapsed))

    def _fixed(self) -> Iterator[Key]:
        """Yield the queues that exist even if they are empty."""
        if self._outbox is not None:
            for name in self._outbox.uplinks.names:
                yield "uplink", name
        for channel in self._broker.channels:
            yield "channel", channel.client_id
        yield "delayed", ""

    def _row(self, key: Key, before: Counts | None, elapsed: float) -> dict[str, object] | None:
        kind, name = key
        row: dict[str, object] = {"kind": kind, "name": name}
        if kind == "uplink" and self._outbox is not None:
            row |= self._uplink(name, self._outbox)
        elif kind == "delayed":
            delays = self._broker.delays
            row |= {"depth": delays.waiting, "bytes": None, "oldest_seconds": None}
        else:
            found = self._session(key)
            if found is None:
                return None
            row |= self._of_session(found)
        counts = self._counts(key)
        if before is not None and counts is not None:
            come, gone = ((now - then) / elapsed for now, then in zip(counts, before, strict=True))
            row |= {"in_rate": round(come, 1), "out_rate": round(gone, 1)}
            depth = row["depth"]
            if isinstance(depth, int) and depth and gone > come:
                row["empty_seconds"] = round(depth / (gone - come))
        return row

    def _uplink(self, name: str, outbox: "Outbox") -> dict[str, object]:
        uplinks = outbox.uplinks
        part = f"tidegate/uplink/{name}/" if uplinks.several else "tidegate/uplink/"
        values, oldest = self._counters.values, outbox.oldest.time
        depth = uplinks.rows[uplinks.names.index(name)]
        waited, is_only = None, depth == outbox.bounds.rows  # nothing waits for another uplink only
        if oldest is not None and depth and is_only:
            waited = max(0.0, (self._clock.wall_ms() - oldest) / 1000)
        return {
            "depth": depth,
            "bytes": outbox.bounds.bytes if is_only else None,
            "oldest_seconds": waited,
            "state": values.get(f"{part}state", "off"),
            "error": values.get(f"{part}error", ""),
            "next_attempt_seconds": self._attempts(name),
        }

    def _of_session(self, session: Session) -> dict[str, object]:
        now = self._clock.monotonic()
        channel = _channel(session)
        if channel is not None:
            waits = channel.depth or channel.in_flight  # a consumer that hangs has all
            return {
                "name": channel.settings.share_name,
                "filter": channel.settings.topic_filter,
                "state": "paused" if channel.waiting.paused else "open",
                "depth": channel.depth,
                "inflight": channel.in_flight,
                "bytes": channel.bytes,
                "oldest_seconds": round(channel.oldest(now), 1) if waits else None,
            }
        return {
            "state": "offline" if session.connection is None else "connected",
            "depth": session.queue.messages,
            "inflight": len(session.inflight),
            "bytes": session.queue.bytes,
            "oldest_seconds": oldest_seconds(session, now),
        }

    def _session(self, key: Key) -> Session | None:
        kind, name = key
        if kind == "session":
            return self._broker.sessions.get(name)
        return next((each for each in self._broker.channels if each.client_id == name), None)

    def _counts(self, key: Key) -> Counts | None:
        """Return how many messages were added and removed since the start, None if not counted."""
        kind, name = key
        if kind == "uplink" and self._outbox is not None:
            several = self._outbox.uplinks.several
            part = f"tidegate/uplink/{name}/" if several else "tidegate/uplink/"
            out = self._counters.count(f"{part}acknowledged")
            return out + self._outbox.uplinks.rows[self._outbox.uplinks.names.index(name)], out
        session = None if kind == "delayed" else self._session(key)
        channel = _channel(session)
        if channel is not None:
            figures = channel.figures
            return figures.received, figures.acknowledged + figures.unacknowledged
        if session is None or session.connection is None:
            return None
        waiting, out = session.queue.messages, session.connection.packets_sent
        return out + waiting, out

    async def _list_rules(self, request: Request) -> Answer:
        rules = [] if self._rules is None else self._rules.rules
        names = () if self._outbox is None else self._outbox.uplinks.names

        def row(index: int) -> dict[str, object]:
            rule = rules[index].rule
            uplinks = [name for place, name in enumerate(names) if rule.uplinks >> place & 1]
            return {
                "rule": rules[index].name,
                "uplinks": uplinks,
                "topic": rule.topic,
                "where": None if rule.where is None else rule.where.text,
                "stream": rule.stream,
                "lane": rule.lane,
                "counters": rules[index].figures,
            }

        return {**await request.page(list(range(len(rules))), row), "file": self._file}

    async def _clear(self, request: Request) -> Answer:
        topic_filter = request.needed("filter")
        try:
            check_topic_filter(topic_filter)
        except MqttError as error:
            raise RequestError(f"filter {topic_filter[:80]!r}: {error.reason}") from None
        if topic_filter.startswith("$"):
            raise RequestError(
                f"filter {topic_filter[:80]!r}: the gateway's own topics cannot be cleared"
            )
        topics, more = await self._retained(request, topic_filter)
        what = f"{len(topics):,} retained messages of {topic_filter[:80]!r} are cleared"
        self._control.note_order(what, request.client_id)
        for topic in topics:
            await request.breathe()
            instant = self._core.turn.instant
            self._core.publish(
                Message(
                    topic,
                    b"",
                    qos=1,
                    retain=True,
                    client_id=CONTROL_CLIENT,
                    received_at=instant.wall,
                    arrived=instant.monotonic,
                )
            )
        return {"filter": topic_filter, "cleared": len(topics), "more": more}

    async def _retained(self, request: Request, topic_filter: str) -> tuple[list[str], bool]:
        """Return topics with a retained message, and whether there are more of them."""
        log, found = self._broker.retained.log, []
        cursor = log.open()
        try:
            while not cursor.done:
                await request.breathe()
                topics = [message.topic for message in log.read(cursor, PIECE)]
                found += [topic for topic in topics if topic_matches(topic_filter, topic)]
                if len(found) > MAXIMUM_CLEARED:
                    return found[:MAXIMUM_CLEARED], True
        finally:
            log.close(cursor)
        return found, False


def _channel(session: Session | None) -> "Channel | None":
    """Return the channel that keeps its messages as a session does, None for a client's session."""
    if session is None or not session.client_id.startswith(PREFIX):
        return None
    from gateway.broker.channels.channel import Channel  # in memory where there is one

    return session if isinstance(session, Channel) else None
