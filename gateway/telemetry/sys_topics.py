"""The gateway's figures as retained messages under `$SYS` (docs/operate/sys-topics.md)."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from heapq import nlargest
from itertools import chain, compress, repeat
from operator import is_not
from typing import TYPE_CHECKING

from gateway.background import background
from gateway.broker.broker import Broker
from gateway.broker.own_names import FIGURES_CLIENT
from gateway.broker.shares import SHOWN, Share
from gateway.clock import Clock
from gateway.compiled import build
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.routing.over_budget import shown
from gateway.version import COMMIT, VERSION

if TYPE_CHECKING:
    from gateway.where.compile import Where


MINUTES = (1, 5, 15)
"""Minutes of the averages."""


LOAD_INTERVAL = 10.0
"""Seconds between two updates of the loads: each may change 27 retained messages."""

LOADS = {
    "messages/received": "messages/received",
    "messages/sent": "messages/sent",
    "publish/received": "publish/messages/received",
    "publish/sent": "publish/messages/sent",
    "publish/dropped": "publish/messages/dropped",
    "bytes/received": "bytes/received",
    "bytes/sent": "bytes/sent",
}
"""The names of loads below `$SYS/broker/load/`, and the counters whose increase they show."""

OTHER_LOADS = ("connections", "sockets")
"""The loads without a counter: CONNECT packets and network connections."""

SHOWN_HOLDERS = 3
"""Holders, and clients, that are shown of each kind."""

BUSIEST = 5
"""Filters shown singly."""


class LoadAverage:
    """The increase of a count per minute, as exponential averages over 1, 5 and 15 minutes.

    `values` are the averages in the order of MINUTES, 0 at the beginning.
    """

    __slots__ = ("_last", "values")

    def __init__(self) -> None:
        self._last = 0
        self.values = [0.0] * len(MINUTES)

    def update(self, count: int, seconds: float) -> None:
        """Update with the count `seconds` after the last update, which must be more than 0."""
        rate = (count - self._last) * 60 / seconds
        self._last = count
        for index, minutes in enumerate(MINUTES):
            weight = math.exp(-seconds / (60 * minutes))
            self.values[index] = rate + weight * (self.values[index] - rate)


class BrokerFigures:
    """Copies the broker's own counts into the counters."""

    def __init__(self, broker: Broker, counters: Counters, clock: Clock) -> None:
        self._broker = broker
        self._counters = counters
        self._clock = clock
        self._started = self._checked_at = clock.monotonic()
        self._loads = {name: LoadAverage() for name in (*LOADS, *OTHER_LOADS)}
        self._where = WhereFigures(broker, counters)
        self._where.update()
        show_largest(broker, counters)
        self._show_loads()

    def refresh(self) -> None:
        """Set every gauge to its present value."""
        self._refresh_clients()
        self._refresh_messages()
        self._refresh_own()
        self._where.refresh()
        now = self._clock.monotonic()
        if now - self._checked_at >= LOAD_INTERVAL:
            self._update_loads(now - self._checked_at)
            self._where.update()
            show_largest(self._broker, self._counters)
            self._checked_at = now

    def _refresh_clients(self) -> None:
        broker, counters = self._broker, self._counters
        connected, total = len(broker.clients), len(broker.sessions)
        counters.set("uptime", f"{int(self._clock.monotonic() - self._started)} seconds")
        counters.set("clients/connected", connected)
        counters.set("clients/active", connected)
        counters.set("clients/total", total)
        counters.set("clients/disconnected", total - connected)
        counters.set("clients/inactive", total - connected)
        counters.set("clients/maximum", max(connected, counters.count("clients/maximum")))
        counters.set("clients/expired", counters.count("clients/expired"))
        counters.set("subscriptions/count", len(broker.router))
        counters.set("shared_subscriptions/count", broker.router.shared)

    def _refresh_messages(self) -> None:
        broker, counters = self._broker, self._counters
        traffic, retained, waiting = broker.traffic, broker.retained, broker.queue_memory
        received, sent = broker.packets()
        counters.set("messages/received", received)
        counters.set("messages/sent", sent)
        counters.set("publish/messages/received", traffic.messages_received)
        counters.set("publish/messages/sent", traffic.messages_sent)
        counters.set("publish/messages/dropped", counters.count("publish/messages/dropped"))
        counters.set("publish/bytes/received", traffic.bytes_received)
        counters.set("publish/bytes/sent", traffic.bytes_sent)
        counters.set("bytes/received", traffic.network_received)
        counters.set("bytes/sent", traffic.network_sent)
        counters.set("retained messages/count", len(retained))
        counters.set("messages/stored", len(retained) + waiting.messages)
        counters.set("store/messages/count", len(retained) + waiting.messages)
        counters.set("store/messages/bytes", retained.bytes + waiting.bytes)

    def _refresh_own(self) -> None:
        broker, counters = self._broker, self._counters
        queued = broker.queue_memory
        counters.set("tidegate/queues/messages", queued.deliveries + queued.paged)
        counters.set("tidegate/queues/bytes", queued.bytes + queued.paged_bytes)
        counters.set("tidegate/queues/memory_bytes", queued.bytes)
        counters.set("tidegate/queues/disk_bytes", queued.disk_bytes)
        counters.set("tidegate/queues/held_back", queued.held_back)
        if broker.store.durable:
            counters.set("tidegate/storage/elided_rows", broker.store.elided_rows)
        counters.set("tidegate/replays/waiting", broker.replays.count)
        counters.set("tidegate/delays/waiting", broker.delays.waiting)
        counters.set("tidegate/conflated/topics", broker.conflation.topics)
        counters.set("tidegate/conflated/bytes", broker.conflation.bytes)
        counters.set("tidegate/memory/limit", broker.memory.limit)
        counters.set("tidegate/memory/bytes", broker.memory.bytes)
        counters.set("tidegate/memory/buffers", broker.memory.buffers)
        counters.set("tidegate/memory/idle", broker.memory.idle)
        counters.set("tidegate/memory/closed", broker.memory.closed)
        for name, value in broker.inbound_alias_figures.values().items():
            counters.set(f"tidegate/aliases/in/{name}", value)
        for name, value in broker.alias_budget.figures.values().items():
            counters.set(f"tidegate/aliases/out/{name}", value)

        for name, value in broker.admissions.values().items():
            counters.set(f"tidegate/routes/{name}", value)

    def _update_loads(self, seconds: float) -> None:
        counts = {name: self._counters.count(counter) for name, counter in LOADS.items()}
        counts["connections"] = self._broker.connects
        counts["sockets"] = self._broker.sockets
        for name, load in self._loads.items():
            load.update(counts[name], seconds)
        self._show_loads()

    def _show_loads(self) -> None:
        for name, load in self._loads.items():
            for minutes, value in zip(MINUTES, load.values, strict=True):
                self._counters.set(f"load/{name}/{minutes}min", f"{value:.2f}")


def show_largest(broker: Broker, counters: Counters) -> None:
    """Publish the largest holders of each kind that has any."""
    found = {share.name: _share_figures(share) for share in broker.shares if share.total}
    counters.set("tidegate/shares/largest", json.dumps(found, ensure_ascii=False))


def _share_figures(share: Share) -> dict[str, int | list[tuple[str, int]]]:
    return {
        "total": share.total,
        "limit": share.limit,
        "holders": _short(share.largest(SHOWN_HOLDERS)),
        "clients": _short(share.largest_clients(SHOWN_HOLDERS)),
    }


def _short(found: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [(name[:SHOWN], has) for name, has in found]


class WhereFigures:
    """Updates `tidegate/where/…`; `update` visits every filter in use."""

    def __init__(self, broker: Broker, counters: Counters) -> None:
        self._broker = broker
        self._counters = counters

    def refresh(self) -> None:
        """Set the totals."""
        budget, counters = self._broker.budget, self._counters
        counters.set("tidegate/where/evaluated", budget.evaluated)
        counters.set("tidegate/where/passed", budget.passed)
        counters.set("tidegate/where/filtered", budget.filtered)
        counters.set("tidegate/where/null", budget.null)
        counters.set("tidegate/where/slow", budget.slow)
        counters.set("tidegate/where/over_budget", budget.over.count)
        counters.set("tidegate/where/promoted", budget.promoted)
        counters.set("tidegate/where/expressions", len(self._broker.expressions))
        slowest = budget.slowest
        text = "" if slowest is None else shown(slowest.text)
        microseconds = 0.0 if slowest is None else slowest.figures.mean / 1000
        counters.set("tidegate/where/slowest", text)
        counters.set("tidegate/where/slowest_microseconds", f"{microseconds:.1f}")

    def update(self) -> None:
        """Set the filters that have taken the most time since their first subscription."""
        in_use = [*self._broker.expressions.in_use(), *self._broker.subscription_filters.wheres]
        active = [where for where in in_use if where.figures.evaluated]
        busiest = nlargest(BUSIEST, active, key=_time)
        text = json.dumps([_filter_figures(where) for where in busiest], ensure_ascii=False)
        self._counters.set("tidegate/where/busiest", text)


def _time(where: "Where") -> float:
    return where.figures.evaluated * where.figures.mean


def _filter_figures(where: "Where") -> dict[str, str | int | float]:
    figures = where.figures
    return {
        "where": shown(where.text),
        "evaluated": figures.evaluated,
        "passed": figures.passed,
        "filtered": figures.filtered,
        "null": figures.null,
        "over_budget": figures.over_budget,
        "microseconds": round(figures.mean / 1000, 1),
    }


ROOT = "$SYS/broker/"

OF_TRAFFIC = (
    "tidegate/sys/messages_sent",
    "tidegate/sys/bytes_sent",
    "tidegate/queries/answered",
    "tidegate/queries/refused",
)
"""Counters that are a part of the traffic's, and like these are those of a round's begin.

So their difference is clients' messages, although the round itself sends some.
"""

LAST = "uptime"
"""The last figure of a round: who has it has all that changed."""

AT_ONCE = 16
"""Figures, and messages to who subscribes to them, after which others have their turn."""


class SysTopics:
    """Publishes each figure that changed, at an interval or on request."""

    def __init__(
        self,
        broker: Broker,
        counters: Counters,
        clock: Clock,
        publish: Callable[[Message], object],
        interval: float,
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._traffic = broker.traffic
        self._publish = publish
        self.interval = interval
        self._published: dict[str, int | float | str] = {}
        self._seen: list[int | float | str] = []  # the readings at the last call, in their order
        self._task: asyncio.Task[None] | None = None
        self.refresh: list[Callable[[], None]] = [BrokerFigures(broker, counters, clock).refresh]
        counters.set("version", f"tidegate {VERSION}")
        counters.set("tidegate/gateway/version", VERSION)
        counters.set("tidegate/gateway/build", build())
        counters.set("tidegate/gateway/commit", COMMIT or "unknown")

    def start(self) -> None:
        """Publish now and at each interval."""
        self._task = background(self._run())

    def stop(self) -> None:
        """Stop publishing."""
        if self._task is not None:
            self._task.cancel()

    def update(self) -> None:
        """Update every figure."""
        self._counters.refresh()
        for refresh in self.refresh:
            refresh()

    def publish(self) -> None:
        """Publish figures that changed since the last call."""
        for _ in self._changes():
            pass

    def _changes(self) -> Iterator[None]:
        """Publish them, and stop after each."""
        self.update()
        values = self._counters.values
        traffic = {name: values.get(name) for name in OF_TRAFFIC}
        # most are the same objects as before: no step of Python for each of hundreds, once a second
        differ = chain(map(is_not, values.values(), self._seen), repeat("new"))
        maybe_changed, seen = [*compress(values, differ)], [*values.values()]
        if LAST in maybe_changed:
            maybe_changed.remove(LAST)
            maybe_changed.append(LAST)
        for name in maybe_changed:
            # as it is now, since others have had their turn meanwhile
            value = traffic[name] if name in traffic else values.get(name)
            if value is not None and self._published.get(name) != value:
                self._published[name] = value
                self._retain(name, str(value))
                yield
        if len(self._published) > len(values):  # figures of a channel that is gone
            for name in self._published.keys() - values.keys():
                if self._published.pop(name, None) is not None:
                    self._retain(name, "")
                    yield
        self._seen = seen

    def forget(self, beginning: str) -> None:
        """Remove all figures with this prefix at once: their subject was removed."""
        for name in [each for each in self._counters.values if each.startswith(beginning)]:
            self._counters.forget(name)
            if self._published.pop(name, None) is not None:
                self._retain(name, "")

    def alarm(self, name: str, text: str) -> None:
        """Raise the alarm `name`; an empty text ends it."""
        raised = json.dumps({"raised": self._clock.wall_ms(), "text": text}, ensure_ascii=False)
        self._retain(f"tidegate/alarm/{name}", raised if text else "")

    async def _run(self) -> None:
        while True:
            done = self._traffic.messages_sent
            for _ in self._changes():
                done -= 1
                if self._traffic.messages_sent - done >= AT_ONCE:
                    await asyncio.sleep(0)
                    done = self._traffic.messages_sent
            await asyncio.sleep(self.interval)

    def _retain(self, name: str, text: str) -> None:
        message = Message(
            ROOT + name,
            text.encode(),
            retain=True,
            client_id=FIGURES_CLIENT,
            received_at=self._clock.wall_ms(),
            arrived=self._clock.monotonic(),
        )
        message.commit_within = None  # published again after each start
        self._publish(message)
