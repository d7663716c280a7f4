"""Starts bridges and simulated nodes, and restarts changed bridges after a reload."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core, Run, Storage
from gateway.app.responder import Answer, Request, Responder
from gateway.broker.broker import Broker
from gateway.config.bridges import BridgeConfig
from gateway.telemetry.bridge_metrics import kind_figures
from gateway.telemetry.figure import begin_at_zero

if TYPE_CHECKING:
    from gateway.app.port_release import PortRelease
    from gateway.app.simulator import Simulator
    from gateway.bridges.supervision.interfaces import Receive, Services, Update
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.config.configuration import Configuration
    from gateway.settings.simulator import SimulatorSettings
    from gateway.telemetry.figure import Figure


async def start_bridges(
    run: Run, storage: Storage, core: Core, control: Control, responder: Responder
) -> "Bridges":
    """Start what the configuration names; raise StartError if a simulator cannot run."""
    bridges = Bridges(run, storage, core, control, responder)
    run.stack.push_async_callback(bridges.close)
    await bridges.apply(run.configuration)
    return bridges


class Bridges:
    """The bridges of a gateway; their modules are imported only if one is configured."""

    def __init__(
        self, run: Run, storage: Storage, core: Core, control: Control, responder: Responder
    ) -> None:
        self._run = run
        self._storage = storage
        self._core = core
        self._control = control
        self._supervisor: Supervisor | None = None
        self._port_release: PortRelease | None = None
        self._configured: tuple[BridgeConfig, ...] = ()
        self._simulators: dict[SimulatorSettings, Simulator] = {}
        responder.know("bridges", self._list_bridges, "offset", "limit")
        responder.know("readings", self._list_readings, "kind", "name", "offset", "limit")

    async def apply(self, configuration: "Configuration") -> None:
        """Run the bridges of a configuration; those that are as before go on undisturbed.

        Raises StartError if a simulated node cannot run.
        """
        await self._simulate(configuration.simulators)
        self._configured = configuration.bridges
        if self._supervisor is None:
            if not configuration.bridges:
                return
            from gateway.app.nodes import NodeRequests
            from gateway.app.port_release import PortRelease
            from gateway.bridges.supervision.supervisor import Supervisor

            services = await _services(self._run, self._storage, self._core, self._update)
            self._supervisor = Supervisor(services)
            self._port_release = PortRelease(self._supervisor)
            self._control.answer("port", self._port_release.receive)
            self._control.answer("node", NodeRequests(self._supervisor).receive)
        begin_at_zero(self._run.counters, self.figures())
        await self._supervisor.apply(configuration.bridges)

    async def _simulate(self, nodes: "tuple[SimulatorSettings, ...]") -> None:
        """Let these simulated nodes run, and no others: first, as bridges open their ports."""
        for settings in [each for each in self._simulators if each not in nodes]:
            await self._simulators.pop(settings).close()
        for settings in nodes:
            if settings not in self._simulators:
                from gateway.app.simulator import Simulator

                self._simulators[settings] = Simulator(settings)
                await self._simulators[settings].start()

    async def _list_bridges(self, request: Request) -> Answer:
        bridges = [] if self._supervisor is None else self._supervisor.bridges
        return await request.page(
            bridges,
            lambda each: {
                "kind": each[0].kind.name,
                "name": each[0].name,
                "place": each[0].kind.place(each[0].settings),
                **each[1].status(),
            },
        )

    async def _list_readings(self, request: Request) -> Answer:
        """Return the last reading of each series, grouped by bridge."""
        kind, name = request.text("kind"), request.text("name")
        bridges = [] if self._supervisor is None else self._supervisor.bridges
        series = [
            (plan, host, topic)
            for plan, host in bridges
            if kind in (None, plan.kind.name) and name in (None, plan.name)
            for topic in sorted(host.publisher.last)
        ]
        return await request.page(
            series,
            lambda each: {"kind": each[0].kind.name, "name": each[0].name, **each[1].last(each[2])},
        )

    async def _update(self, port: str) -> str:
        from gateway.app.nodes import update_node

        return await update_node(port, self._release_port)

    def _release_port(self, path: str, seconds: float) -> bool:
        return self._port_release is not None and self._port_release.release(path, seconds)

    def figures(self) -> "tuple[Figure, ...]":
        """Return the declared figures of the kinds in use."""
        kinds = {bridge.kind.name: bridge.kind for bridge in self._configured}
        return tuple(
            figure
            for kind in kinds.values()
            for figure in kind_figures(kind.name, kind.counters, kind.gauges)
        )

    async def prepare(
        self, _old: "Configuration", new: "Configuration", _stack: AsyncExitStack
    ) -> Callable[[], Awaitable[None]]:
        """Return what lets the bridges be those of a configuration; raise StartError."""
        if new.simulators:
            from gateway.app.simulator import program

            program()
        return lambda: self.apply(new)

    async def close(self) -> None:
        """Stop every bridge, and then the simulated nodes."""
        if self._supervisor is not None:
            await self._supervisor.close()
        await self._simulate(())


async def _services(run: Run, storage: Storage, core: Core, update: "Update") -> "Services":
    from gateway.bridges.supervision.interfaces import Services
    from gateway.storage.state.node_frames import NodeFrames
    from gateway.storage.state.packet_counters import PacketCounters
    from gateway.storage.state.series_labels import SeriesLabels

    frames = NodeFrames(storage.database, storage.writer)
    await frames.load()
    packet_counters = PacketCounters(storage.database, storage.writer)
    await packet_counters.load()
    series_labels = SeriesLabels(storage.database, storage.writer)
    await series_labels.load()
    return Services(
        gateway_id=run.configuration.gateway_id,
        publish=core.publish,
        subscribe=lambda *subscription: _subscribe(core.broker, *subscription),
        retained=lambda topic_filter: _retained(core, topic_filter),
        when_on_disk=core.turn.when_on_disk,
        frames=frames,
        packet_counters=packet_counters,
        series_labels=series_labels,
        alarm=run.alarm,
        counters=run.counters,
        clock=run.clock,
        update=update,
    )


def _subscribe(
    broker: Broker, client_id: str, topic_filter: str, receive: "Receive"
) -> Callable[[], None]:
    from gateway.bridges.supervision.supervised import Subscriber

    subscriber, router = Subscriber(client_id, receive), broker.router
    broker.subscribe_inline(subscriber, [topic_filter])

    def end() -> None:
        number = router.find(subscriber, topic_filter)
        if number is not None:
            router.discard(number)

    return end


def _retained(core: Core, topic_filter: str) -> list[tuple[str, bytes]]:

    found = core.broker.retained.find(topic_filter, core.turn.instant.monotonic)
    return [(each.topic, bytes(each.message(0).payload)) for each in found]
