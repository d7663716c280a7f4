"""Checks of single settings: each returns the value or raises ValueError with what is allowed."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

Check = Callable[[object], object]

GATEWAY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
STREAM = re.compile(r"[A-Za-z0-9_-]{1,16}")
DURATION = re.compile(r"([0-9]{1,6})([smhd])|0", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.ASCII)
UNITS = {
    "B": 1,
    **{unit + "B": 1000**power for power, unit in enumerate("kMGT", 1)},
    **{unit + "iB": 1024**power for power, unit in enumerate("KMGT", 1)},
}
PERMISSIONS = re.compile(r"0?[0-7]{3}")

MAXIMUM_UNIX_PATH = 107
"""Bytes of a Unix socket's path that Linux takes (unix(7))."""


def text(value: object) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("a text that is not empty")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Accept a list of strings of which none is empty."""
    if not isinstance(value, list):
        raise ValueError("a list of texts")  # noqa: TRY004 - one error for every bad setting
    try:
        return tuple(text(each) for each in value)
    except ValueError as error:
        raise ValueError("a list of texts that are not empty") from error


def unix_path(value: object) -> str:
    """Accept the path of a Unix socket."""
    path = text(value)
    if len(path.encode()) > MAXIMUM_UNIX_PATH:
        raise ValueError(f"a path of at most {MAXIMUM_UNIX_PATH} bytes")
    return path


def permissions(value: object) -> int:
    """Return the permissions that octal digits in a string say, such as "0660"."""
    if not isinstance(value, str) or not PERMISSIONS.fullmatch(value):
        raise ValueError('permissions as a text of octal digits, such as "0660"')
    return int(value, 8)


def boolean(value: object) -> bool:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")  # noqa: TRY004 - one error for every bad setting
    return value


def whole_number(lowest: int, highest: int) -> Check:
    """Return a check for whole numbers between the two, both included."""

    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"a whole number from {lowest} to {highest}")  # noqa: TRY004
        if not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return check


def duration(value: object) -> int:
    """Return the seconds that a text such as "90s", "30m", "2h" or "7d" says; "0" is none."""
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a text such as "90s", "30m", "2h" or "7d", or "0"')
    return int(match[1] or 0) * SECONDS.get(match[2], 0)


def duration_from(lowest: int) -> Check:
    """Return a check for durations of at least `lowest` seconds."""

    def check(value: object) -> int:
        seconds = duration(value)
        if seconds < lowest:
            raise ValueError(f'at least {lowest} s, as a text such as "90s" or "30m"')
        return seconds

    return check


def size(value: object) -> int:
    """Return the bytes that a text such as "500kB", "20MB", "1.5GB" or "256MiB" says."""
    from decimal import Decimal

    match = SIZE.fullmatch(value) if isinstance(value, str) else None
    count = 0 if match is None else int(Decimal(match[1]) * UNITS[match[2]])
    if not count:
        raise ValueError('a size above 0 such as "500kB", "20MB", "1.5GB" or "256MiB"')
    return count


def size_from(lowest: int) -> Check:
    """Return a check for sizes of at least `lowest` bytes, as a text or a whole number."""

    def check(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        count = value if whole else size(value)
        if not isinstance(count, int) or count < lowest:
            raise ValueError(f'at least {lowest} bytes, such as {lowest} or "256MiB"')
        return count

    return check


def bytes_a_day(value: object) -> int:
    """Return the bytes that a text such as "200MB/day" says."""
    allowed = 'a size a day such as "200MB/day" or "1.5GB/day"'
    if not isinstance(value, str) or not value.endswith("/day"):
        raise ValueError(allowed)
    try:
        return size(value.removesuffix("/day"))
    except ValueError as error:
        raise ValueError(allowed) from error


def number(lowest: float, highest: float) -> Check:
    """Return a check for numbers between the two, both included."""

    def check(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"a number from {lowest} to {highest}")  # noqa: TRY004
        if not lowest <= value <= highest:
            raise ValueError(f"a number from {lowest} to {highest}")
        return float(value)

    return check


def one_of(*words: str) -> Check:
    """Return a check for one of these words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError("one of " + ", ".join(f'"{word}"' for word in words))
        return value

    return check


def gateway_id(value: object) -> str:
    """Accept a gateway id (docs/configuration.md)."""
    if not isinstance(value, str) or not GATEWAY_ID.fullmatch(value):
        raise ValueError("1 to 64 letters, digits, _ and -, beginning with a letter or digit")
    return value


def stream(value: object) -> str:
    """Accept the name of a stream (docs/fleet.md)."""
    if not isinstance(value, str) or not STREAM.fullmatch(value):
        raise ValueError("1 to 16 letters, digits, _ and -")
    return value


def fleet_url(value: object) -> str:
    """Accept the address of the fleet's broker."""
    allowed = "mqtt://host:port or mqtts://host:port"
    if not isinstance(value, str):
        raise ValueError(allowed)  # noqa: TRY004 - one error for every bad setting
    try:
        parts = urlsplit(value)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"{allowed}; the port is a number from 1 to 65535") from error
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or not port_is_valid:
        raise ValueError(allowed)
    if not value.isprintable() or " " in value:
        raise ValueError(f"{allowed}, without spaces")
    if parts.username or parts.password:
        raise ValueError(f"{allowed}; user name and password have keys of their own")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"{allowed}, and nothing behind the port")
    return value


def topic_prefix(value: object) -> str:
    """Accept the levels that stand before the gateway id in the fleet's topics."""
    if not isinstance(value, str) or not value or value[0] in "/$" or set(value) & set("+#\0"):
        raise ValueError("topic levels without wildcards that do not begin with / or $")
    return value.rstrip("/")


def topic_beginning(value: object) -> str:
    """Accept what topics that clients publish to may begin with."""
    if not isinstance(value, str) or not value or value[0] == "$" or set(value) & set("+#\0"):
        raise ValueError("the beginning of a topic, without wildcards and not with $")
    return value
