"""What a configuration says beyond its form: files, topic filters and expressions work."""

from gateway.app.listeners import check_listeners
from gateway.config.errors import ConfigurationError
from gateway.config.settings import Configuration
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter
from gateway.routing.where.errors import WhereError
from gateway.routing.where.rule import compile_rule


def check_configuration(configuration: Configuration) -> None:
    """Raise ConfigurationError, or StartError, at the first thing that cannot work."""
    check_listeners(configuration)
    rules = configuration.uplink.rules if configuration.uplink is not None else ()
    for place, rule in enumerate(rules):
        key = f"uplink.rule[{place}]"
        try:
            check_topic_filter(rule.topic)
        except MqttError as error:
            raise ConfigurationError(
                configuration.file, f"{key}.topic", rule.topic, error.reason
            ) from error
        if rule.topic.startswith("$share/"):
            raise ConfigurationError(
                configuration.file, f"{key}.topic", rule.topic, "a rule's topic is not shared"
            )
        if rule.where is None:
            continue
        try:
            compile_rule(rule.where)
        except WhereError as error:
            raise ConfigurationError(
                configuration.file,
                f"{key}.where",
                rule.where,
                f"position {error.position}: {error.message}",
            ) from error
