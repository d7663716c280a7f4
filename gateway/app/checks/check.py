"""Checks what a configuration refers to: files, topic filters and expressions."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from gateway.app.access import access_policies
from gateway.app.listeners import check_listener
from gateway.config.configuration import Configuration, values_of
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.named_file import PREFIX, open_named, secret_path
from gateway.extras import how_to_install
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter, topic_matches
from gateway.settings import checks
from gateway.settings.declaration import Check
from gateway.settings.listener import ListenerSettings
from gateway.settings.metrics import MetricsSettings
from gateway.settings.uplink import UplinkSettings
from gateway.settings.uplinks import DEFAULT_RULE, PlacedRule, place_of, rules_of
from gateway.where.language.errors import WhereError

if TYPE_CHECKING:
    from gateway.app.checks.service import Service

LOOPBACK_4, LOOPBACK_6 = IPv4Address("127.0.0.1"), IPv6Address("::1")

ANY_ADDRESS = {4: IPv4Address("0.0.0.0"), 6: IPv6Address("::")}  # noqa: S104 - compared, not bound
"""The address that stands for all; here, "::" is for IPv6 only."""


def check_configuration(
    configuration: Configuration, mistakes: Sequence[ConfigurationError] = ()
) -> None:
    """Raise ConfigurationError, or StartError, if something in it cannot work.

    The error lists `mistakes`, which were found in its form, and all others.
    """
    raise_all([*mistakes, *_mistakes(configuration, [each.key for each in mistakes])])
    if configuration.uplinks:
        from gateway.app.uplink.headroom import check_promise

        check_promise(configuration)


def _mistakes(configuration: Configuration, keys: Sequence[str]) -> Iterator[ConfigurationError]:
    """Yield what cannot work; `keys` are known to be wrong."""
    wrong = list(keys)
    service = _service(configuration)
    for error in _meaningless(configuration, service):
        wrong.append(error.key)
        yield error
    if not any(key.startswith("uplink") for key in wrong):
        yield from _different_targets(configuration)
        yield from rules_without_topic(configuration)
    if not any(key.startswith("channel") for key in wrong):
        yield from _different_channels(configuration)
        yield from _circling_dead_letters(configuration)
    if not any(key.startswith("listener") for key in wrong):
        yield from _different_addresses(configuration)
    yield from (each for each in _different_ports(configuration) if not _is_known(each, wrong))
    for index in range(len(configuration.listeners)):
        if not any(key.startswith(f"listener[{index}].") for key in wrong):
            yield from _mistake_of_listener(configuration, index, service)
    if not any(key.endswith(".acl_file") for key in wrong):
        yield from _mistake_of_access(configuration)


def _service(configuration: Configuration) -> "Service | None":
    """Return the service with this configuration, if a value is a credential of it."""
    keys = values_of(configuration)
    files = [value for _, key, value in keys if key.check is checks.readable_file]
    if not any(file.startswith(PREFIX) for file in files):
        return None
    from gateway.app.checks.service import find_service

    return find_service(configuration)


def _meaningless(
    configuration: Configuration, service: "Service | None"
) -> Iterator[ConfigurationError]:
    """Yield well-formed values without a meaning."""
    for name, key, value in values_of(configuration):
        meaning = MEANINGS.get(key.check)
        if meaning is None or (
            service is not None
            and key.check is checks.readable_file
            and service.knows_credential(value)
        ):
            continue
        found = [(name, value)]
        if isinstance(value, tuple):
            found = [(f"{name}[{number}]", each) for number, each in enumerate(value)]
        for place, each in found:
            try:
                meaning(each)
            except ValueError as error:
                yield ConfigurationError(configuration.file, place, each, str(error))


def _different_targets(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield rules of one stream that send the same topics to different targets.

    A waiting message has its stream and topic, but not the rule that accepted it.
    """
    rules = rules_of(configuration.uplinks)
    if all(each.rule.way == DEFAULT_RULE.way for each in rules):
        return
    from gateway.uplink.rules.targets import overlap

    for index, (key, rule, uplinks) in enumerate(rules):
        for _, other, others in rules[:index]:
            if rule.stream != other.stream or rule.way == other.way:
                continue
            if set(uplinks) & set(others) and overlap(rule.topic, other.topic):
                ways = zip(("target", "retain", "qos"), rule.way, other.way, strict=True)
                name, value = next((name, own) for name, own, its in ways if own != its)
                allowed = (
                    f"it must be that of the rule for {other.topic}, for the same topics and stream"
                )
                yield ConfigurationError(configuration.file, f"{key}.{name}", value, allowed)


def _different_channels(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield channels with the name of an earlier one: commands and figures use the name."""
    names: set[str] = set()
    for index, channel in enumerate(configuration.channels):
        if channel.share_name in names:
            key = f"channel[{index}].name"
            yield ConfigurationError(
                configuration.file, key, channel.name, "a name that no other channel has"
            )
        names.add(channel.share_name)


def _circling_dead_letters(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield channels whose dead letters would return to them for ever."""
    for index, channel in enumerate(configuration.channels):
        topic = channel.dead_letter_topic
        if topic is not None and topic_matches(channel.topic_filter, topic):
            key = f"channel[{index}].dead_letter_topic"
            allowed = f"a topic that is not the channel's own: its filter is {channel.topic_filter}"
            yield ConfigurationError(configuration.file, key, topic, allowed)


def _different_ports(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield bridges at a serial port of an earlier bridge: only one can read it."""
    used: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for bridge in configuration.bridges:
        kind, port = bridge.kind.name, getattr(bridge.settings, "port", None)
        key = f"{kind}[{numbers[kind]}].port"
        numbers[kind] += 1
        if port is None or "://" in port:
            continue
        if port in used:
            allowed = f"a port that no other bridge has; {used[port]} has it"
            yield ConfigurationError(configuration.file, key, port, allowed)
        used.setdefault(port, key.removesuffix(".port"))


def _is_known(error: ConfigurationError, wrong: Sequence[str]) -> bool:
    """Return whether another table of this kind is wrong, so that the numbers do not match."""
    kind = error.key.partition("[")[0]
    return any(key.startswith(kind) for key in wrong)


def _different_addresses(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield listeners at an address of an earlier one, and [metrics] at that of a listener."""
    for index, listener in enumerate(configuration.listeners):
        for number, other in enumerate(configuration.listeners[:index]):
            if overlaps(listener, other):
                name = "port" if listener.path is None else "path"
                allowed = f"one that no other listener has; listener[{number}] has it"
                value = getattr(listener, name)
                key = f"listener[{index}].{name}"
                yield ConfigurationError(configuration.file, key, value, allowed)
                break
    metrics = configuration.metrics
    for index, listener in enumerate(configuration.listeners):
        if metrics is not None and overlaps(listener, metrics):
            allowed = f"one that no listener has; listener[{index}] has it"
            yield ConfigurationError(configuration.file, "metrics.port", listener.port, allowed)


def overlaps(one: ListenerSettings, other: ListenerSettings | MetricsSettings) -> bool:
    """Return whether only one of two listeners can have its address."""
    path = other.path if isinstance(other, ListenerSettings) else None
    if one.path is not None or path is not None:
        return one.path == path
    hosts, others = _addresses(one.host), _addresses(other.host)
    return one.port == other.port and any(
        first == second or ANY_ADDRESS.get(first.version) in (first, second)
        for first in hosts
        for second in others
        if first.version == second.version
    )


def _addresses(host: str) -> list[IPv4Address | IPv6Address]:
    """Return the addresses of a host; none for a name, which is resolved when it is bound."""
    try:
        return [ip_address(host)]
    except ValueError:
        return [LOOPBACK_4, LOOPBACK_6] if host == "localhost" else []


def _mistake_of_listener(
    configuration: Configuration, index: int, service: "Service | None"
) -> Iterator[ConfigurationError]:
    """Yield why a listener cannot work; one with the service's credentials is not tried here."""
    names = ("tls_certificate", "tls_key", "client_ca", "password_file", "acl_file")
    files = [getattr(configuration.listeners[index], name) for name in names]
    if service and any(service.knows_credential(file) for file in files if file is not None):
        return
    try:
        check_listener(configuration, index)
    except ConfigurationError as error:
        yield error


def _mistake_of_access(configuration: Configuration) -> Iterator[ConfigurationError]:
    try:
        access_policies(configuration)
    except ConfigurationError as error:
        yield error


def _readable_file(path: str) -> None:
    try:
        with open_named(secret_path(path)):
            pass
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


def _topic_filter(topic_filter: str) -> None:
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:
        raise ValueError(error.reason) from error


def _unshared_filter(topic_filter: str) -> None:
    _topic_filter(topic_filter)
    if topic_filter.startswith(SHARED_PREFIX):
        raise ValueError("messages are not shared, subscriptions are")


def _expression(expression: str) -> None:
    from gateway.where.compile import compile_where

    _compile(compile_where, expression)


def _rule_expression(expression: str) -> None:
    from gateway.where.rule import compile_rule

    _compile(compile_rule, expression)


def _value_expression(expression: str) -> None:
    from gateway.where.compile import compile_value

    _compile(compile_value, expression)


def _compile(compile_one: Callable[[str], object], expression: str) -> None:
    try:
        compile_one(expression)
    except WhereError as error:
        raise ValueError(f"position {error.position}: {error.message}") from error


def _window(text: str) -> None:
    from gateway.uplink.link.cron import parse_window

    parse_window(text)


def _proxy(_: str) -> None:
    _installed("python_socks", "proxy")


def _fleet_url(url: str) -> None:
    if url.startswith(("ws://", "wss://")):
        _installed("websockets", "websocket")


def _installed(module: str, extra: str) -> None:
    """Raise ValueError if the packages of an extra are missing, without loading them."""
    if find_spec(module) is None:
        raise ValueError(f"it needs its extra: {how_to_install(extra)}")


def rules_without_topic(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Yield the rules whose shortest topic at the fleet is too long for one of their uplinks."""
    uplinks = configuration.uplinks
    if not any(uplink.url for uplink in uplinks):
        return
    from gateway.uplink.rules.targets import TopicBounds

    for placed in rules_of(uplinks):
        for place in placed.uplinks:
            uplink = uplinks[place]
            bounds = TopicBounds(uplink.maximum_topic_bytes, uplink.maximum_topic_levels)
            topic = _shortest_topic(configuration.gateway_id, uplink, placed)
            # an empty one is that of a message with too few levels, others may have more
            if topic and (problem := bounds.problem(topic.encode())):
                name, value = _named(placed, place_of(uplinks, place), uplink)
                allowed = f"a shorter topic: of its shortest message, {problem}"
                yield ConfigurationError(configuration.file, name, value, allowed)
                break


def _shortest_topic(gateway_id: str, uplink: UplinkSettings, placed: PlacedRule) -> str:
    from gateway.uplink.rules.targets import fill

    levels = placed.rule.topic.removesuffix("#").removesuffix("/").split("/")
    topic = "/".join("" if level == "+" else level for level in levels)
    target = placed.rule.target or f"{uplink.prefix}/{{gateway}}/data/{{topic}}"
    return fill(target, gateway_id, topic)


def _named(placed: PlacedRule, place: str, uplink: UplinkSettings) -> tuple[str, str]:
    """Return the key to shorten, and its value."""
    if not placed.key:  # the default rule
        return f"{place}.prefix", uplink.prefix
    name = "topic" if placed.rule.target is None else "target"
    return f"{placed.key}.{name}", placed.rule.target or placed.rule.topic


MEANINGS: dict[Check[Any], Callable[[str], None]] = {
    checks.readable_file: _readable_file,
    checks.topic_filter: _topic_filter,
    checks.unshared_filter: _unshared_filter,
    checks.expression: _expression,
    checks.rule_expression: _rule_expression,
    checks.value_expression: _value_expression,
    checks.windows: _window,
    checks.proxy_url: _proxy,
    checks.fleet_urls: _fleet_url,
}
"""Checks of values by kind; each raises ValueError with what is allowed."""
