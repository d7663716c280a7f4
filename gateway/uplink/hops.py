"""The user property that says through which gateways a message came down, so that none goes round.

It is believed of what comes down a link alone. Where a message comes from a client, the property is
the client's own, and means nothing here.
"""

from collections.abc import Sequence

HOPS = "hops"
"""Its name; the value are gateway ids with commas between them, none of them empty."""

Pairs = tuple[tuple[str, str], ...]


def has_hop(properties: Sequence[tuple[str, str]], gateway_id: str) -> bool:
    """Return whether a message that comes down a link came down through this gateway before."""
    return gateway_id in _hops_of(properties)


def with_hop(properties: Pairs, gateway_id: str) -> Pairs:
    """Return the properties behind one that has this gateway as the last hop.

    Those that came are unaltered [MQTT-3.3.2-17]: the first of the name counts.
    """
    return ((HOPS, ",".join([*_hops_of(properties), gateway_id])), *properties)


def _hops_of(properties: Sequence[tuple[str, str]]) -> list[str]:
    """Return the gateway ids of the first property of the name: any other is the publisher's."""
    value = next((value for name, value in properties if name == HOPS), "")
    return [each for each in value.split(",") if each]
