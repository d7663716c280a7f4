"""Which addresses only this machine reaches."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
