"""The user property that says through which gateways a message came down: no message goes round."""

from collections.abc import Sequence

HOPS = "hops"
"""Its name; the value are gateway ids with commas between them."""

Pairs = tuple[tuple[str, str], ...]


def has_hop(properties: Sequence[tuple[str, str]], gateway_id: str) -> bool:
    """Return whether the message came down through this gateway."""
    return any(name == HOPS and gateway_id in value.split(",") for name, value in properties)


def with_hop(properties: Sequence[tuple[str, str]], gateway_id: str) -> Pairs:
    """Return the properties with this gateway as the last hop."""
    before = [value for name, value in properties if name == HOPS]
    others = tuple(pair for pair in properties if pair[0] != HOPS)
    return (*others, (HOPS, ",".join([*before, gateway_id])))
