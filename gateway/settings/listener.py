"""Addresses at which clients connect: `[[listener]]`."""

from collections.abc import Iterator

from gateway.settings.checks import (
    Network,
    boolean,
    mount_point,
    networks,
    number,
    one_of,
    origins,
    permissions,
    readable_file,
    text,
    unix_path,
    url_paths,
    whole_number,
)
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.durability import durability
from gateway.settings.quantities import seconds, size
from gateway.settings.web_address import is_loopback

NEEDS = (
    ("mode", "path"),
    ("tls_key", "tls_certificate"),
    ("client_ca", "tls_certificate"),
    ("tls_identity", "client_ca"),
    ("websocket_origins", "websocket"),
    ("websocket_paths", "websocket"),
    ("websocket_without_subprotocol", "websocket"),
    ("connection_burst", "connection_rate"),
    ("proxy_protocol", "proxy_protocol_from"),
    ("proxy_protocol_from", "proxy_protocol"),
)
"""The first key has no effect without the second."""

EXCLUDES = (
    ("host", "path"),
    ("port", "path"),
    ("proxy_protocol", "path"),
    ("password_file", "tls_identity"),
    ("allow_anonymous", "tls_identity"),
)
"""Only one of these two keys may be given: a socket has one address, a client one identity."""

PROOFS = frozenset({"password_file", "client_ca", "allow_anonymous"})
"""Beyond loopback one of these keys must say who may connect."""


NAMES = frozenset({"password_file", "tls_identity"})
"""One of these keys proves a user name."""


@settings_class
class ListenerSettings:
    """Where clients connect ([examples](#listeners)); without any, 127.0.0.1:1883."""

    host: str = key(
        text,
        "address; `::` is IPv6 only",
        "127.0.0.1",
    )
    port: int = key(
        whole_number(1, 65_535),
        "TCP port",
        1883,
    )
    allow_anonymous: bool | None = key(
        boolean,
        "accept clients without a user name",
        None,
        shown="true on loopback without a `password_file`",
    )
    password_file: str | None = key(
        readable_file,
        "users, from [`tidegate user`](access.md#users) or `mosquitto_passwd`",
        None,
    )
    acl_file: str | None = key(
        readable_file,
        "[access rules](access.md#the-acl-file)",
        None,
    )
    mount_point: str | None = key(
        mount_point,
        "[prefix](access.md#mount-points) of its clients' topics",
        None,
    )
    path: str | None = key(
        unix_path,
        "a Unix socket, instead of `host` and `port`",
        None,
    )
    mode: int = key(
        permissions,
        "permissions of the socket",
        0o660,
    )
    tls_certificate: str | None = key(
        readable_file,
        "PEM, the certificate first, then intermediate ones; TLS 1.2 and 1.3",
        None,
    )
    tls_key: str | None = key(
        readable_file,
        "PEM, the certificate's private key",
        None,
        shown="in the certificate's file",
    )
    client_ca: str | None = key(
        readable_file,
        "PEM, authorities for certificates of clients, which then need one",
        None,
    )
    tls_identity: str | None = key(
        one_of("cn"),
        "a certificate's common name is the user name; excludes `password_file`",
        None,
    )
    websocket: bool = key(
        boolean,
        "MQTT over WebSocket; needs the extra `websocket`",
        default=False,
    )
    websocket_paths: tuple[str, ...] = key(
        url_paths,
        "its paths; others get 404",
        ("/mqtt", "/mqtt/", "/ws", "/ws/", "/"),
    )
    websocket_without_subprotocol: bool = key(
        boolean,
        "accept clients without the subprotocol, which otherwise get 400",
        default=False,
    )
    websocket_origins: tuple[str, ...] | None = key(
        origins,
        'other [pages](access.md#web-pages); `"*"`: any',
        None,
        shown="pages of the listener's own address",
    )
    proxy_protocol: bool = key(
        boolean,
        "connections come through a [proxy](access.md#behind-a-proxy)",
        default=False,
    )
    proxy_protocol_from: tuple[Network, ...] = key(
        networks,
        "these proxies; connections from others are closed",
        (),
    )
    maximum_connections: int | None = key(
        whole_number(1, 1_000_000),
        "connections; [beyond](#listeners): 0x97 (MQTT 3.1.1: 3)",
        None,
        shown="what the process can hold",
    )
    maximum_packet_size: int | None = key(
        size(1024, 256 * 1024 * 1024),
        "size of a packet",
        None,
        shown="that of `[broker]`",
    )
    maximum_keep_alive: int | None = key(
        seconds(1, 65_535),
        "Server Keep Alive for clients that request more, or none (MQTT 5)",
        None,
    )
    session_takeover: str = key(
        one_of("same_user", "anyone"),
        "who may [take over](access.md#session-ownership) a session",
        "same_user",
    )
    where_identity: bool = key(
        boolean,
        "`$where` may use publishers' `$clientid` and `$username`; otherwise NULL",
        default=True,
    )
    connection_rate: float | None = key(
        number(0.01, 100_000),
        "new connections a second; others are closed",
        None,
    )
    connection_burst: int | None = key(
        whole_number(1, 1_000_000),
        "new connections at once after a pause",
        None,
        shown="a second's worth",
    )
    durability: str | None = key(
        durability,
        "[durability class](../understand/durability.md) of its clients",
        None,
        shown="that of `[storage]`",
    )
    delivery: str | None = key(
        one_of("device", "device_persistent", "application"),
        "[delivery class](delivery.md), unless a `[[delivery.rule]]` matches",
        None,
        shown="by the session",
    )

    @property
    def name(self) -> str:
        """Its identity across restarts: its path, or host and port."""
        return self.path if self.path is not None else f"{self.host}:{self.port}"

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield conflicts between the keys that are `given`."""
        for name, needed in NEEDS:
            if name in given and not getattr(self, needed):
                yield name, getattr(self, name), f"only together with {needed}"
        if "%u" in (self.mount_point or "") and not given & NAMES:
            needed = " or ".join(sorted(NAMES))
            yield "mount_point", self.mount_point, f"%u only together with {needed}"
        for name, other in EXCLUDES:
            if {name, other} <= given:
                yield name, getattr(self, name), f"either {name} or {other}, not both"
        if not is_loopback(self.host) and not given & PROOFS:  # never by accident
            allowed = (
                "beyond loopback a listener names a password_file or a client_ca,"
                " or says allow_anonymous = true"
            )
            yield "host", self.host, allowed
