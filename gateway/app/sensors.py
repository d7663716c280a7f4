"""Bridges and simulated nodes, joined to the broker."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def start_sensors(gateway: "Gateway") -> None:
    """Start what the configuration says."""
