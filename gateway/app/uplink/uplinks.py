"""Joins rules, outbox and uplinks to the broker."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.app.clock import ClockWatch
from gateway.app.history import record
from gateway.app.turn_end import TurnEnd
from gateway.app.uplink.begin_connection import begin_connection
from gateway.app.uplink.counters import uplink_counters
from gateway.app.uplink.down import open_down
from gateway.app.uplink.full_outbox import FullOutbox
from gateway.app.uplink.kept_pause import keep_pause
from gateway.app.uplink.ledger import open_ledger, report_ledger
from gateway.app.uplink.link_lines import LinkLines
from gateway.app.uplink.outage import Outage
from gateway.app.uplink.outbox import start_outbox
from gateway.app.uplink.recall import start_recall
from gateway.app.uplink.rejected import RejectedDesk
from gateway.app.uplink.settings import uplink_rules, uplink_settings
from gateway.config.sections.uplinks import PlacedRule, rules_of
from gateway.config.settings import UplinkConfig
from gateway.counters import Counters
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.state.rule_states import RuleStates
from gateway.storage.state.uplink_session import leave_resumable, take_resumable
from gateway.storage.state.uplink_usage import UplinkUsage
from gateway.uplink.link.budget import Budget
from gateway.uplink.link.metering import Metering
from gateway.uplink.rules.rule import Rule, key_of
from gateway.uplink.rules.rules import RuleSet
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def start_uplinks(gateway: "Gateway") -> None:
    """Join history, rules, outbox and uplinks to the broker."""
    configs = gateway.configuration.uplinks
    placed = rules_of(configs)
    configured = uplink_rules(configs, placed)
    ledger = await open_ledger(gateway)
    watch = ClockWatch(gateway, ledger.starts)
    await watch.load()
    outbox = await start_outbox(gateway, [rule.stream for rule in configured], ledger.ended)
    rejected = Rejected(gateway.database, gateway.writer, gateway.counters)
    await rejected.load()
    rules = await _rule_set(gateway, configured, outbox, ledger)
    rules.before_numbers.append(watch.before_number)
    gateway.at_stop += [rules.save, ledger.save]
    if not await record(gateway, rules, configured):
        gateway.broker.subscribe_inline(rules, rules.topic_filters)
    uplinks = await _make_all(gateway, outbox, rejected, placed)
    gateway.telemetry.show_age(outbox)
    Outage(gateway, outbox).start()
    full = FullOutbox(gateway, outbox)
    full.start()
    gateway.troubles.append(lambda: full.text)
    RejectedDesk(gateway, rejected, outbox)
    start_recall(gateway, outbox, list(zip(uplinks, configs, strict=True)))
    for uplink in uplinks:
        LinkLines(gateway, uplink, outbox).start()
        await uplink.start()
        gateway.stack.push_async_callback(uplink.close)
    reporting = [uplink for uplink, each in zip(uplinks, configs, strict=True) if each.reports]
    report_ledger(gateway, ledger, outbox, reporting)
    watch.report([uplink.control_messages for uplink in reporting])


async def _rule_set(
    gateway: "Gateway", rules: Sequence[Rule], outbox: Outbox, ledger: Ledger
) -> RuleSet:
    keys = [key_of(rules, index) for index in range(len(rules))]
    states = RuleStates(gateway.database, gateway.writer)
    restored = await states.restore([key for key in keys if key is not None])
    budget = gateway.broker.budget
    return RuleSet(rules, outbox, gateway.counters, gateway.epoch, restored, budget, ledger)


async def _make_all(
    gateway: "Gateway", outbox: Outbox, rejected: Rejected, rules: Sequence[PlacedRule]
) -> list[Uplink]:
    configs = gateway.configuration.uplinks
    uplinks = []
    counters_of = uplink_counters(gateway.counters, outbox.uplinks.names)
    for index, (name, counters) in enumerate(zip(outbox.uplinks.names, counters_of, strict=True)):
        own = [each for each in rules if index in each.uplinks]
        made = await _make(gateway, configs[index], name, own, outbox, rejected, counters, index)
        uplinks.append(made)
    await keep_pause(gateway, uplinks)
    return uplinks


async def _make(
    gateway: "Gateway",
    config: UplinkConfig,
    name: str,
    rules: Sequence[PlacedRule],
    outbox: Outbox,
    rejected: Rejected,
    counters: Counters,
    index: int,
) -> Uplink:
    uplink = Uplink(
        uplink_settings(gateway, config, name, rules),
        outbox,
        rejected,
        counters,
        gateway.clock,
        metering=await _metering(gateway, config, name, counters),
        at_turn_end=TurnEnd(gateway.turn),
        begin=begin_connection,
        # what comes down waits in the session, which goes on even after a crash
        resume=await take_resumable(gateway.database, name) or bool(config.down),
        uplink=1 << index,
    )
    gateway.at_stop.append(lambda: _leave(gateway, uplink))
    uplink.on_state.append(gateway.telemetry.say)
    uplink.take_overs.alarm = gateway.telemetry.alarm
    uplink.requests.down = await open_down(gateway, config.down, name, counters)
    return uplink


def _leave(gateway: "Gateway", uplink: Uplink) -> None:
    """Record whether the next run may resume the session at the fleet's broker."""
    if uplink.session.resumable:
        leave_resumable(gateway.writer, uplink.name)


async def _metering(
    gateway: "Gateway", config: UplinkConfig, name: str, counters: Counters
) -> Metering:
    """Return what counts the day's budget, with what an earlier run used of it."""
    if config.budget is None:
        return Metering(None, None, counters, gateway.clock)
    usage = UplinkUsage(gateway.database, gateway.writer, name)
    day, used = await usage.load()
    return Metering(Budget(config.budget, day, used), usage, counters, gateway.clock)
