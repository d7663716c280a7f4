"""Valid configurations that look like a mistake."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from gateway.app.access import access_warnings, read_acl
from gateway.app.authenticators import password_file
from gateway.app.checks.file_warnings import file_warnings
from gateway.config.configuration import Configuration, values_of
from gateway.config.errors import ConfigurationError
from gateway.config.host_name import is_common
from gateway.pieces import EMPTY_ON_PURPOSE, complete
from gateway.settings import checks
from gateway.settings.listener import ListenerSettings
from gateway.settings.outbox import OutboxSettings, StreamSettings
from gateway.settings.uplinks import place_of
from gateway.settings.web_address import ANY, OPAQUE, is_loopback

PLAIN = {"mqtt": "mqtts", "ws": "wss"}
"""Schemes without encryption, and the same with it."""

LARGEST_CHECKED = 64 * 1024
"""Bytes of a file up to which it may be empty of rules; a longer one is assumed to have some."""
RULES = "has no rules: clients here may read and write nothing"
USERS = "has no users: nobody can log in here"


def warnings(configuration: Configuration, data: Path | None = None) -> list[str]:
    """Return a line for each thing that looks like a mistake.

    These are names that others may have, acknowledged messages that may be dropped, access rules
    that depend on unproven names, files without rules or users, listeners that admit more or less
    than it seems, files that others may change or read, and filters that make no sense.
    """
    return [
        *name_warnings(configuration),
        *drop_warnings(configuration),
        *access_warnings(configuration),
        *empty_file_warnings(configuration),
        *door_warnings(configuration),
        *uplink_warnings(configuration),
        *file_warnings(configuration, data),
        *_unlikely_filters(configuration),
    ]


def _unlikely_filters(configuration: Configuration) -> Iterator[str]:
    for name, key, value in values_of(configuration):
        if key.check in (checks.expression, checks.rule_expression, checks.value_expression):
            from gateway.where.language.likely_mistakes import likely_mistakes
            from gateway.where.rule import compile_rule

            where = compile_rule(value)
            if where.never_true and key.check is not checks.value_expression:
                yield f"{name}: the filter can never be true: {value}"
            for mistake in likely_mistakes(value, where.expression):
                yield f"{name}: {mistake}"


def door_warnings(configuration: Configuration) -> Iterator[str]:
    """Yield a line for each such listener."""
    for index, listener in enumerate(configuration.listeners):
        key = f"listener[{index}]"
        if listener.websocket:
            yield from _of_websocket(key, listener)
        if listener.mount_point is not None and not listener.mount_point.endswith("/"):
            whole = f"{listener.mount_point}a"
            yield (
                f'{key}.mount_point: topic "a" of a client becomes "{whole}", and it cannot'
                f' subscribe to #: write "{listener.mount_point}/" for a level of its own'
            )
        if _hears_passwords(listener):
            yield (
                f"{key}.password_file: passwords cross the network unencrypted at {listener.host}:"
                " give the listener a tls_certificate"
            )
        if _is_closed_by_roles(configuration, listener):
            yield (
                f"{key}: since there are roles, clients without a user name may do nothing here,"
                " programs of this machine among them: give a role anonymous = true, or the"
                " listener a password_file. The tidegate commands of this machine get in by a"
                " socket of their own"
            )


def _of_websocket(key: str, listener: ListenerSettings) -> Iterator[str]:
    named = listener.websocket_origins or ()
    if ANY in named:
        yield (
            f'{key}.websocket_origins: "{ANY}" accepts every page that a browser on this network'
            " shows: name the pages that may connect"
        )
    elif OPAQUE in named:
        yield (
            f'{key}.websocket_origins: "{OPAQUE}" is the origin of every file and sandboxed frame,'
            " also of strangers' pages: name the pages that may connect"
        )
    if admits_anonymous(listener) and listener.client_ca is None:
        pages = f"pages of {', '.join(named)}" if named else "pages of its own address"
        yield (
            f"{key}.websocket: no password is required, for {pages} and all programs that reach"
            " it: a password_file defines who may connect"
        )


def _hears_passwords(listener: ListenerSettings) -> bool:
    """Return whether passwords of clients can be read on the network."""
    local = listener.path is not None or is_loopback(listener.host)
    return listener.password_file is not None and listener.tls_certificate is None and not local


def uplink_warnings(configuration: Configuration) -> Iterator[str]:
    """Yield a line for each unencrypted uplink whose keys look as if it were encrypted.

    One to this machine needs no encryption.
    """
    for index, uplink in enumerate(configuration.uplinks):
        plain = (url for url in map(urlsplit, uplink.urls) if url.scheme in PLAIN)
        key, url = place_of(configuration.uplinks, index), next(plain, None)
        if url is None:
            continue
        safe = url._replace(scheme=PLAIN[url.scheme]).geturl()
        if uplink.ca_file is not None:
            yield f"{key}.ca_file: not used, since {url.geturl()} is not encrypted: write {safe}"
        elif uplink.password_file is not None and not is_loopback(url.hostname or ""):
            yield (
                f"{key}.password_file: the password crosses the network unencrypted: write {safe}"
                " if the fleet's broker accepts TLS"
            )


def _is_closed_by_roles(configuration: Configuration, listener: ListenerSettings) -> bool:
    """Return whether roles admit clients without a user name, but give them no rights."""
    roles = configuration.access.roles
    if not roles or listener.acl_file is not None or listener.path is not None:
        return False
    return admits_anonymous(listener) and not any(role.anonymous for role in roles)


def admits_anonymous(listener: ListenerSettings) -> bool:
    """Return whether a client without a user name is accepted."""
    if listener.password_file is not None:
        return bool(listener.allow_anonymous)
    return listener.tls_identity is None and listener.allow_anonymous is not False


def drop_warnings(configuration: Configuration) -> list[str]:
    """Return a line for each setting that may drop acknowledged messages."""
    policy = configuration.broker.queue_when_full
    warnings = []
    if policy == "drop-oldest":
        text = f'"{policy}" drops acknowledged messages of clients that are disconnected too long'
        warnings.append(f"broker.queue_when_full: {text}")
    elif policy == "reject":
        text = f'"{policy}" refuses publishers while one disconnected client has a full queue'
        warnings.append(f"broker.queue_when_full: {text}")
    if not configuration.uplinks:
        return warnings
    warnings += _warnings("outbox", configuration.outbox)
    for number, uplink in enumerate(configuration.uplinks):
        for index, stream in enumerate(uplink.streams):
            key = f"{place_of(configuration.uplinks, number)}.stream[{index}]"
            warnings += _warnings_of_stream(key, stream)
    return warnings


def _warnings_of_stream(key: str, stream: StreamSettings) -> list[str]:
    warnings = _warnings(key, stream)
    if stream.mode == "latest":
        warnings.append(f'{key}.mode: "latest" drops messages for newer ones of their topic')
    if stream.mode == "expire":
        warnings.append(f'{key}.mode: "expire" drops messages after {stream.expire_after} s')
    return warnings


def _warnings(key: str, config: OutboxSettings | StreamSettings) -> list[str]:
    warnings = []
    if config.when_full in ("drop-oldest", "drop-lowest-priority"):
        text = f'"{config.when_full}" drops acknowledged messages when full'
        warnings.append(f"{key}.when_full: {text}")
    if config.maximum_age:
        text = f"acknowledged messages are dropped after {config.maximum_age} s"
        warnings.append(f"{key}.maximum_age: {text}")
    return warnings


def empty_file_warnings(configuration: Configuration) -> Iterator[str]:
    """Yield a line for each file without content that does not say it is intended."""
    for index, listener in enumerate(configuration.listeners):
        try:
            yield from _of_listener(f"listener[{index}]", listener)
        except ConfigurationError:
            continue  # which the check of the listener reports


def _of_listener(name: str, listener: ListenerSettings) -> Iterator[str]:
    purpose = f"; if that is meant, say so in it: # {EMPTY_ON_PURPOSE}"
    if _is_short(listener.acl_file):
        acl = complete(read_acl(listener))
        if acl is not None and not acl and not acl.empty_on_purpose:
            yield f"{name}.acl_file: {listener.acl_file} {RULES}{purpose}"
    if _is_short(listener.password_file):
        users = complete(password_file(listener))
        if users is not None and not len(users) and not users.empty_on_purpose:
            yield f"{name}.password_file: {listener.password_file} {USERS}{purpose}"


def _is_short(path: str | None) -> bool:
    try:
        return path is not None and Path(path).stat().st_size <= LARGEST_CHECKED
    except OSError:
        return False


def name_warnings(configuration: Configuration) -> Iterator[str]:
    """Yield a line if the id is a distribution's default host name, or was made from one."""
    chosen, name = configuration.gateway.id, configuration.gateway_id
    if is_common(name):
        reason = "there is no machine id to make it unique" if chosen is None else "it was set so"
        yield (
            f"gateway.id: {name!r} is the name of many boards, and {reason}:"
            " two gateways of one id disturb each other at the fleet"
        )
    elif chosen is None and is_common(name.rpartition("-")[0]):
        yield (
            f"gateway.id: this gateway is {name!r}, since many boards have its host's name:"
            " set [gateway] id to choose a name"
        )
