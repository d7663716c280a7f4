"""The settings of an uplink as its configuration says them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.uplink.landing import landing_directory
from gateway.config.credentials import secret_path
from gateway.config.sections.uplinks import DEFAULT_RULE, PlacedRule
from gateway.config.settings import UplinkConfig
from gateway.uplink.batch_limits import BatchLimits
from gateway.uplink.landing.directory import DirectoryDestination
from gateway.uplink.landing_bounds import LandingBounds
from gateway.uplink.link.pacing import PacingLimits
from gateway.uplink.link.schedule import Schedule
from gateway.uplink.rules.rule import Rule
from gateway.uplink.rules.targets import Target
from gateway.uplink.settings import UplinkSettings
from gateway.uplink.topic_bounds import TopicBounds
from gateway.version import VERSION
from gateway.where.rule import compile_rule

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


def uplink_rules(uplinks: Sequence[UplinkConfig], rules: Sequence[PlacedRule]) -> list[Rule]:
    """Return the rules; one waits for the least patient of its uplinks unless it says how long."""
    made = []
    for _, rule, places in rules:
        where = None if rule.where is None else compile_rule(rule.where)
        within = rule.commit_within
        if within is None:
            within = min((uplinks[place].commit_within for place in places), default=0.0)
        bits = sum(1 << place for place in places)
        made.append(Rule(rule.topic, where, rule.stream, rule.lane, within, bits))
    return made


def uplink_settings(
    gateway: "Gateway", config: UplinkConfig, name: str, rules: Sequence[PlacedRule]
) -> UplinkSettings:
    """Return the settings of an uplink; it has a `name` if there are several, and these rules."""
    directory = landing_directory(config, gateway.data)
    destination = None if directory is None else partial(DirectoryDestination, directory)
    return UplinkSettings(
        gateway_id=gateway.configuration.gateway_id,
        epoch=gateway.epoch,
        version=VERSION,
        name=name,
        url=config.url,
        destination=destination,
        username=config.username,
        username_file=_path(config.username_file),
        password_file=_path(config.password_file),
        ca_file=_path(config.ca_file),
        tls_certificate=_path(config.tls_certificate),
        tls_key=_path(config.tls_key),
        client_id=config.client_id,
        prefix=config.prefix,
        identity=config.identity,
        window=config.window,
        puback_timeout=config.puback_timeout,
        session_expiry=config.session_expiry,
        reject_after_ends=config.reject_after_ends,
        retry_refused_for=config.retry_refused_for,
        topic_alias_maximum=config.topic_alias_maximum,
        maximum_packet_size=(
            config.maximum_packet_size or gateway.configuration.broker.maximum_packet_size
        ),
        pacing=PacingLimits(config.backlog_messages_per_second, config.backlog_bytes_per_second),
        batch=_batch(config),
        schedule=_schedule(config),
        down=bool(config.down),
        plain=config.plain,
        reports=config.reports,
        targets=_targets(rules),
        topic_bounds=TopicBounds(config.maximum_topic_bytes, config.maximum_topic_levels),
        landing=LandingBounds(
            config.landing_maximum_bytes,
            config.landing_maximum_age or None,
            config.landing_when_full,
        ),
    )


def _schedule(config: UplinkConfig) -> Schedule | None:
    """Return the schedule of the checked windows, None without any."""
    if not config.schedule:
        return None
    from gateway.uplink.link.cron import parse_window

    return Schedule([parse_window(text) for text in config.schedule])


def _targets(rules: Sequence[PlacedRule]) -> tuple[Target, ...]:
    """Return the targets of the rules, none if all go the usual way."""
    if all(rule.way == DEFAULT_RULE.way for _, rule, _ in rules):
        return ()
    return tuple(Target(rule.stream, rule.topic, *rule.way) for _, rule, _ in rules)


def _batch(config: UplinkConfig) -> BatchLimits | None:
    if config.batch is None:
        return None
    return BatchLimits(config.batch_messages, config.batch_bytes, config.batch_delay)


def _path(text: str | None) -> Path | None:
    return None if text is None else secret_path(text)
