"""Sets the broker's figures under the names that Mosquitto uses."""

from gateway.broker.broker import Broker
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.telemetry.load import MINUTES, LoadAverage
from gateway.telemetry.share_figures import show_largest
from gateway.telemetry.where_figures import WhereFigures

LOAD_INTERVAL = 10.0
"""Seconds between two looks at the loads: each look may change 27 retained messages."""

LOADS = {
    "messages/received": "messages/received",
    "messages/sent": "messages/sent",
    "publish/received": "publish/messages/received",
    "publish/sent": "publish/messages/sent",
    "publish/dropped": "publish/messages/dropped",
    "bytes/received": "bytes/received",
    "bytes/sent": "bytes/sent",
}
"""The names of loads below `$SYS/broker/load/`, and the counters whose rise they show."""

OTHER_LOADS = ("connections", "sockets")
"""The loads of what has no counter: CONNECT packets and network connections."""


class BrokerFigures:
    """Copies the broker's own counts into the counters."""

    def __init__(self, broker: Broker, counters: Counters, clock: Clock) -> None:
        self._broker = broker
        self._counters = counters
        self._clock = clock
        self._started = self._looked = clock.monotonic()
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
        if now - self._looked >= LOAD_INTERVAL:
            self._update_loads(now - self._looked)
            self._where.update()
            show_largest(self._broker, self._counters)
            self._looked = now

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
