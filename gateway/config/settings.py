"""Everything that a configuration file may say, declared once.

Each table is a class in `gateway/config/sections/`, and each key a field of it with its check, its
default and its meaning.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.bridges import BridgeConfig
from gateway.config.checks import gateway_id
from gateway.config.declaration import Mistake, key, table, tables
from gateway.config.sections.access import AccessConfig, RoleConfig
from gateway.config.sections.broker import BrokerConfig, SubscriptionFilterConfig
from gateway.config.sections.channel import ChannelConfig
from gateway.config.sections.delivery import DeliveryConfig
from gateway.config.sections.down import DownConfig
from gateway.config.sections.listener import ListenerConfig
from gateway.config.sections.memory import MemoryConfig
from gateway.config.sections.metrics import MetricsConfig
from gateway.config.sections.outbox import OutboxConfig
from gateway.config.sections.rule import RuleConfig
from gateway.config.sections.sensors import SimulatorConfig
from gateway.config.sections.storage import DurabilityConfig, HistoryConfig, StorageConfig
from gateway.config.sections.stream import StreamConfig
from gateway.config.sections.uplink import UplinkConfig
from gateway.config.sections.uplinks import MAX_UPLINKS, mistakes_of_uplinks

__all__ = [
    "AccessConfig",
    "BrokerConfig",
    "ChannelConfig",
    "Configuration",
    "DeliveryConfig",
    "DownConfig",
    "DurabilityConfig",
    "GatewayConfig",
    "HistoryConfig",
    "ListenerConfig",
    "MemoryConfig",
    "MetricsConfig",
    "OutboxConfig",
    "RoleConfig",
    "RuleConfig",
    "SimulatorConfig",
    "StorageConfig",
    "StreamConfig",
    "SubscriptionFilterConfig",
    "UplinkConfig",
]


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The gateway's name."""

    id: str | None = key(
        gateway_id,
        "the gateway's name at the fleet; begins with a letter or digit",
        None,
        shown="the host's name up to its first dot, "
        "[made unique](#the-gateways-name) if it is common",
    )


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration file.

    `file` is its path, for messages, and `gateway_id` the name in use. `bridges` are the tables
    that bridges declare (docs/bridges.md).
    """

    file: str
    gateway_id: str
    gateway: GatewayConfig = table(GatewayConfig)
    listeners: tuple[ListenerConfig, ...] = tables(
        ListenerConfig, name="listener", default=(ListenerConfig(),)
    )
    access: AccessConfig = table(AccessConfig)
    broker: BrokerConfig = table(BrokerConfig)
    subscription_filters: tuple[SubscriptionFilterConfig, ...] = tables(
        SubscriptionFilterConfig,
        name="subscription_filter",
        most=1_000,  # looked at for each filter
    )
    channels: tuple[ChannelConfig, ...] = tables(ChannelConfig, name="channel")
    uplinks: tuple[UplinkConfig, ...] = tables(
        UplinkConfig, name="uplink", most=MAX_UPLINKS, alone=True
    )
    outbox: OutboxConfig = table(OutboxConfig)
    memory: MemoryConfig = table(MemoryConfig)
    storage: StorageConfig = table(StorageConfig)
    durability: tuple[DurabilityConfig, ...] = tables(
        DurabilityConfig,
        name="durability",
        most=100,  # looked at for each topic
    )
    delivery: DeliveryConfig = table(DeliveryConfig)
    history: HistoryConfig = table(HistoryConfig)
    metrics: MetricsConfig | None = table(MetricsConfig, default=None)
    simulators: tuple[SimulatorConfig, ...] = tables(SimulatorConfig, name="simulator")
    bridges: tuple[BridgeConfig, ...] = ()

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - `Related`
        """Yield what does not go together of tables that are each in order."""
        yield from mistakes_of_uplinks(self.uplinks)
