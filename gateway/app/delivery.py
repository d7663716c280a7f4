"""The delivery policies that the configuration names, for the broker and for `$SYS`."""

from collections import Counter
from typing import TYPE_CHECKING

from gateway.broker.delivery_classes import DeliveryRule, DeliverySettings
from gateway.config.sections.delivery import DeliveryClassConfig, DeliveryConfig
from gateway.mqtt.delivery_policy import COUNT, DELAY, EACH, DeliveryPolicy

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

APPLICATION_COUNT = 10
"""Messages for an application that leave together, where nothing says otherwise."""


def delivery_settings(config: DeliveryConfig) -> DeliverySettings:
    """Return the policy of each class, and who is in which."""
    interval = config.flush_interval / 1000
    return DeliverySettings(
        _policy(config.device, interval),
        _policy(config.device_persistent, interval),
        _policy(config.application, interval, APPLICATION_COUNT, 0),
        tuple(DeliveryRule(each.name, each.client, each.user) for each in config.rules),
        config.flush_sessions,
    )


def _policy(
    config: DeliveryClassConfig, interval: float, count: int = COUNT, delay: int = DELAY
) -> DeliveryPolicy:
    if config.policy == "each":
        return EACH
    count = count if config.buffered_count is None else config.buffered_count
    delay = delay if config.idle_flush is None else config.idle_flush
    return DeliveryPolicy(count, config.buffered_bytes, delay / 1000, interval)


def show_delivery(gateway: "Gateway") -> None:
    """Show under `$SYS` what was written to each class, and how long messages were held."""
    counters, flushes = gateway.counters, gateway.turn.flushes
    counters.set("tidegate/delivery/held_sessions", flushes.sessions)
    counters.set("tidegate/delivery/not_held", flushes.refused)
    present: Counter[str] = Counter()
    for client in gateway.broker.connections:
        if client.session is not None:
            present[client.session.delivery.name] += client.connection.packets_sent
    for each in gateway.broker.delivery_classes:
        sent, writes = each.packets + present[each.name], max(1, each.flushes)
        packets, size = sent / writes, each.bytes / writes
        counters.set(f"tidegate/delivery/{each.name}/flushes", each.flushes)
        counters.set(f"tidegate/delivery/{each.name}/packets", sent)
        counters.set(f"tidegate/delivery/{each.name}/bytes", each.bytes)
        counters.set(f"tidegate/delivery/{each.name}/packets_per_flush", round(packets, 2))
        counters.set(f"tidegate/delivery/{each.name}/bytes_per_flush", round(size, 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p50", round(1000 * each.delay(50), 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p99", round(1000 * each.delay(99), 1))
