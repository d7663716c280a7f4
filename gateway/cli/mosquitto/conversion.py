"""Converts a mosquitto.conf to a configuration of the gateway."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.cli.mosquitto.bridge import Bridge, NoPlaceError, is_true, whole
from gateway.cli.mosquitto.lines import Line, lines_of
from gateway.cli.mosquitto.listener import KEEP_ALIVE, LOOPBACK, SECURITY, Listener

Table = dict[str, Any]

UPLINKS = 8
"""Uplinks of a gateway."""

UNBOUNDED_MESSAGES = 100_000_000
SMALLEST_PACKET = 1024
LARGEST_INFLIGHT = 65_535

TIMES = {"h": 3_600, "d": 86_400, "w": 604_800, "m": 2_592_000, "y": 31_536_000}
"""Seconds of the letters that may follow a number in Mosquitto: a month has 30 days."""

TIME = re.compile(r"([0-9]+)([hdwmy])")

VERBOSE = ("debug", "all")
"""Log types that enable everything."""


def _bound(least: int, none: int | None) -> Callable[[Line], object]:
    """Return a reader of a bound, of which 0 means none."""
    return lambda line: none if whole(line) <= 0 else max(least, whole(line))


def _sys_interval(line: Line) -> object:
    if whole(line) == 0:
        raise NoPlaceError("figures under $SYS are always there")
    return f"{min(whole(line), 3_600)}s"


def _expiration(line: Line) -> object:
    match = TIME.fullmatch(line.value)
    if match is None:
        raise NoPlaceError("a number and one of h, d, w, m and y")
    return f"{int(match[1]) * TIMES[match[2]]}s"


KEYS: dict[str, tuple[str, str, Callable[[Line], object]]] = {
    "max_packet_size": ("broker", "maximum_packet_size", _bound(SMALLEST_PACKET, None)),
    "message_size_limit": ("broker", "maximum_packet_size", _bound(SMALLEST_PACKET, None)),
    "max_inflight_messages": ("broker", "maximum_inflight", _bound(1, LARGEST_INFLIGHT)),
    "max_queued_messages": ("broker", "maximum_queued_messages", _bound(1, UNBOUNDED_MESSAGES)),
    "max_queued_bytes": ("broker", "maximum_queued_bytes", _bound(1024, None)),
    "max_topic_alias": ("broker", "topic_alias_maximum", _bound(0, 0)),
    "sys_interval": ("broker", "sys_interval", _sys_interval),
    "persistent_client_expiration": ("broker", "maximum_session_expiry", _expiration),
    "persistence": ("storage", "durability", lambda line: None if is_true(line) else "memory"),
    "connection_messages": ("log", "broker", lambda line: None if is_true(line) else "warning"),
    "log_type": ("log", "level", lambda line: "debug" if line.value in VERBOSE else None),
}
"""Options that become one key: its table, its name, and its reader."""


class Conversion:
    """The tables of a configuration, and the lines without an equivalent.

    `unconverted` has each such line with the reason, and whether something differs without it;
    `secrets` are passwords by the name of the file that must contain them.
    """

    def __init__(self, file: Path) -> None:
        self.broker: Table = {}
        self.storage: Table = {}
        self.log: Table = {}
        self.unconverted: list[tuple[Line, str, bool]] = []
        self.secrets: dict[str, str] = {}
        self.remarks: list[str] = []
        self._shared: Table = {}
        self._default = Listener()
        self._has_default = False
        self._listeners: list[Listener] = []
        self._bridges: list[Bridge] = []
        self._per_listener = False
        lines = list(lines_of(file))
        for line in lines:
            if line.option == "per_listener_settings":
                self._per_listener = line.value == "true"
        for line in lines:
            try:
                if not self._apply(line):
                    why, needless = why_not(line.option)
                    self.unconverted.append((line, why, not needless))
            except NoPlaceError as error:
                self.unconverted.append((line, str(error), True))
        self.listeners = self._made_listeners()
        self.uplinks = self._made_uplinks()

    def _apply(self, line: Line) -> bool:
        """Read a line into its part; return False if it has no equivalent."""
        if line.option == "listener":
            self._listeners.append(Listener.of(line))
            return True
        if line.option == "connection":
            self._bridges.append(Bridge(line.value, line))
            return True
        return self._take_security(line) or self._take_default(line) or self._take_part(line)

    def _take_part(self, line: Line) -> bool:
        """Read a line of the broker, of the last bridge or of the last listener."""
        if self._take_broker(line):
            return True
        if self._bridges and self._bridges[-1].apply(line):
            return True
        return (self._listeners or [self._default])[-1].apply(line)

    def _take_security(self, line: Line) -> bool:
        """Read who may connect and the longest keep alive: for all listeners, or for the last."""
        option = line.option
        if option == KEEP_ALIVE:  # mosquitto.conf(5) has it among the general options
            if (seconds := whole(line)) > 0:
                self._shared[KEEP_ALIVE] = f"{seconds}s"
            return True
        if option != "allow_anonymous" and option not in SECURITY:
            return False
        own = self._per_listener
        where = (self._listeners or [self._default])[-1].security if own else self._shared
        where[option] = is_true(line) if option == "allow_anonymous" else line.value
        return True

    def _take_default(self, line: Line) -> bool:
        """Read the address of the listener without a `listener` line."""
        if line.option == "port":
            self._default.port = whole(line)
        elif line.option == "bind_address":
            self._default.host = line.value
        else:
            return False
        self._has_default = True
        return True

    def _take_broker(self, line: Line) -> bool:
        key = KEYS.get(line.option)
        if key is None:
            return False
        table, name, value_of = key
        value = value_of(line)
        if value is not None:
            tables: dict[str, Table] = {"broker": self.broker, "storage": self.storage}
            tables.get(table, self.log)[name] = value
        return True

    def _made_listeners(self) -> list[tuple[str, Table]]:
        local_only = not self._listeners and not self._has_default
        listeners = list(self._listeners)
        if self._has_default or not listeners:
            listeners.insert(0, self._default)
            if local_only:
                self._default.host = LOOPBACK
        made = []
        for listener in listeners:
            table, lines = listener.table(self._shared, local_only=local_only)
            self.unconverted += [(line, why, not why.startswith("needless")) for line, why in lines]
            heading = "" if listener.line is None else listener.line.place
            made.append((heading, table))
            if table.get("host") == "0.0.0.0":  # noqa: S104 - compared
                self.remarks.append(
                    f'listener {table["port"]}: only IPv4; for IPv6 add one with host = "::"'
                )
        return made

    def _made_uplinks(self) -> list[tuple[str, Table]]:
        made: list[tuple[str, Table]] = []
        names: set[str] = set()
        for place, bridge in enumerate(self._bridges, start=1):
            if place > UPLINKS:
                self.unconverted.append((bridge.line, f"a gateway has {UPLINKS} uplinks", True))
                continue
            table, unconverted = bridge.tables(place, only_one=len(self._bridges) == 1)
            while table.get("name") in names:
                table["name"] = f"{table['name'][:12]}-{place}"
            names.add(table.get("name", ""))
            self.unconverted += [(line, why, True) for line, why in unconverted]
            if bridge.password is not None:
                file = f"{bridge.uplink_name}.password"
                self.secrets[file] = bridge.password
                table["password_file"] = file
            made.append((bridge.line.place, table))
        return made


NEEDLESS = {
    "allow_duplicate_messages": "a message comes once by overlapping subscriptions",
    "allow_zero_length_clientid": "clients without an identifier get one",
    "auto_id_prefix": "identifiers that the gateway gives begin with auto-",
    "autosave_interval": "what is acknowledged is on disk at that moment",
    "autosave_on_changes": "what is acknowledged is on disk at that moment",
    "bridge_attempt_unsubscribe": "nothing is unsubscribed without a request",
    "bridge_reload_type": "a link is opened again when its settings change",
    "bridge_tls_use_os_certs": "the system's authorities are trusted where there is no ca_file",
    "bridge_tls_version": "TLS 1.2 and 1.3 are used",
    "check_retain_source": "the right to write is checked when a message is published",
    "dhparamfile": "TLS has no parameters of its own here",
    "include_dir": "its files are read at that line",
    "log_dest": "the log is written to standard error, and so to the journal",
    "log_facility": "the journal has the lines",
    "log_timestamp": "lines have the time",
    "log_timestamp_format": "lines have the time",
    "max_topic_alias_broker": "topic_alias_maximum_out has a bound of its own",
    "memory_limit": "[memory] limit has a bound of its own, by the machine's memory",
    "per_listener_settings": "each listener has its own keys here",
    "persistence_file": "the database has its name in the data folder",
    "pid_file": "systemd knows the process",
    "retain_expiry_interval": "an expired retained message is removed at its time",
    "set_tcp_nodelay": "it is always set",
    "threshold": "links are always up",
    "tls_version": "TLS 1.2 and 1.3 are offered",
    "try_private": "a bridge is always recognized: MQTT 5 has No Local, 3.1.1 the bridge bit",
    "websockets_headers_size": "heads of requests have a bound of their own",
    "websockets_log_level": "[log] server has the lines of WebSocket",
}
"""Omitted without a loss."""

WITHOUT = {
    "accept_protocol_versions": "all of MQTT 3.1, 3.1.1 and 5 are accepted",
    "auth_plugin": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "auth_plugin_deny_special_chars": "there are no plug-ins for Mosquitto",
    "bind_interface": "host takes an address, not an interface: name the address of that interface",
    "bridge_bind_address": "the kernel chooses the address that a link comes from",
    "bridge_capath": "put the authorities into one file, for ca_file",
    "bridge_identity": "there is no TLS-PSK; use a certificate",
    "bridge_insecure": "the certificate and its host name are always checked; use ca_file",
    "bridge_psk": "there is no TLS-PSK; use a certificate",
    "bridge_receive_maximum": "100 messages from the broker may be unacknowledged",
    "bridge_require_ocsp": "OCSP is not used",
    "bridge_tcp_keepalive": "PINGREQ finds a dead link",
    "bridge_tcp_user_timeout": "PINGREQ finds a dead link",
    "capath": "put the authorities into one file, for client_ca",
    "ciphers": "OpenSSL's default ciphers are used",
    "ciphers_tls1.3": "OpenSSL's default ciphers are used",
    "bridge_ciphers": "OpenSSL's default ciphers are used",
    "bridge_ciphers_tls1.3": "OpenSSL's default ciphers are used",
    "clientid_prefixes": "use rules or users to tell clients apart",
    "crlfile": "revocation lists are not read: issue certificates for short times",
    "disable_client_cert_date_checks": "dates of certificates are always checked",
    "enable_control_api": "queries on $CONTROL/tidegate are there for operators",
    "global_max_clients": "give each listener maximum_connections",
    "global_max_connections": "give each listener maximum_connections",
    "http_dir": "the gateway serves no files",
    "idle_timeout": "links are always up; [uplink] schedule bounds when",
    "listener_allow_anonymous": "use allow_anonymous of the listener",
    "listener_auto_id_prefix": "identifiers that the gateway gives begin with auto-",
    "local_cleansession": "the bridge is part of the gateway and loses nothing here",
    "local_clientid": "the bridge is part of the gateway and is no client of it",
    "local_password": "the bridge is part of the gateway and is no client of it",
    "local_username": "the bridge is part of the gateway; username of [[uplink.down]] bounds it",
    "max_inflight_bytes": "messages on their way to a client are bounded by number",
    "max_qos": "QoS 0, 1 and 2 are granted",
    "notifications_local_only": "the state of a link is $SYS/broker/tidegate/uplink/state here",
    "persistence_location": "tidegate run --data DIR names the data folder",
    "plugin": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "plugin_load": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "plugin_use": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "psk_file": "there is no TLS-PSK; use certificates",
    "psk_hint": "there is no TLS-PSK; use certificates",
    "queue_qos0_messages": "QoS 0 is not queued for disconnected clients",
    "retain_available": "retained messages are always available",
    "tls_engine": "engines of OpenSSL are not loaded",
    "tls_engine_kpass_sha1": "engines of OpenSSL are not loaded",
    "tls_keyform": "engines of OpenSSL are not loaded",
    "tls_ocsp": "OCSP is not stapled",
    "upgrade_outgoing_qos": "messages keep their QoS, as MQTT has it",
    "use_subject_as_username": 'tls_identity = "cn" takes the common name',
    "use_username_as_clientid": "clients choose their identifiers; a session is its user's",
    "user": "systemd's User= says as whom it runs",
}
"""Omitted, and something differs without them."""

PLUGIN_OPTIONS = ("auth_opt_", "plugin_opt_")

UNKNOWN = "an unknown option"


def why_not(option: str) -> tuple[str, bool]:
    """Return why an option has no equivalent, and whether nothing is lost."""
    if option in NEEDLESS:
        return NEEDLESS[option], True
    if option.startswith(PLUGIN_OPTIONS):
        return "there are no plug-ins for Mosquitto", False
    return WITHOUT.get(option, UNKNOWN), False
