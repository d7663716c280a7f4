"""Runs the bridges: a fault of one stops neither it nor anything else."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from gateway.bridges.settings import BridgeSettings
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import Services
from gateway.bridges.supervision.supervised import Supervised
from gateway.config.bridges import BridgeConfig

CHECK_EVERY = 1.0
"""Seconds between two checks for bridges that have fallen silent."""

logger = logging.getLogger(__name__)


class Supervisor:
    """Runs each bridge in its own task, and watches that each produces readings."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running: dict[tuple[str, str], tuple[BridgeConfig, Supervised]] = {}
        self._watch: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._running)

    async def apply(self, plans: Iterable[BridgeConfig]) -> None:
        """Run these bridges and no others; one with unchanged settings is not touched."""
        wanted = {(plan.kind.name, plan.name): plan for plan in plans}
        ended = [name for name, (plan, _) in self._running.items() if wanted.get(name) != plan]
        await asyncio.gather(*(self._running.pop(name)[1].close() for name in ended))
        self._services.owners.configured |= {f"{kind}:{name}" for kind, name in wanted}
        for name, plan in wanted.items():
            if name not in self._running:
                bridge = Supervised(plan.kind, plan.name, plan.settings, self._services)
                bridge.start()
                self._running[name] = (plan, bridge)
        if self._watch is None:
            self._watch = asyncio.create_task(self._check_regularly(), name="bridges")

    def release_port(self, wanted: Callable[[BridgeSettings], bool], seconds: float) -> bool:
        """Let the wanted bridges release their devices for so long; return whether there is one."""
        found = [bridge for plan, bridge in self._running.values() if wanted(plan.settings)]
        for bridge in found:
            bridge.release_port(seconds)
        return bool(found)

    def forget(self, node: str) -> int:
        """Forget the state of a node; return the number of forgotten entries."""
        services = self._services
        services.owners.forget(node)
        forgotten = [forget(node) for forget in list(services.forgetters)]
        return services.series_labels.forget(node) + sum(forgotten)

    @property
    def bridges(self) -> list[tuple[BridgeConfig, Host]]:
        """The running bridges, each with its host."""
        return [(plan, bridge.host) for plan, bridge in self._running.values()]

    def check_silences(self) -> None:
        """Report bridges that have fallen silent, and restart them."""
        now = self._services.clock.monotonic()
        for _, bridge in list(self._running.values()):
            bridge.check_silence(now)

    async def close(self) -> None:
        """Stop every bridge and wait until each has closed its device."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        running, self._running = self._running, {}
        await asyncio.gather(*(bridge.close() for _, bridge in running.values()))

    async def _check_regularly(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            self.check_silences()
