"""A user's rights on a topic at each listener, and the rules that give them."""

from collections.abc import Iterator

from gateway.access.rule import READ, WRITE
from gateway.access.topics import DELAY, DELAY_FAULT, delay_of, is_guarded, may_publish, undelayed
from gateway.app.access import access_policies
from gateway.app.authenticators import password_file
from gateway.config.configuration import Configuration
from gateway.errors import TidegateError
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_name
from gateway.pieces import complete
from gateway.settings.listener import ListenerSettings
from gateway.settings.web_address import is_loopback


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
