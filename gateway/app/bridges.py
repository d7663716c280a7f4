"""Bridges and simulated nodes, joined to the broker; bridges again when the file was changed."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config.bridges import BridgeConfig
from gateway.config.errors import ConfigurationError
from gateway.telemetry.bridge_metrics import kind_figures

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.app.lending import Lending
    from gateway.bridges.supervision.interfaces import Receive, Services, Update
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.config.configuration import Configuration
    from gateway.telemetry.figure import Figure

logger = logging.getLogger(__name__)


async def start_bridges(gateway: "Gateway") -> None:
    """Start what the configuration names; raise StartError if a simulator cannot run."""
    if gateway.configuration.simulators:
        await _start_simulators(gateway)
    bridges = Bridges(gateway)
    gateway.stack.push_async_callback(bridges.close)
    await bridges.apply(gateway.configuration)
    gateway.bridges = bridges


async def _start_simulators(gateway: "Gateway") -> None:
    from gateway.app.simulator import Simulator

    for settings in gateway.configuration.simulators:
        simulator = Simulator(settings)
        await simulator.start()
        gateway.stack.push_async_callback(simulator.close)


class Bridges:
    """The bridges of a gateway; nothing of them is in memory while none is configured."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._supervisor: Supervisor | None = None
        self._lending: Lending | None = None
        self._configured: tuple[BridgeConfig, ...] = ()
        self._reloading: asyncio.Task[None] | None = None

    async def apply(self, configuration: "Configuration") -> None:
        """Run the bridges of a configuration; those that are as before go on undisturbed."""
        self._configured = configuration.bridges
        if self._supervisor is None:
            if not configuration.bridges:
                return
            from gateway.app.lending import Lending
            from gateway.app.node_requests import NodeRequests
            from gateway.bridges.supervision.supervisor import Supervisor

            self._supervisor = Supervisor(await _services(self._gateway, self._update))
            self._lending = Lending(self._supervisor)
            self._gateway.control.answer("port", self._lending.receive)
            self._gateway.control.answer("node", NodeRequests(self._supervisor).receive)
        await self._supervisor.apply(configuration.bridges)

    async def _update(self, port: str) -> str:
        from gateway.app.node_update import update_node

        return await update_node(port, self._lend)

    def _lend(self, path: str, seconds: float) -> bool:
        return self._lending is not None and self._lending.lend(path, seconds)

    def figures(self) -> "tuple[Figure, ...]":
        """Return what the kinds in use declare of their figures."""
        kinds = {bridge.kind.name: bridge.kind for bridge in self._configured}
        return tuple(
            figure
            for kind in kinds.values()
            for figure in kind_figures(kind.name, kind.counters, kind.gauges)
        )

    def reload(self) -> None:
        """Read the configuration again for its bridges alone."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def close(self) -> None:
        """Stop every bridge."""
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait({self._reloading})
        if self._supervisor is not None:
            await self._supervisor.close()

    async def _reload(self) -> None:
        """Apply the file as it is now; one with a mistake changes nothing and raises an alarm."""
        from gateway.config.load import load

        file = self._gateway.configuration.file
        trouble = ""
        try:
            await self.apply(await asyncio.to_thread(load, Path(file)))
        except ConfigurationError as error:
            trouble = str(error)
            logger.error("the bridges stay as they are: %s", error)  # noqa: TRY400 - a mistake of the file, not of ours
        else:
            logger.info("the bridges are as %s has them", file)
        self._gateway.telemetry.alarm("configuration", trouble)


async def _services(gateway: "Gateway", update: "Update") -> "Services":
    from gateway.bridges.supervision.interfaces import Services
    from gateway.storage.state.node_frames import NodeFrames
    from gateway.storage.state.packet_counters import PacketCounters
    from gateway.storage.state.series_labels import SeriesLabels

    frames = NodeFrames(gateway.database, gateway.writer)
    await frames.load()
    packet_counters = PacketCounters(gateway.database, gateway.writer)
    await packet_counters.load()
    series_labels = SeriesLabels(gateway.database, gateway.writer)
    await series_labels.load()
    return Services(
        gateway_id=gateway.configuration.gateway_id,
        publish=gateway.publish,
        subscribe=lambda *subscription: _subscribe(gateway, *subscription),
        retained=lambda topic_filter: _retained(gateway, topic_filter),
        when_on_disk=gateway.turn.when_on_disk,
        frames=frames,
        packet_counters=packet_counters,
        series_labels=series_labels,
        alarm=gateway.telemetry.alarm,
        counters=gateway.counters,
        clock=gateway.clock,
        update=update,
    )


def _subscribe(
    gateway: "Gateway", client_id: str, topic_filter: str, receive: "Receive"
) -> Callable[[], None]:
    from gateway.bridges.supervision.subscriber import Subscriber

    subscriber, router = Subscriber(client_id, receive), gateway.broker.router
    gateway.broker.subscribe_inline(subscriber, [topic_filter])

    def end() -> None:
        number = router.find(subscriber, topic_filter)
        if number is not None:
            router.discard(number)

    return end


def _retained(gateway: "Gateway", topic_filter: str) -> list[tuple[str, bytes]]:

    found = gateway.broker.retained.find(topic_filter, gateway.turn.instant.monotonic)
    return [(each.topic, bytes(each.message(0).payload)) for each in found]
