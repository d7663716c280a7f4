"""The gateway's figures as retained messages under `$SYS` (docs/sys-topics.md)."""

import asyncio
import json
from collections.abc import Callable, Iterator

from gateway.broker.broker import Broker
from gateway.broker.own_names import FIGURES_CLIENT
from gateway.clock import Clock
from gateway.compiled import build
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.telemetry.broker_figures import BrokerFigures
from gateway.version import COMMIT, VERSION

ROOT = "$SYS/broker/"


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
        self._publish = publish
        self.interval = interval
        self._published: dict[str, int | float | str] = {}
        self._task: asyncio.Task[None] | None = None
        self.refresh: list[Callable[[], None]] = [BrokerFigures(broker, counters, clock).refresh]
        counters.set("version", f"tidegate {VERSION}")
        counters.set("tidegate/gateway/version", VERSION)
        counters.set("tidegate/gateway/build", build())
        counters.set("tidegate/gateway/commit", COMMIT or "unknown")

    def start(self) -> None:
        """Publish now and at each interval."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop publishing."""
        if self._task is not None:
            self._task.cancel()

    def update(self) -> None:
        """Update every figure."""
        for refresh in self.refresh:
            refresh()

    def publish(self) -> None:
        """Publish figures that changed since the last call."""
        for _ in self._changes():
            pass

    def _changes(self) -> Iterator[None]:
        """Publish them; other work may run at each item, as thousands may subscribe."""
        self.update()
        values = self._counters.values
        for name in list(values):
            value = values.get(name)  # the present value: other work may have changed it
            if value is not None and self._published.get(name) != value:
                self._published[name] = value
                self._retain(name, str(value))
                yield
        # figures of a deleted channel
        for name in self._published.keys() - self._counters.values.keys():
            if self._published.pop(name, None) is not None:
                self._retain(name, "")
                yield

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
            for _ in self._changes():
                await asyncio.sleep(0)
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
