"""The gateway's figures as retained messages under `$SYS` (docs/sys-topics.md)."""

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import version

from gateway.broker.broker import Broker
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.routing.where.message import Message

ROOT = "$SYS/broker/"
CLIENT_ID = "$SYS"


class SysTopics:
    """Publishes each figure that changed, at an interval or when asked to."""

    def __init__(
        self,
        broker: Broker,
        counters: Counters,
        clock: Clock,
        publish: Callable[[Message], object],
        interval: float,
    ) -> None:
        self._broker = broker
        self._counters = counters
        self._clock = clock
        self._publish = publish
        self._interval = interval
        self._said: dict[str, int | float | str] = {}
        self._started = clock.monotonic()
        self._task: asyncio.Task[None] | None = None
        self.refresh: list[Callable[[], None]] = [self._refresh_broker]
        counters.set("version", f"tidegate {version('tidegate')}")
        counters.set("tidegate/gateway/version", version("tidegate"))

    def start(self) -> None:
        """Publish now and then at each interval."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Publish no more."""
        if self._task is not None:
            self._task.cancel()

    def say(self) -> None:
        """Publish what has changed since the last time."""
        for refresh in self.refresh:
            refresh()
        for name, value in list(self._counters.values.items()):
            if self._said.get(name) != value:
                self._said[name] = value
                self._retain(name, str(value))

    def alarm(self, name: str, text: str) -> None:
        """Raise the alarm `name`; an empty text ends it."""
        raised = json.dumps({"raised": self._clock.wall_ms(), "text": text}, ensure_ascii=False)
        self._retain(f"tidegate/alarm/{name}", raised if text else "")

    async def _run(self) -> None:
        while True:
            self.say()
            await asyncio.sleep(self._interval)

    def _retain(self, name: str, text: str) -> None:
        message = Message(
            ROOT + name,
            text.encode(),
            retain=True,
            client_id=CLIENT_ID,
            received_at=self._clock.wall_ms(),
            arrived=self._clock.monotonic(),
        )
        self._publish(message)

    def _refresh_broker(self) -> None:
        broker, counters = self._broker, self._counters
        connected = len(broker.clients)
        counters.set("uptime", f"{int(self._clock.monotonic() - self._started)} seconds")
        counters.set("clients/connected", connected)
        counters.set("clients/total", len(broker.sessions))
        counters.set("clients/disconnected", len(broker.sessions) - connected)
        counters.set("clients/maximum", max(connected, counters.count("clients/maximum")))
        counters.set("subscriptions/count", len(broker.router))
        counters.set("retained messages/count", len(broker.retained))
        counters.set("store/messages/bytes", broker.retained.bytes)
        counters.set("tidegate/queues/messages", broker.queue_memory.deliveries)
        counters.set("tidegate/queues/bytes", broker.queue_memory.bytes)
        received, sent = broker.packets()
        counters.set("messages/received", received)
        counters.set("messages/sent", sent)
        for name, value in broker.inbound_alias_figures.values().items():
            counters.set(f"tidegate/aliases/in/{name}", value)
        for name, value in broker.alias_budget.figures.values().items():
            counters.set(f"tidegate/aliases/out/{name}", value)
