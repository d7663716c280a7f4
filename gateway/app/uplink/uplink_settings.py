"""The settings of an uplink as its configuration says them."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.app.parts import Run
from gateway.app.uplink.landing import landing_directory
from gateway.config.credentials import secret_path
from gateway.settings.uplink import RuleSettings, UplinkSettings
from gateway.settings.uplinks import DEFAULT_RULE, PlacedRule
from gateway.uplink.rules.rule import Rule
from gateway.version import VERSION
from gateway.where.rule import compile_rule


def uplink_rules(uplinks: Sequence[UplinkSettings], rules: Sequence[PlacedRule]) -> list[Rule]:
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
    run: Run, table: UplinkSettings, name: str, rules: Sequence[PlacedRule]
) -> UplinkSettings:
    """Return what a table says with what else an uplink must know of this run; these are its rules.

    It has a `name` if there are several.
    """
    directory = landing_directory(table, run.data)
    return replace(
        table,
        name=name,
        directory=None if directory is None else str(directory),
        username_file=_path(table.username_file),
        password_file=_path(table.password_file),
        ca_file=_path(table.ca_file),
        tls_certificate=_path(table.tls_certificate),
        tls_key=_path(table.tls_key),
        maximum_packet_size=(
            table.maximum_packet_size or run.configuration.broker.maximum_packet_size
        ),
        gateway_id=run.configuration.gateway_id,
        epoch=run.epoch,
        version=VERSION,
        targets=_targets(rules),
    )


def _targets(rules: Sequence[PlacedRule]) -> tuple[RuleSettings, ...]:
    """Return the rules with their targets, none if all go the usual way."""
    if all(rule.way == DEFAULT_RULE.way for _, rule, _ in rules):
        return ()
    return tuple(rule for _, rule, _ in rules)


def _path(text: str | None) -> str | None:
    return None if text is None else str(secret_path(text))
