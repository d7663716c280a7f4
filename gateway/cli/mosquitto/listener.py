"""Converts a listener of Mosquitto to a `[[listener]]`."""

from dataclasses import dataclass, field
from typing import Any

from gateway.cli.mosquitto.bridge import NoPlaceError, is_true, whole
from gateway.cli.mosquitto.lines import Line
from gateway.settings.checks import mount_point

Table = dict[str, Any]

LOOPBACK = "127.0.0.1"
EVERYWHERE = {"": "0.0.0.0", "ipv4": "0.0.0.0", "ipv6": "::"}  # noqa: S104 - as Mosquitto does

SECURITY = {"acl_file": "acl_file", "password_file": "password_file"}
"""For each listener with per_listener_settings, otherwise for all, like `allow_anonymous`."""

FILES = {"certfile": "tls_certificate", "keyfile": "tls_key"}

KEEP_ALIVE = "max_keepalive"
"""An option for all listeners, wherever it stands; 0 means none."""

PORT = 1883

PROXIES = ("127.0.0.1", "::1")
"""Mosquitto believes everybody's PROXY header."""


@dataclass(slots=True)
class Listener:
    """The lines of a listener so far; `line` is None for the implicit one."""

    line: Line | None = None
    host: str = ""
    port: int = PORT
    path: str = ""
    domain: str = ""
    keys: Table = field(default_factory=dict)
    security: Table = field(default_factory=dict)
    authority: Line | None = None
    needs_certificate: bool = False
    proxied: Line | None = None
    named: Line | None = None

    @classmethod
    def of(cls, line: Line) -> "Listener":
        """Begin with a `listener` line; raise NoPlaceError."""
        port, _, address = line.value.partition(" ")
        address = address.strip()
        if not port.isdigit() or int(port) > 65_535:
            raise NoPlaceError("listener PORT [ADDRESS]")
        if port == "0":
            if not address.startswith("/"):
                raise NoPlaceError("a Unix socket has a path: listener 0 /PATH")
            return cls(line, path=address)
        return cls(line, address, int(port))

    def apply(self, line: Line) -> bool:
        """Read a line; return whether it is one of a listener. Raises NoPlaceError."""
        option, value = line.option, line.value
        if option in FILES:
            self.keys[FILES[option]] = value
        elif option == "max_connections":
            if (bound := whole(line)) > 0:  # -1 is none
                self.keys["maximum_connections"] = bound
        elif option == "cafile":
            self.authority = line
        elif option == "require_certificate":
            self.needs_certificate = is_true(line)
        elif option == "use_identity_as_username":
            self.keys |= {"tls_identity": "cn"} if is_true(line) else {}
        elif option == "socket_domain":
            self.domain = value
        elif option == "protocol":
            self._protocol(line)
        elif option == "mount_point":
            self._mount_point(line)
        elif option == "enable_proxy_protocol":
            self._proxied(line)
        elif option == "websockets_origin":
            self.keys.setdefault("websocket_origins", []).append(value)
        else:
            return False
        return True

    def _protocol(self, line: Line) -> None:
        if line.value == "websockets":
            self.keys["websocket"] = True
            self.keys["websocket_without_subprotocol"] = True
            self.keys.setdefault("websocket_origins", [])
        elif line.value != "mqtt":
            raise NoPlaceError("mqtt or websockets")

    def _mount_point(self, line: Line) -> None:
        try:
            self.keys["mount_point"] = mount_point(line.value)
        except ValueError as error:
            raise NoPlaceError(str(error)) from error
        self.named = line if "%" in line.value else None

    def _proxied(self, line: Line) -> None:
        if line.value not in ("1", "2", "0", "true", "false"):
            raise NoPlaceError("the version of the PROXY protocol, 1 or 2")
        if self.path:
            raise NoPlaceError("a Unix socket has no proxy in front")
        self.proxied = line if line.value not in ("0", "false") else None

    def table(self, shared: Table, *, local_only: bool) -> tuple[Table, list[tuple[Line, str]]]:
        """Return the `[[listener]]`, with the `shared` keys, and lines without an equivalent.

        With `local_only` it is the one of a file without any, which accepts everybody.
        """
        unconverted: list[tuple[Line, str]] = []
        table: Table = self._address()
        table |= {key: value for key, value in self.keys.items() if value != []}
        if self.keys.get("websocket_origins") == []:
            table["websocket_origins"] = ["*"]
        if self.authority is not None and self.needs_certificate:
            table["client_ca"] = self.authority.value
        elif self.authority is not None:
            why = "needless: client certificates are only requested with require_certificate"
            unconverted.append((self.authority, why))
        if self.proxied is not None:
            table |= {"proxy_protocol": True, "proxy_protocol_from": list(PROXIES)}
            why = "proxy_protocol_from has only this machine: name the addresses of your proxies"
            unconverted.append((self.proxied, why))
        if self.named is not None:
            why = (
                "%u and %c are the client's names here, and in Mosquitto 2.0 these very characters"
            )
            unconverted.append((self.named, why))
        security = shared | self.security
        if KEEP_ALIVE in security:
            table["maximum_keep_alive"] = security[KEEP_ALIVE]
        if "acl_file" in security:
            table["acl_file"] = security["acl_file"]
        if "tls_identity" in table:
            if "client_ca" not in table:
                del table["tls_identity"]
            else:
                return table, unconverted
        if "password_file" in security:
            table["password_file"] = security["password_file"]
        anonymous = security.get("allow_anonymous", local_only)
        table["allow_anonymous"] = anonymous
        return table, unconverted

    def _address(self) -> Table:
        if self.path:
            return {"path": self.path}
        return {"host": self.host or EVERYWHERE.get(self.domain, EVERYWHERE[""]), "port": self.port}
