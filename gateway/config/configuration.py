"""The whole configuration file, declared once.

Each table is a class in `gateway/settings/`, and each key a field of it with its check, its default
and its meaning.
"""

from collections.abc import Iterator
from typing import Any

from gateway.config.bridges import BridgeConfig
from gateway.settings.access import AccessSettings, RoleSettings
from gateway.settings.broker import BrokerSettings, RetainedExpiry, SubscriptionFilter
from gateway.settings.channel import ChannelSettings
from gateway.settings.checks import gateway_id
from gateway.settings.declaration import Key, Mistake, key, keys_of, settings_class, table, tables
from gateway.settings.delivery import DeliverySettings
from gateway.settings.listener import ListenerSettings
from gateway.settings.log import LogSettings
from gateway.settings.memory import MemorySettings
from gateway.settings.metrics import MetricsSettings
from gateway.settings.outbox import OutboxSettings, StreamSettings
from gateway.settings.simulator import SimulatorSettings
from gateway.settings.storage import DurabilityRule, HistorySettings, StorageSettings
from gateway.settings.uplink import DownSettings, RuleSettings, UplinkSettings
from gateway.settings.uplinks import MAX_UPLINKS, mistakes_of_uplinks

__all__ = [
    "AccessSettings",
    "BrokerSettings",
    "ChannelSettings",
    "Configuration",
    "DeliverySettings",
    "DownSettings",
    "DurabilityRule",
    "GatewaySettings",
    "HistorySettings",
    "ListenerSettings",
    "LogSettings",
    "MemorySettings",
    "MetricsSettings",
    "OutboxSettings",
    "RetainedExpiry",
    "RoleSettings",
    "RuleSettings",
    "SimulatorSettings",
    "StorageSettings",
    "StreamSettings",
    "SubscriptionFilter",
    "UplinkSettings",
]


@settings_class
class GatewaySettings:
    """The gateway's name."""

    id: str | None = key(
        gateway_id,
        "name at the fleet",
        None,
        shown="the host's name, [made unique](#the-gateways-name) if it is common",
    )


@settings_class
class Configuration:
    """A configuration file.

    `file` is its path, for messages, and `gateway_id` the name in use. `bridges` are the tables
    that bridges declare (docs/use/bridges.md).
    """

    file: str
    gateway_id: str
    gateway: GatewaySettings = table(GatewaySettings)
    listeners: tuple[ListenerSettings, ...] = tables(
        ListenerSettings, name="listener", default=(ListenerSettings(),)
    )
    access: AccessSettings = table(AccessSettings)
    broker: BrokerSettings = table(BrokerSettings)
    subscription_filters: tuple[SubscriptionFilter, ...] = tables(
        SubscriptionFilter,
        name="subscription_filter",
        most=1_000,  # each is compared for each filter
    )
    retained_expiry: tuple[RetainedExpiry, ...] = tables(
        RetainedExpiry,
        name="retained_expiry",
        most=100,  # each is compared for each retained message
    )
    channels: tuple[ChannelSettings, ...] = tables(ChannelSettings, name="channel")
    uplinks: tuple[UplinkSettings, ...] = tables(
        UplinkSettings, name="uplink", most=MAX_UPLINKS, single_table=True
    )
    outbox: OutboxSettings = table(OutboxSettings)
    memory: MemorySettings = table(MemorySettings)
    storage: StorageSettings = table(StorageSettings)
    durability: tuple[DurabilityRule, ...] = tables(
        DurabilityRule,
        name="durability",
        most=100,  # each is compared for each topic
    )
    delivery: DeliverySettings = table(DeliverySettings)
    history: HistorySettings = table(HistorySettings)
    log: LogSettings = table(LogSettings)
    metrics: MetricsSettings | None = table(MetricsSettings, default=None)
    simulators: tuple[SimulatorSettings, ...] = tables(SimulatorSettings, name="simulator")
    bridges: tuple[BridgeConfig, ...] = ()

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - `Related`
        """Yield conflicts between tables that are each valid."""
        yield from mistakes_of_uplinks(self.uplinks)


def values_of(settings: Any, place: str = "") -> Iterator[tuple[str, Key, Any]]:
    """Yield (key in messages, declaration, value) of every value."""
    for declared in keys_of(type(settings)):
        name = f"{place}.{declared.name}" if place else declared.name
        value = getattr(settings, declared.attribute)
        if value is None:
            continue
        if declared.table is None:
            yield name, declared, value
        elif declared.many:
            for number, each in enumerate(value):
                one = declared.single_table and len(value) == 1
                yield from values_of(each, name if one else f"{name}[{number}]")
        else:
            yield from values_of(value, name)
