"""`tidegate user`: changes a password file atomically, and explains a user's rights."""

from collections.abc import Callable, Iterator
from pathlib import Path

from gateway.access.rule import READ, WRITE
from gateway.access.topics import DELAY, DELAY_FAULT, delay_of, is_guarded, may_publish, undelayed
from gateway.app.access import access_policies
from gateway.app.authenticators import password_file
from gateway.cli.file_edit import locked, replace_file
from gateway.config.configuration import Configuration
from gateway.config.named_file import without_mark
from gateway.errors import TidegateError
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_name
from gateway.pieces import complete
from gateway.server.passwords.file import load
from gateway.server.passwords.hashing import hash_password
from gateway.settings.listener import ListenerSettings
from gateway.settings.web_address import is_loopback


def set_password(path: Path, username: str, ask: Callable[[], bytes], *, new: bool) -> None:
    """Set the user's password from `ask`; all other lines stay.

    A `new` user must not exist yet, any other must. Raises TidegateError, or ConfigurationError for
    an unusable file, before anybody is asked.
    """
    path = path.resolve()  # a link stays one
    with locked(path.parent):
        _check(path, username, new=new)
    line = f"{username}:{hash_password(ask())}".encode()  # which may take long
    with locked(path.parent):
        _check(path, username, new=new)
        before = without_mark(path.read_bytes()) if path.exists() else b""
        replace_file(path, _with_line(before, username, line))


def _check(path: Path, username: str, *, new: bool) -> None:
    known = load(path).users() if path.exists() or not new else []
    there = username in dict(known)
    if new and there:
        raise TidegateError(f"{path} has a user {username!r} already; passwd changes it")
    if not new and not there:
        raise TidegateError(f"{path} has no user {username!r}")


def _with_line(before: bytes, username: str, line: bytes) -> bytes:
    lines = before.split(b"\n")  # as in `load`
    for index, each in enumerate(lines):
        name = each.partition(b":")[0].strip()
        if name == username.encode() and not each.lstrip().startswith(b"#"):
            lines[index] = line
            return b"\n".join(lines)
    if not lines[-1]:
        lines.pop()
    return b"\n".join([*lines, line, b""])


def explain(
    configuration: Configuration,
    username: str | None,
    topic: str,
    client_id: str,
    *,
    local: bool,
) -> Iterator[str]:
    """Yield lines for people; raise TidegateError or ConfigurationError.

    `local` is a client of this machine, as every client of a listener on loopback is.
    """
    try:
        check_topic_name(topic)
    except MqttError as error:
        raise TidegateError(error.reason) from error
    if topic.startswith(DELAY) and delay_of(topic) is None:
        raise TidegateError(f"topic name {topic!r} {DELAY_FAULT}")
    policies = access_policies(configuration)
    for listener, policy in zip(configuration.listeners, policies, strict=True):
        yield f"listener {listener.path or f'{listener.host}:{listener.port}'}"
        file = complete(password_file(listener))
        if username is not None and file is not None and username not in dict(file.users()):
            yield f"  {listener.password_file} has no user {username!r}"
        access = policy.access(
            username, client_id, local=local or _is_local(listener), proven=_proves(listener)
        )
        rights = access.rights(topic)
        yield f"  read:  {'yes' if rights & READ else 'no'}"
        yield f"  write: {'yes' if rights & WRITE else 'no'}"
        yield from (f"  {rule}" for rule in access.explain(topic))
        if not undelayed(topic).startswith(access.prefix):
            yield f"  outside of the listener's mount point {policy.mount_point!r}"
        elif not may_publish(topic):
            yield "  no client may write a topic that begins with $"
        elif is_guarded(topic):
            yield "  a topic for operators, users that a rule names, and clients of this machine"
        elif not policy.ruled:
            yield "  no rules: every topic is open"


def _is_local(listener: ListenerSettings) -> bool:
    return listener.path is not None or is_loopback(listener.host)


def _proves(listener: ListenerSettings) -> bool:
    return listener.password_file is not None or listener.tls_identity is not None
