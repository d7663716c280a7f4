"""Checks of single settings: each returns the value or raises ValueError with what is allowed."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from gateway.settings.declaration import Check, check, spell
from gateway.settings.web_address import ANY, OPAQUE, authority, origin

W = TypeVar("W", bound=str)

GATEWAY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
CHANNEL = re.compile(r"[A-Za-z0-9_.-]{1,64}(#tmp|#ephemeral)?")
STREAM = re.compile(r"[A-Za-z0-9_-]{1,16}")
URL_PATH = re.compile(r"/[^?#\x00-\x20\x7f-\U0010ffff]*")
PERMISSIONS = re.compile(r"0?[0-7]{3}")

TOPIC_PLACE = re.compile(r"\{(?:(gateway|topic)|([1-9][0-9]?)(\+?))\}")

FROM_ENVIRONMENT = "a variable such as TIDEGATE__UPLINK__URL sets the whole key"

MAXIMUM_UNIX_PATH = 107
"""Bytes of a Unix socket's path that Linux allows (unix(7))."""


@check("text", type="string", minLength=1)
def text(value: object) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("a text that is not empty")
    return value


readable_file = Check(text.read, "file", text.schema)
"""The path of a file to be read; `gateway/app/checks/check.py` tries that."""

topic_filter = Check(text.read, "topic filter", text.schema)
unshared_filter = Check(text.read, "topic filter", text.schema)
expression = Check(text.read, "[expression](where.md)", text.schema)
rule_expression = Check(text.read, "[expression](where.md)", text.schema)
value_expression = Check(text.read, "[expression](where.md)", text.schema)
"""Texts that `gateway/app/checks/check.py` checks: lower layers do not know their meaning."""


@check("list of texts", type="array", items={"type": "string", "minLength": 1})
def texts(value: object) -> tuple[str, ...]:
    """Accept a list of non-empty strings."""
    if not isinstance(value, list):
        raise ValueError("a list of texts")  # noqa: TRY004 - one error for every bad setting
    try:
        return tuple(text(each) for each in value)
    except ValueError as error:
        raise ValueError("a list of texts that are not empty") from error


@check("list of host names", type="array", items={"type": "string", "minLength": 1})
def hosts(value: object) -> tuple[str, ...]:
    """Accept a list of host names and addresses, of IPv6 in brackets."""
    named = texts(value)
    for each in named:
        found = authority(each)
        if found is None or found.port:
            raise ValueError("a list of host names such as barn.lan, without a port")
    return named


@check("list of origins", type="array", items={"type": "string", "minLength": 1})
def origins(value: object) -> tuple[str, ...]:
    """Accept a list of Origin values of browsers, or `*` for any."""
    named = texts(value)
    for each in named:
        if each not in (ANY, OPAQUE) and origin(each) is None:
            raise ValueError("a list of origins such as https://panel.example, without a path")
    return named


@check("list of paths", type="array", items={"type": "string", "pattern": "^/"}, minItems=1)
def url_paths(value: object) -> tuple[str, ...]:
    """Accept a list of paths of URLs."""
    named = texts(value)
    if not named or not all(URL_PATH.fullmatch(each) for each in named):
        raise ValueError("a list of paths such as /mqtt, without ? and #")
    return named


windows = Check(texts.read, "list of windows", texts.schema)


@check(f"at most {MAXIMUM_UNIX_PATH} bytes", type="string", minLength=1)
def unix_path(value: object) -> str:
    """Accept the path of a Unix socket."""
    path = text(value)
    if len(path.encode()) > MAXIMUM_UNIX_PATH:
        raise ValueError(f"a path of at most {MAXIMUM_UNIX_PATH} bytes")
    return path


@check(
    "octal digits",
    spell=lambda mode: f'"{mode:04o}"',
    type="string",
    pattern=f"^{PERMISSIONS.pattern}$",
)
def permissions(value: object) -> int:
    """Return the permissions of octal digits in a string, such as "0660"."""
    if not isinstance(value, str) or not PERMISSIONS.fullmatch(value):
        raise ValueError('permissions as a text of octal digits, such as "0660"')
    return int(value, 8)


@check("boolean", type="boolean")
def boolean(value: object) -> bool:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")  # noqa: TRY004 - one error for every bad setting
    return value


def whole_number(lowest: int, highest: int) -> Check[int]:
    """Return a check for whole numbers between the two, both included."""

    @check(f"{lowest} to {highest}", type="integer", minimum=lowest, maximum=highest)
    def whole(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"a whole number from {lowest} to {highest}")  # noqa: TRY004
        if not lowest <= value <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return value

    return whole


LARGEST = 1e12
"""The bound of numbers that have no other."""


def number(lowest: float, highest: float) -> Check[float]:
    """Return a check for numbers between the two, both included."""
    allowed = f"from {lowest}" if highest == LARGEST else f"{lowest} to {highest}"

    @check(allowed, type="number", minimum=lowest, maximum=highest)
    def real(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"a number from {lowest} to {highest}")  # noqa: TRY004
        if not lowest <= value <= highest:
            raise ValueError(f"a number from {lowest} to {highest}")
        return float(value)

    return real


any_number = Check(number(-LARGEST, LARGEST).read, "number", number(-LARGEST, LARGEST).schema)
"""A number without a bound of its own."""


def one_of(*words: W) -> Check[W]:
    """Return a check for one of these words, which may be members of an enumeration."""
    known = {str(word): word for word in words}

    @check(", ".join(f'`"{word}"`' for word in known), enum=list(known))
    def one(value: object) -> W:
        if not isinstance(value, str) or value not in known:
            raise ValueError("one of " + ", ".join(f'"{word}"' for word in known))
        return known[value]

    return one


@check("1 to 64 letters, digits, `_`, `-`", type="string", pattern=f"^{GATEWAY_ID.pattern}$")
def gateway_id(value: object) -> str:
    """Accept a gateway id (docs/use/configuration.md)."""
    if not isinstance(value, str) or not GATEWAY_ID.fullmatch(value):
        raise ValueError("1 to 64 letters, digits, _ and -, beginning with a letter or digit")
    return value


@check("1 to 16 letters, digits, `_`, `-`", type="string", pattern=f"^{STREAM.pattern}$")
def stream(value: object) -> str:
    """Accept the name of a stream (docs/understand/fleet-interface.md)."""
    if not isinstance(value, str) or not STREAM.fullmatch(value):
        raise ValueError("1 to 16 letters, digits, _ and -")
    return value


@check("1 to 64 letters, digits, `_`, `-`, `.`", type="string", pattern=f"^{CHANNEL.pattern}$")
def channel_name(value: object) -> str:
    """Accept the name of a channel (docs/use/channels.md)."""
    if not isinstance(value, str) or not CHANNEL.fullmatch(value):
        raise ValueError("1 to 64 letters, digits, _, - and ., then perhaps #tmp or #ephemeral")
    return value


@check(
    "name or list of names",
    oneOf=[{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
)
def uplink_names(value: object) -> tuple[str, ...]:
    """Accept the name of an uplink, or several."""
    try:
        names = tuple(map(stream, value if isinstance(value, list) else [value]))
    except ValueError:
        names = ()
    if not names:
        raise ValueError("a name or a list of names, each of 1 to 16 letters, digits, _ and -")
    return names


@check(
    "`mqtt://host:port`, `mqtts://…`, `ws://host:port/path`, `wss://…`",
    type="string",
    pattern="^(mqtts?://[^/ @]+/?|wss?://[^/ @]+(/[^ #]*)?)$",
)
def fleet_url(value: object) -> str:
    """Accept the address of the fleet's broker."""
    allowed = "mqtt://host:port, mqtts://host:port, ws://host:port/path or wss://host:port/path"
    if not isinstance(value, str):
        raise ValueError(allowed)  # noqa: TRY004 - one error for every bad setting
    if "${" in value:
        raise ValueError(f"{allowed}; ${{…}} is not replaced here: {FROM_ENVIRONMENT}")
    try:
        parts = urlsplit(value)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"{allowed}; the port is a number from 1 to 65535") from error
    if (
        parts.scheme not in ("mqtt", "mqtts", "ws", "wss")
        or not parts.hostname
        or not port_is_valid
    ):
        raise ValueError(allowed)
    if not value.isprintable() or " " in value:
        raise ValueError(f"{allowed}, without spaces")
    if parts.username or parts.password:
        raise ValueError(f"{allowed}; user name and password have keys of their own")
    if parts.fragment or (parts.scheme not in ("ws", "wss") and _has_path(parts)):
        raise ValueError(f"{allowed}, and nothing behind the port of mqtt:// and mqtts://")
    return value


Network = IPv4Network | IPv6Network

MAXIMUM_NETWORKS = 100


@check(
    "list of addresses and networks",
    type="array",
    items={"type": "string"},
    minItems=1,
    maxItems=MAXIMUM_NETWORKS,
    spell=lambda networks: spell([str(each) for each in networks]),
)
def networks(value: object) -> tuple[Network, ...]:
    """Accept a list of addresses, and of networks such as 10.0.0.0/8."""
    allowed = f'1 to {MAXIMUM_NETWORKS} addresses or networks such as "10.1.2.3" and "fd00::/8"'
    if not isinstance(value, list) or not 1 <= len(value) <= MAXIMUM_NETWORKS:
        raise ValueError(allowed)
    try:
        return tuple(ip_network(text(each)) for each in value)
    except ValueError as error:
        raise ValueError(f"{allowed}: {error}") from error


MAXIMUM_URLS = 8


@check(
    f"1 to {MAXIMUM_URLS} of {fleet_url.allowed}",
    anyOf=[
        dict(fleet_url.schema),
        {"type": "array", "items": dict(fleet_url.schema), "minItems": 1, "maxItems": MAXIMUM_URLS},
    ],
    spell=lambda urls: spell(urls[0] if len(urls) == 1 else list(urls)),
)
def fleet_urls(value: object) -> tuple[str, ...]:
    """Accept the address of the fleet's broker, or several in their order."""
    if not isinstance(value, list):
        return (fleet_url(value),)
    if not 1 <= len(value) <= MAXIMUM_URLS:
        raise ValueError(f"1 to {MAXIMUM_URLS} addresses, each as {fleet_url.allowed}")
    urls = tuple(fleet_url(each) for each in value)
    if len(set(urls)) < len(urls):
        raise ValueError("addresses of which no two are the same")
    return urls


@check("`http://host:port` or `socks5://host:port`", type="string")
def proxy_url(value: object) -> str:
    """Accept the address of a proxy."""
    allowed = "http://host:port or socks5://host:port"
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{allowed}; the port is a number from 1 to 65535") from error
    if parts.scheme not in ("http", "socks5") or not parts.hostname or not port:
        raise ValueError(allowed)
    if parts.username or parts.password:
        raise ValueError(f"{allowed}; user name and password stand in proxy_credentials_file")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"{allowed}, and nothing behind the port")
    return f"{parts.scheme}://{parts.netloc}"


@check(
    "1 to 8 texts of 1 to 255 ASCII characters",
    anyOf=[{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
)
def protocols(value: object) -> tuple[str, ...]:
    """Accept names of protocols for ALPN (RFC 7301), one or several."""
    names = value if isinstance(value, list) else [value]
    good = [isinstance(each, str) and each.isascii() and 0 < len(each) < 256 for each in names]
    if not names or len(names) > MAXIMUM_URLS or not all(good):
        raise ValueError(f"1 to {MAXIMUM_URLS} texts of 1 to 255 ASCII characters")
    return tuple(names)


def _has_path(parts: SplitResult) -> bool:
    return parts.path not in ("", "/") or bool(parts.query)


@check("topic levels", type="string", pattern="^[^/$+#][^+#]*$")
def topic_prefix(value: object) -> str:
    """Accept the levels that precede the gateway id in the fleet's topics."""
    if not isinstance(value, str) or not value or value[0] in "/$" or set(value) & set("+#\0"):
        raise ValueError("topic levels without wildcards that do not begin with / or $")
    return value.rstrip("/")


@check("topic with placeholders", type="string", pattern="^[^$+#][^+#]*$")
def topic_template(value: object) -> str:
    """Accept a topic name with placeholders such as {gateway}, {topic}, {2} and {3+}."""
    allowed = "a topic with the places {gateway}, {topic}, {2} (a level) or {2+} (and all behind)"
    if not isinstance(value, str) or not value or value[0] == "$":
        raise ValueError(allowed + ", not empty and not with $")
    plain = TOPIC_PLACE.sub("x", value)
    if set(plain) & set("+#\0{}"):
        raise ValueError(allowed + ", and no other braces or wildcards")
    return value


@check("topic name", type="string", pattern="^[^$+#][^+#]*$")
def plain_topic(value: object) -> str:
    """Accept the name of a topic that clients may publish to."""
    if not isinstance(value, str) or not value or value[0] == "$" or set(value) & set("+#\0"):
        raise ValueError("a topic name, without wildcards and not with $")
    return value


LONGEST_MOUNT_POINT = 200
"""Bytes: each topic of a client becomes longer by that."""


@check("beginning of topics", type="string", pattern="^[^$+#][^+#]*$")
def mount_point(value: object) -> str:
    """Accept what is put in front of each topic of a client; %u and %c are its names."""
    allowed = (
        f"1 to {LONGEST_MOUNT_POINT} bytes without + and #, not beginning with $; % only as %u, "
        "the user name, and %c, the client identifier"
    )
    if not isinstance(value, str) or not 0 < len(value.encode()) <= LONGEST_MOUNT_POINT:
        raise ValueError(allowed)
    plain = value.replace("%u", "").replace("%c", "")
    if value[0] == "$" or set(plain) & set("+#%\0"):
        raise ValueError(allowed)
    return value


@check("beginning of a topic", type="string", pattern="^[^$+#][^+#]*$")
def topic_beginning(value: object) -> str:
    """Accept a prefix of topics that clients publish to."""
    if not isinstance(value, str) or not value or value[0] == "$" or set(value) & set("+#\0"):
        raise ValueError("the beginning of a topic, without wildcards and not with $")
    return value


SIMILAR = 0.6
"""How similar two words must be, up to 1."""


def meant(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, None without one."""
    from difflib import get_close_matches  # only once something is wrong

    by_letters = {each.lower(): each for each in known}
    for like in get_close_matches(word.lower(), by_letters, 1, SIMILAR):
        return by_letters[like]
    return None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return `; did you mean "X"?` with the most similar known word, "" without one."""
    like = meant(word, known) if isinstance(word, str) else None
    return f'; did you mean "{like}"?' if like else ""
