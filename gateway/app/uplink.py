"""Joins rules, outbox and uplink to the broker."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.clock import ClockWatch
from gateway.app.down import open_down
from gateway.app.full_outbox import FullOutbox
from gateway.app.history import record
from gateway.app.kept_pause import keep_pause
from gateway.app.landing import landing_directory
from gateway.app.ledger import open_ledger, report_ledger
from gateway.app.link_lines import LinkLines
from gateway.app.outage import Outage
from gateway.app.outbox import start_outbox
from gateway.app.recall import start_recall
from gateway.app.turn_end import TurnEnd
from gateway.config.credentials import secret_path
from gateway.config.settings import UplinkConfig
from gateway.routing.where.rule import compile_rule
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.state.rule_states import RuleStates
from gateway.storage.state.uplink_session import leave_resumable, take_resumable
from gateway.storage.state.uplink_usage import UplinkUsage
from gateway.uplink.batch_limits import BatchLimits
from gateway.uplink.directory import DirectoryDestination
from gateway.uplink.landing_folder import LandingBounds
from gateway.uplink.link.budget import Budget
from gateway.uplink.link.metering import Metering
from gateway.uplink.link.pacing import PacingLimits
from gateway.uplink.link.schedule import Schedule
from gateway.uplink.rule import DEFAULT_RULES, Rule, key_of
from gateway.uplink.rules import RuleSet
from gateway.uplink.settings import UplinkSettings
from gateway.uplink.targets import Target
from gateway.uplink.uplink import Uplink
from gateway.version import VERSION

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)


async def start_uplink(gateway: "Gateway", config: UplinkConfig) -> None:
    """Join history, rules, outbox and uplink to the broker."""
    configured = _rules(config) or DEFAULT_RULES
    ledger = await open_ledger(gateway)
    watch = ClockWatch(gateway, ledger.starts)
    await watch.load()
    outbox = await start_outbox(gateway, [rule.stream for rule in configured], ledger.ended)
    rejected = Rejected(gateway.database, gateway.writer, gateway.counters)
    await rejected.load()
    rules = await _rule_set(gateway, config, configured, outbox, ledger)
    rules.gateway_id = gateway.configuration.gateway_id
    rules.before_numbers.append(watch.before_number)
    gateway.at_stop += [rules.save, ledger.save]
    if not await record(gateway, rules, configured):
        gateway.broker.subscribe_inline(rules, rules.topic_filters)
    settings = _settings(gateway, config)
    metering = await _metering(gateway, config)
    uplink = Uplink(
        settings,
        outbox,
        rejected,
        gateway.counters,
        gateway.clock,
        metering=metering,
        at_turn_end=TurnEnd(gateway.turn),
        # what comes down waits in the session, which goes on even after a crash
        resume=await take_resumable(gateway.database) or bool(config.down),
    )
    gateway.at_stop.append(lambda: _leave(gateway, uplink))
    await keep_pause(gateway, uplink)
    gateway.telemetry.show_age(outbox)
    Outage(gateway, outbox).start()
    full = FullOutbox(gateway, outbox)
    full.start()
    gateway.troubles.append(lambda: full.text)
    uplink.on_state.append(gateway.telemetry.say)
    LinkLines(gateway, uplink, outbox).start()
    uplink.take_overs.alarm = gateway.telemetry.alarm
    start_recall(gateway, outbox, uplink, fleet=config.recall)
    uplink.requests.down = await open_down(gateway, config.down)
    await uplink.start()
    gateway.stack.push_async_callback(uplink.close)
    report_ledger(gateway, ledger, outbox, uplink)
    watch.report(uplink.control_messages)


def _leave(gateway: "Gateway", uplink: Uplink) -> None:
    """Record whether the next run may resume the session at the fleet's broker."""
    if uplink.session.resumable:
        leave_resumable(gateway.writer)


async def _rule_set(
    gateway: "Gateway",
    config: UplinkConfig,
    rules: Sequence[Rule],
    outbox: Outbox,
    ledger: Ledger,
) -> RuleSet:
    keys = [key_of(rules, place) for place in range(len(rules))]
    states = RuleStates(gateway.database, gateway.writer)
    restored = await states.restore([key for key in keys if key is not None])
    budget = gateway.broker.budget
    within = config.commit_within
    return RuleSet(rules, outbox, gateway.counters, gateway.epoch, restored, budget, ledger, within)


def _rules(config: UplinkConfig) -> list[Rule]:
    rules = []
    for rule in config.rules:
        where = None if rule.where is None else compile_rule(rule.where)
        rules.append(Rule(rule.topic, where, rule.stream, rule.lane, rule.commit_within))
    return rules


def _settings(gateway: "Gateway", config: UplinkConfig) -> UplinkSettings:
    directory = landing_directory(config, gateway.data)
    destination = None if directory is None else partial(DirectoryDestination, directory)
    return UplinkSettings(
        gateway_id=gateway.configuration.gateway_id,
        epoch=gateway.epoch,
        version=VERSION,
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
        topic_alias_maximum=config.topic_alias_maximum,
        pacing=PacingLimits(config.backlog_messages_per_second, config.backlog_bytes_per_second),
        batch=_batch(config),
        schedule=_schedule(config),
        down=bool(config.down),
        plain=config.plain,
        targets=_targets(config),
        landing=LandingBounds(
            config.landing_maximum_bytes,
            config.landing_maximum_age or None,
            config.landing_when_full,
        ),
    )


async def _metering(gateway: "Gateway", config: UplinkConfig) -> Metering:
    """Return what counts the day's budget, with what an earlier run used of it."""
    if config.budget is None:
        return Metering(None, None, gateway.counters, gateway.clock)
    usage = UplinkUsage(gateway.database, gateway.writer)
    day, used = await usage.load()
    return Metering(Budget(config.budget, day, used), usage, gateway.counters, gateway.clock)


def _schedule(config: UplinkConfig) -> Schedule | None:
    """Return the schedule of the checked windows, None without any."""
    if not config.schedule:
        return None
    from gateway.uplink.link.cron import parse_window

    return Schedule([parse_window(text) for text in config.schedule])


def _targets(config: UplinkConfig) -> tuple[Target, ...]:
    """Return the targets of all rules, none if no rule has one of its own."""
    targets = [Target(rule.stream, rule.topic, rule.target, rule.retain) for rule in config.rules]
    return tuple(targets) if any(each.target or each.retain for each in targets) else ()


def _batch(config: UplinkConfig) -> BatchLimits | None:
    if config.batch is None:
        return None
    return BatchLimits(config.batch_messages, config.batch_bytes, config.batch_delay)


def _path(text: str | None) -> Path | None:
    return None if text is None else secret_path(text)
