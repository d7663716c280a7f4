"""Addresses that only this machine can reach."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether a listener at this address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
