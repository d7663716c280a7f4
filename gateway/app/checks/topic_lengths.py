"""Uplink rules all of whose messages would go to a topic that the fleet's broker does not take."""

from collections.abc import Iterator

from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.settings.uplink import UplinkSettings
from gateway.settings.uplinks import PlacedRule, place_of, rules_of


def rules_without_topic(configuration: Configuration) -> Iterator[ConfigurationError]:
    """Give the rules whose shortest topic at the fleet is too long for one of their uplinks."""
    uplinks = configuration.uplinks
    if not any(uplink.url for uplink in uplinks):
        return
    from gateway.uplink.topic_bounds import TopicBounds

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
    if not placed.key:  # the rule that nobody wrote
        return f"{place}.prefix", uplink.prefix
    name = "topic" if placed.rule.target is None else "target"
    return f"{placed.key}.{name}", placed.rule.target or placed.rule.topic
