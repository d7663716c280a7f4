"""Queries about clients and their sessions, and commands to end one: `clients`, `client`."""

from operator import itemgetter

from gateway.app.control import Control
from gateway.app.parts import Core, Run
from gateway.app.query.ends import Ends
from gateway.app.responder import (
    MAXIMUM_ANSWER,
    Answer,
    Request,
    RequestError,
    Responder,
    to_json,
)
from gateway.broker import sessions
from gateway.broker.client import Client
from gateway.broker.client_classes import client_matcher
from gateway.broker.connecting.connack import VERSIONS
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.session import Session
from gateway.settings.broker import NEVER

MAXIMUM_SECONDS = 10.0
"""The longest time over which rates are measured, in seconds."""

MAXIMUM_SHOWN = 100
"""Subscriptions of a client that are shown."""

STATES = ("all", "connected", "offline")
RATES = {"rate": (0, 1), "received_rate": (0,), "sent_rate": (1,)}
"""What a sort by rate adds up: packets received, packets sent."""

SORTS = ("id", *RATES, "received", "sent", "waiting", "inflight", "since")
KICKED = "disconnected by an operator"
MAXIMUM_REASON = 256

Packets = tuple[Client, int, int]
"""A connection, with its packets received and sent so far."""


class ClientQueries:
    """Answers from the broker's present sessions."""

    def __init__(
        self, run: Run, core: Core, control: Control, responder: Responder, ends: Ends
    ) -> None:
        self._control = control
        self._broker = core.broker
        self._core = core
        self._clock = run.clock
        self._ends = ends
        paging = ("offset", "limit")
        keys = ("match", "user", "state", "sort", "seconds", *paging)
        responder.know("clients", self._clients, *keys)
        responder.know("client", self._client, "id", "seconds")
        responder.know("client/disconnect", self._disconnect, "id", "reason")
        responder.know("session/drop", self._drop, "id")

    async def _clients(self, request: Request) -> Answer:
        match, user = request.text("match"), request.text("user")
        state, sort = request.word("state", STATES), request.word("sort", SORTS)
        seconds = request.seconds("seconds", MAXIMUM_SECONDS)
        if sort in RATES and not seconds:
            raise RequestError(f"sort by {sort} needs seconds, over which rates are measured")
        matches = None if match is None else client_matcher(match)
        names: list[str] = []
        for name, session in list(self._broker.sessions.items()):
            await request.breathe()
            offline = session.connection is None
            if matches is not None and not matches(name):
                continue
            if user is not None and (session.username or "") != user:
                continue
            if state == "all" or (state == "offline") is offline:
                names.append(name)
        rates = await self._rates(request, names, seconds)
        names = await self._sorted(request, names, sort, rates)
        page = await request.page(names, lambda name: self._row(name, rates))
        connected = len(self._broker.clients)
        return {
            **page,
            "connected": connected,
            "offline": len(self._broker.sessions) - connected,
        }

    async def _rates(
        self, request: Request, names: list[str], seconds: float
    ) -> dict[str, tuple[float, float]] | None:
        """Return packets a second in and out over the next `seconds`, None for none."""
        if not seconds:
            return None
        clients = self._broker.clients
        before: dict[str, Packets] = {}
        for name in names:
            await request.breathe()
            client = clients.get(name)
            if client is not None:
                before[name] = (client, *_packets(client))
        began = self._clock.monotonic()
        await request.sleep(seconds)
        elapsed = max(self._clock.monotonic() - began, 1e-3)
        rates = {}
        for name, (client, received, sent) in before.items():
            await request.breathe()
            now_received, now_sent = _packets(client)
            rates[name] = ((now_received - received) / elapsed, (now_sent - sent) / elapsed)
        return rates

    async def _sorted(
        self,
        request: Request,
        names: list[str],
        sort: str,
        rates: dict[str, tuple[float, float]] | None,
    ) -> list[str]:
        """Return the names in order: the largest number first, and by identifier."""
        keys: list[tuple[float, str]] = []
        for name in names:
            await request.breathe()
            keys.append((self._key(name, sort, rates or {}), name))
        return [name for _, name in await in_order(request, keys)]

    def _key(self, name: str, sort: str, rates: dict[str, tuple[float, float]]) -> float:
        session, client = self._broker.sessions.get(name), self._broker.clients.get(name)
        if session is None or sort == "id":
            return 0.0
        if sort == "waiting":
            return -session.queue.messages
        if sort == "inflight":
            return -len(session.inflight)
        if sort in RATES:
            measured = rates.get(name, (0.0, 0.0))
            return -sum(measured[each] for each in RATES[sort])
        if client is None:
            return 0.0
        if sort == "since":
            return -client.opened
        return -_packets(client)[sort == "sent"]

    def _row(
        self, name: str, rates: dict[str, tuple[float, float]] | None = None
    ) -> dict[str, object] | None:
        """Return a session's row of a list; None if it has ended meanwhile."""
        session = self._broker.sessions.get(name)
        if session is None:
            return None
        row: dict[str, object] = {
            "id": name,
            "user": session.username,
            "connected": False,
            "expiry": None if session.expiry_interval == NEVER else session.expiry_interval,
            "class": session.delivery.name,
            "window": session.inflight.limit,
            "inflight": len(session.inflight),
            "waiting": session.queue.messages,
            "waiting_bytes": session.queue.bytes,
            "subscriptions": self._broker.router.count(session),
            "shared_identifier": self._ends.is_shared(name, self._clock.monotonic()),
        }
        client = self._broker.clients.get(name)
        if client is not None:
            row |= self._connection(client)
        else:
            row["disconnected"] = self._ends.last(name)
        if rates is not None:
            received, sent = rates.get(name, (0.0, 0.0))
            row |= {"received_rate": round(received, 1), "sent_rate": round(sent, 1)}
        return row

    def _connection(self, client: Client) -> dict[str, object]:
        now = self._clock.monotonic()
        received, sent = _packets(client)
        return {
            "connected": True,
            "address": client.peer,
            "listener": client.info.listener,
            "version": VERSIONS.get(client.connection.version, ""),
            "since": self._clock.wall_ms() - round(1000 * (now - client.opened)),
            "silent_seconds": round(max(0.0, now - client.last_received), 1),
            "keep_alive": client.keep_alive,
            "received": received,
            "sent": sent,
        }

    async def _client(self, request: Request) -> Answer:
        name = request.needed("id")
        ends = self._ends.of(name)
        seconds = request.seconds("seconds", MAXIMUM_SECONDS)
        rates = await self._rates(request, [name], seconds)
        row = self._row(name, rates)
        if row is None and not ends:
            raise RequestError(f"there is no client or session {name[:80]!r}")
        answer: dict[str, object] = {"client": row, "ends": ends}
        session = self._broker.sessions.get(name)
        if session is not None:
            answer["subscriptions"] = self._subscriptions(session)
            answer["oldest_seconds"] = oldest_seconds(session, self._clock.monotonic())
            answer["held_back"] = session.queue.held_back + len(session.inflight.withheld)
            answer["aliases"] = _aliases(session)
            answer["drops"] = session.drops or {}
        return answer

    def _subscriptions(self, session: Session) -> list[dict[str, object]]:
        """Return the first subscriptions of a session, as many as fit into an answer."""
        router = self._broker.router
        found: list[dict[str, object]] = []
        size = 0
        for number in router.numbers(session)[:MAXIMUM_SHOWN]:
            subscription = router.subscription(number)
            row = _subscription(subscription, router.index(subscription.topic_filter))
            size += len(to_json(row))
            if found and size > MAXIMUM_ANSWER:
                break
            found.append(row)
        return found

    async def _disconnect(self, request: Request) -> Answer:
        name = request.needed("id")
        reason = (request.text("reason") or KICKED)[:MAXIMUM_REASON]
        client = self._broker.clients.get(name)
        if client is None:
            raise RequestError(f"client {name[:80]!r} is not connected")
        self._control.note_order(f"client {name[:80]!r}: {reason}", request.client_id)
        self._core.turn.now()  # its end sends what is queued now
        client.disconnect(ReasonCode.ADMINISTRATIVE_ACTION, reason)
        return {"id": name, "address": client.peer}

    async def _drop(self, request: Request) -> Answer:
        name = request.needed("id")
        session, client = self._broker.sessions.get(name), self._broker.clients.get(name)
        if session is None:
            raise RequestError(f"there is no session {name[:80]!r}")
        waiting = session.queue.messages + len(session.inflight)
        what = f"session {name[:80]!r} with {waiting:,} messages is dropped"
        self._control.note_order(what, request.client_id)
        instant = self._core.turn.instant
        if client is not None:
            client.disconnect(ReasonCode.ADMINISTRATIVE_ACTION, "its session is dropped")
            sessions.disconnect(self._broker, client, instant)
        if self._broker.sessions.get(name) is session:
            sessions.set_will(self._broker, session, None)
            sessions.end(self._broker, session, instant)
        return {"id": name, "messages": waiting}


async def in_order(request: Request, keys: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return keys sorted, in pieces so short that nobody waits for it."""
    from heapq import merge

    runs = []
    for begin in range(0, len(keys), 1000):
        await request.breathe()
        runs.append(sorted(keys[begin : begin + 1000], key=itemgetter(0, 1)))
    found = []
    for each in merge(*runs):
        await request.breathe()
        found.append(each)
    return found


def oldest_seconds(session: Session, now: float) -> float | None:
    """Return how long the first message in a session's memory has waited, None without one."""
    span = next(iter(session.queue), None) if session.queue else None
    span = span or next(iter(session.inflight.spans()), None)
    return None if span is None else round(max(0.0, now - span.publication.arrived), 1)


def _packets(client: Client) -> tuple[int, int]:
    return client.connection.packets_received, client.connection.packets_sent


def _subscription(subscription: Subscription, index: FilterIndex | None) -> dict[str, object]:
    where = subscription.where
    fields: dict[str, object] = {"filter": subscription.topic_filter, "qos": subscription.qos}
    if subscription.no_local:
        fields["no_local"] = True
    if subscription.delivery is not None and subscription.delivery.every:
        fields["every_ms"] = round(1000 * subscription.delivery.every)
    if where is not None:
        figures = where.figures
        fields |= {"where": where.text, "evaluated": figures.evaluated, "passed": figures.passed}
        if figures.samples:
            fields["microseconds"] = round(figures.mean / 1_000, 1)
        if index is not None:
            fields["messages"] = index.messages
            if index.samples:
                fields["index_microseconds"] = round(index.mean / 1_000, 1)
    return fields


def _aliases(session: Session) -> dict[str, int] | None:
    aliases = None if session.connection is None else session.connection.outbound_aliases
    return None if aliases is None else aliases.figures
