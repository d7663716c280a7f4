"""Addresses that count as one peer in shares."""

import ipaddress
from functools import lru_cache

PREFIX = 64
"""Bits of an IPv6 address that name a network: one host may have all addresses in it."""


MAX_CACHED = 1024
"""Cached results: parsing an IPv6 address takes 5 microseconds."""


@lru_cache(maxsize=MAX_CACHED)
def address_block(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address; other texts unchanged."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    if parsed.is_loopback:
        return str(parsed)
    return str(ipaddress.IPv6Network((int(parsed), PREFIX), strict=False))
