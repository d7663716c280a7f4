"""The default gateway id: the host's name, made unique if it is common."""

import socket
from pathlib import Path

from gateway.settings.checks import gateway_id

COMMON_NAMES = frozenset(
    {
        "alarm",
        "alpine",
        "arch",
        "archlinux",
        "armbian",
        "bananapi",
        "beaglebone",
        "buildroot",
        "centos",
        "debian",
        "dietpi",
        "fedora",
        "jetson",
        "linux",
        "localhost",
        "localhost-live",
        "nanopi",
        "opensuse",
        "openwrt",
        "orangepi",
        "pi",
        "radxa",
        "raspberry",
        "raspberrypi",
        "raspbian",
        "rock",
        "ubuntu",
    }
)
"""Names that distributions and images give to every board: two of one fleet would be the same."""

MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
"""Files with the machine id (machine-id(5)); the first that has one counts."""

PURPOSE = b"tidegate gateway id"
"""The purpose of the hash: the machine id itself is confidential (machine-id(5))."""

DIGITS = 8
"""Hexadecimal digits after the name: a chance of 1 in 8,600 that two of 1,000 are the same."""


def is_common(name: str) -> bool:
    """Return whether a distribution gives this name to every board."""
    return name.lower() in COMMON_NAMES


def default_gateway_id() -> str:
    """Return the host's name up to its first dot, with a hash of the machine id if it is common.

    Without a machine id it stays as it is. Raises ValueError if it is no valid gateway id.
    """
    name = gateway_id(host_name())
    machine = machine_id() if is_common(name) else ""
    if not machine:
        return name
    import hmac  # which loads OpenSSL: most gateways need neither

    return f"{name}-{hmac.new(machine.encode(), PURPOSE, 'sha256').hexdigest()[:DIGITS]}"


def host_name() -> str:
    """Return the host's name up to its first dot."""
    return socket.gethostname().partition(".")[0]


def machine_id() -> str:
    """Return the machine id, "" if there is none (yet: `uninitialized` in the first boot)."""
    for path in MACHINE_IDS:
        try:
            text = path.read_text("ascii").strip()
        except (OSError, ValueError):
            continue
        if text and text != "uninitialized":
            return text
    return ""
