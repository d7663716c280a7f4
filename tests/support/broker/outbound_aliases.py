"""Outbound aliases of one connection, and topics for them."""

from gateway.mqtt.aliases.outbound_aliases import MAPPING_OVERHEAD, OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.properties import Properties


def opened(maximum: int = 2, budget: AliasBudget | None = None) -> OutboundAliases:
    return OutboundAliases(maximum, budget or AliasBudget())


def name(number: int) -> bytes:
    """A topic name of 20 bytes, behind its length."""
    return write_string(f"site/floor/device-{number:02}")


SIZE = len(name(0)) + MAPPING_OVERHEAD
"""What one mapping of such a topic counts."""


def held(aliases: OutboundAliases) -> list[bytes]:
    """The topics that have an alias, the one used least recently first."""
    return list(aliases._mappings)


DESCRIBED = Properties(content_type="text/plain", message_expiry_interval=60)
