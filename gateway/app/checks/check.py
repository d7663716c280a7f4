"""What a configuration says beyond its form: files, topic filters and expressions work."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gateway.app.access import access_policies
from gateway.app.checks.topic_lengths import rules_without_topic
from gateway.app.listeners import check_listener
from gateway.config.configuration import Configuration
from gateway.config.credentials import secret_path
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.named_file import open_named
from gateway.config.values import values_of
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter, topic_matches
from gateway.settings import checks
from gateway.settings.declaration import Check
from gateway.settings.uplinks import DEFAULT_RULE, rules_of
from gateway.where.compile import compile_where
from gateway.where.language.errors import WhereError


def check_configuration(
    configuration: Configuration, mistakes: Sequence[ConfigurationError] = ()
) -> None:
    """Raise ConfigurationError, or StartError, if something in it cannot work.

    The error tells `mistakes`, which were found in its form, and all others.
    """
    raise_all([*mistakes, *_mistakes(configuration, [each.key for each in mistakes])])
    if configuration.uplinks:
        from gateway.app.uplink.headroom import check_promise

        check_promise(configuration)


def _mistakes(configuration: Configuration, keys: Sequence[str]) -> Iterator[ConfigurationError]:
    """Give what cannot work; `keys` are known to be wrong."""
    wrong = list(keys)
    for error in _meaningless(configuration):
        wrong.append(error.key)
        yield error
    if not any(key.startswith("uplink") for key in wrong):
        yield from _different_targets(configuration)
        yield from rules_without_topic(configuration)
    if not any(key.startswith("channel") for key in wrong):
        yield from _different_channels(configuration)
        yield from _circling_dead_letters(configuration)
    for index in range(len(configuration.listeners)):
        if not any(key.startswith(f"listener[{index}].") for key in wrong):
            yield from _mistake_of_listener(configuration, index)
    if not any(key.endswith(".acl_file") for key in wrong):
        yield from _mistake_of_access(configuration)


def _meaningless(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Give the values that are well-formed and yet mean nothing."""
    for name, key, value in values_of(configuration):
        meaning = MEANINGS.get(key.check)
        if meaning is None:
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
    """Give rules of one stream that send the same topics to different targets.

    A message that waits keeps its stream and topic, and not which rule took it.
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
                    f"that of the rule for {other.topic}, which has the same stream and topics"
                )
                yield ConfigurationError(configuration.file, f"{key}.{name}", value, allowed)


def _different_channels(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Give channels that have the name of one before: commands and figures go by the name."""
    names: set[str] = set()
    for index, channel in enumerate(configuration.channels):
        if channel.share_name in names:
            key = f"channel[{index}].name"
            yield ConfigurationError(
                configuration.file, key, channel.name, "a name that no other channel has"
            )
        names.add(channel.share_name)


def _circling_dead_letters(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Give channels whose dead letters would come back to them, without end."""
    for index, channel in enumerate(configuration.channels):
        topic = channel.dead_letter_topic
        if topic is not None and topic_matches(channel.topic_filter, topic):
            key = f"channel[{index}].dead_letter_topic"
            allowed = f"a topic that is not the channel's own: its filter is {channel.topic_filter}"
            yield ConfigurationError(configuration.file, key, topic, allowed)


def _mistake_of_listener(configuration: Configuration, index: int) -> Iterator[ConfigurationError]:
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
    _compile(compile_where, expression)


def _rule_expression(expression: str) -> None:
    from gateway.where.rule import compile_rule

    _compile(compile_rule, expression)


def _compile(compile_one: Callable[[str], object], expression: str) -> None:
    try:
        compile_one(expression)
    except WhereError as error:
        raise ValueError(f"position {error.position}: {error.message}") from error


def _window(text: str) -> None:
    from gateway.uplink.link.cron import parse_window

    parse_window(text)


MEANINGS: dict[Check[Any], Callable[[str], None]] = {
    checks.readable_file: _readable_file,
    checks.topic_filter: _topic_filter,
    checks.unshared_filter: _unshared_filter,
    checks.expression: _expression,
    checks.rule_expression: _rule_expression,
    checks.windows: _window,
}
"""What values of a kind are looked at for; each raises ValueError with what is allowed."""
