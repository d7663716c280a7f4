"""The way up to the fleet: rules, outbox and uplink, joined to the broker."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def start_uplink(gateway: "Gateway") -> None:
    """Start what the configuration says."""
