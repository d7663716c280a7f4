"""Joins rules, outbox and uplinks to the broker."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.app.clock import ClockWatch
from gateway.app.history import record
from gateway.app.turn_end import TurnEnd
from gateway.app.uplink.counters import uplink_counters
from gateway.app.uplink.down import open_down
from gateway.app.uplink.monitoring import (
    FullOutbox,
    LinkLines,
    Outage,
)
from gateway.app.uplink.outbox import (
    open_ledger,
    report_ledger,
    start_outbox,
)
from gateway.app.uplink.recall import start_recall
from gateway.app.uplink.rejected import RejectedRequests
from gateway.app.uplink.settings import uplink_rules, uplink_settings
from gateway.counters import Counters
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.settings.uplink import UplinkSettings
from gateway.settings.uplinks import PlacedRule, rules_of
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.state.note import is_noted, note, note_of
from gateway.storage.state.rule_states import RuleStates
from gateway.storage.state.uplink_session import leave_resumable, take_resumable
from gateway.storage.state.uplink_usage import UplinkUsage
from gateway.uplink.begin_connection import begin_connection as begin_by_asyncio
from gateway.uplink.link.budget import (
    Budget,
    Metering,
)
from gateway.uplink.rules.rule import Rule, key_of
from gateway.uplink.rules.rules import RuleSet
from gateway.uplink.uplink import (
    Uplink,
)

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)


PAUSED = "uplink_paused"


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
    RejectedRequests(gateway, rejected, outbox)
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
    await restore_pauses(gateway, uplinks)
    return uplinks


async def _make(
    gateway: "Gateway",
    config: UplinkSettings,
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
    gateway: "Gateway", config: UplinkSettings, name: str, counters: Counters
) -> Metering:
    """Return what counts the day's budget, with what an earlier run used of it."""
    if config.budget is None:
        return Metering(None, None, counters, gateway.clock)
    usage = UplinkUsage(gateway.database, gateway.writer, name)
    day, used = await usage.load()
    return Metering(Budget(config.budget, day, used), usage, counters, gateway.clock)


async def restore_pauses(gateway: "Gateway", uplinks: Sequence[Uplink]) -> None:
    """Take up the pauses of an earlier run, and let clients pause and resume uplinks.

    They ask for all, or for one by its name. Whoever asks is answered when it is on disk.
    """
    _obey(gateway, "uplink", uplinks)
    for uplink in uplinks:
        if uplink.name:
            _obey(gateway, f"uplink/{uplink.name}", [uplink])
        if await is_noted(gateway.database, note_of(PAUSED, uplink.name)):
            name = f" {uplink.name}" if uplink.name else ""
            logger.warning(
                "uplink%s: paused before the start; `tidegate uplink resume%s` ends that",
                *(name, name),
            )
            uplink.pause()


def _obey(gateway: "Gateway", part: str, uplinks: Sequence[Uplink]) -> None:
    def pause() -> None:
        for uplink in uplinks:
            note(gateway.writer, note_of(PAUSED, uplink.name))
            uplink.pause()

    def resume() -> None:
        for uplink in uplinks:
            note(gateway.writer, note_of(PAUSED, uplink.name), there=False)
            uplink.resume()

    gateway.control.know(part, "pause", pause)
    gateway.control.know(part, "resume", resume)


async def begin_connection(
    sock: socket.socket, protocol: asyncio.Protocol, tls: ssl.SSLContext | None, host: str
) -> None:
    """Have the gateway's own selector serve the socket, or asyncio, which knows TLS.

    Between two messages the loop need not turn then: that is a tenth of what a message costs.
    """
    loop = asyncio.get_running_loop()
    if tls is None and isinstance(loop, GatewayLoop):
        if sock.family != socket.AF_UNIX:  # else a small packet waits for the ACK of the last one
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        SocketTransport(sock, protocol, loop.sockets, loop).start()
    else:
        await begin_by_asyncio(sock, protocol, tls, host)
