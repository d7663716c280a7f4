"""Serial bridges and simulated nodes, joined to the broker."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def start_sensors(gateway: "Gateway") -> None:
    """Start what the configuration names; raise StartError if an extra is missing."""
    configuration = gateway.configuration
    if configuration.simulators:
        await _start_simulators(gateway)
    if configuration.serial:
        await _start_bridges(gateway)


async def _start_simulators(gateway: "Gateway") -> None:
    from gateway.app.simulator import Simulator

    for settings in gateway.configuration.simulators:
        simulator = Simulator(settings)
        await simulator.start()
        gateway.stack.push_async_callback(simulator.close)


async def _start_bridges(gateway: "Gateway") -> None:
    from gateway.bridges.serial.serial_bridge import SerialBridge
    from gateway.bridges.supervision.supervisor import Supervisor
    from gateway.storage.state.node_frames import NodeFrames

    frames = NodeFrames(gateway.database, gateway.writer)
    await frames.load()
    supervisor = Supervisor(
        [
            SerialBridge(
                settings,
                publish=gateway.publish,
                when_on_disk=gateway.turn.when_on_disk,
                frames=frames,
                counters=gateway.counters,
                clock=gateway.clock,
            )
            for settings in gateway.configuration.serial
        ]
    )
    supervisor.start()
    gateway.stack.push_async_callback(supervisor.close)
