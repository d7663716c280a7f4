"""What a configuration says beyond its form: files, topic filters and expressions work."""

from collections.abc import Callable, Sequence

from gateway.app.listeners import check_listeners
from gateway.broker.durability_classes import MAXIMUM_ENTRIES
from gateway.broker.subscription_filters import MAXIMUM_SUBSCRIPTION_FILTERS
from gateway.config.errors import ConfigurationError
from gateway.config.settings import Configuration, RuleConfig, UplinkConfig
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter
from gateway.routing.where.errors import WhereError


def check_configuration(configuration: Configuration) -> None:
    """Raise ConfigurationError, or StartError, at the first thing that cannot work."""
    check_listeners(configuration)
    _check_subscription_filters(configuration)
    _check_durability(configuration)
    if configuration.uplink is not None:
        _check_uplink(configuration, configuration.uplink)


def _check_uplink(configuration: Configuration, uplink: UplinkConfig) -> None:
    from gateway.app.headroom import check_promise

    _check_rules(configuration.file, uplink.rules)
    _check_schedule(configuration.file, uplink.schedule)
    check_promise(configuration)


def _check_rules(file: str, rules: Sequence[RuleConfig]) -> None:
    from gateway.routing.where.rule import compile_rule

    for place, rule in enumerate(rules):
        key = f"uplink.rule[{place}]"
        _check_topic_filter(file, f"{key}.topic", rule.topic)
        if rule.topic.startswith(SHARED_PREFIX):
            raise ConfigurationError(
                file, f"{key}.topic", rule.topic, "a rule's topic is not shared"
            )
        if rule.where is not None:
            _check_expression(file, f"{key}.where", rule.where, compile_rule)


def _check_schedule(file: str, windows: Sequence[str]) -> None:
    from gateway.uplink.cron import parse_window

    for place, text in enumerate(windows):
        try:
            parse_window(text)
        except ValueError as error:
            key = f"uplink.schedule[{place}]"
            raise ConfigurationError(file, key, text, str(error)) from error


def _check_subscription_filters(configuration: Configuration) -> None:
    file, filters = configuration.file, configuration.subscription_filters
    _check_number(file, "subscription_filter", len(filters), MAXIMUM_SUBSCRIPTION_FILTERS)
    for place, each in enumerate(filters):
        key = f"subscription_filter[{place}]"
        _check_topic_filter(file, f"{key}.filter", each.filter)
        from gateway.routing.where.compile import compile_where

        _check_expression(file, f"{key}.where", each.where, compile_where)


def _check_durability(configuration: Configuration) -> None:
    file, entries = configuration.file, configuration.durability
    _check_number(file, "durability", len(entries), MAXIMUM_ENTRIES)
    for place, each in enumerate(entries):
        if each.topic is not None:
            key = f"durability[{place}].topic"
            _check_topic_filter(file, key, each.topic)
            if each.topic.startswith(SHARED_PREFIX):
                allowed = "messages are not shared, subscriptions are"
                raise ConfigurationError(file, key, each.topic, allowed)


def _check_number(file: str, key: str, count: int, maximum: int) -> None:
    if count > maximum:
        raise ConfigurationError(file, key, count, f"at most {maximum} of them")


def _check_topic_filter(file: str, key: str, topic_filter: str) -> None:
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:
        raise ConfigurationError(file, key, topic_filter, error.reason) from error


def _check_expression(
    file: str, key: str, expression: str, compile_one: Callable[[str], object]
) -> None:
    try:
        compile_one(expression)
    except WhereError as error:
        allowed = f"position {error.position}: {error.message}"
        raise ConfigurationError(file, key, expression, allowed) from error
