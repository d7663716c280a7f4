"""What was written to each delivery class, for `$SYS`."""

from collections import Counter

from gateway.broker.broker import Broker
from gateway.counters import Counters
from gateway.server.flush_wheel import FlushWheel


def show_delivery(broker: Broker, flushes: FlushWheel, counters: Counters) -> None:
    """Show under `$SYS` what was written to each class, and how long messages were held."""
    counters.set("tidegate/delivery/held_sessions", flushes.sessions)
    counters.set("tidegate/delivery/not_held", flushes.refused)
    present: Counter[str] = Counter()
    for client in broker.connections:
        if client.session is not None:
            present[client.session.delivery.name] += client.connection.packets_sent
    for each in broker.delivery_classes:
        sent, writes = each.packets + present[each.name], max(1, each.flushes)
        packets, size = sent / writes, each.bytes / writes
        counters.set(f"tidegate/delivery/{each.name}/flushes", each.flushes)
        counters.set(f"tidegate/delivery/{each.name}/packets", sent)
        counters.set(f"tidegate/delivery/{each.name}/bytes", each.bytes)
        counters.set(f"tidegate/delivery/{each.name}/packets_per_flush", round(packets, 2))
        counters.set(f"tidegate/delivery/{each.name}/bytes_per_flush", round(size, 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p50", round(1000 * each.delay(50), 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p99", round(1000 * each.delay(99), 1))
