"""Hosts of a URL that mean this machine, and addresses that count as one peer."""

import ipaddress
import socket
from collections.abc import Iterable
from functools import lru_cache

from gateway.config.host_name import host_name
from gateway.settings.web_address import is_loopback


class OwnHosts:
    """The hosts of a URL that can only mean this machine, whatever a name server says.

    They are `localhost`, addresses of loopback, the host's name, also in `.local`, the listening
    address and the `named` ones. A page whose name resolves to our address (DNS rebinding) is not
    among them. On other interfaces every address is, as a router may have translated ours, and an
    address in a URL needs no name server.
    """

    def __init__(self, bound: str | None, named: Iterable[str] = ()) -> None:
        full, first = socket.gethostname().lower(), host_name().lower()
        self._names = {"localhost", full, first, f"{first}.local"}
        self._names.update(each.lower().removesuffix(".").strip("[]") for each in named)
        self._any_address = bound is not None and not is_loopback(bound)
        if bound is not None:
            self._names.add(bound.lower())

    def __contains__(self, host: str) -> bool:
        """Return whether a host, as `authority` returns it, is one of them."""
        if host in self._names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return self._any_address or address.is_loopback or bool(mapped and mapped.is_loopback)


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
