"""Joins rules, outbox and uplinks, as the configuration has them, to the broker."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gateway.app.clock import ClockWatch
from gateway.app.control import Control
from gateway.app.history import record
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.queries import Queries
from gateway.app.telemetry import Telemetry
from gateway.app.turn_end import TurnEnd
from gateway.app.uplink.down import open_down
from gateway.app.uplink.landing import landing_directory
from gateway.app.uplink.monitoring import (
    FullOutbox,
    LinkLines,
    Outage,
    uplink_counters,
)
from gateway.app.uplink.outbox import (
    open_ledger,
    report_ledger,
    start_outbox,
)
from gateway.app.uplink.recall import start_recall
from gateway.app.uplink.rejected import RejectedRequests
from gateway.config.credentials import secret_path
from gateway.counters import Counters
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.settings.uplink import RuleSettings, UplinkSettings
from gateway.settings.uplinks import DEFAULT_RULE, PlacedRule, rules_of
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.state.note import is_noted, note, note_of
from gateway.storage.state.rule_states import RuleStates
from gateway.storage.state.uplink_usage import UplinkUsage, leave_resumable, take_resumable
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
from gateway.version import VERSION
from gateway.where.rule import compile_rule

logger = logging.getLogger(__name__)


PAUSED = "uplink_paused"


async def start_uplinks(
    run: Run,
    storage: Storage,
    core: Core,
    control: Control,
    telemetry: Telemetry,
    queries: Queries,
) -> None:
    """Join history, rules, outbox and uplinks to the broker."""
    settings = run.configuration.uplinks
    placed = rules_of(settings)
    configured = uplink_rules(settings, placed)
    ledger = await open_ledger(run, storage)
    watch = ClockWatch(run, storage, ledger.starts)
    await watch.load()
    streams = [rule.stream for rule in configured]
    outbox = await start_outbox(run, storage, core.broker.store, streams, ledger.ended)
    rejected = Rejected(storage.database, storage.writer, run.counters)
    await rejected.load()
    rules = await _rule_set(run, storage, core, configured, outbox, ledger)
    rules.before_numbers.append(watch.before_number)
    run.at_stop += [rules.save, ledger.save]
    if not await record(run, storage, core, rules, configured):
        core.broker.subscribe_inline(rules, rules.topic_filters)
    uplinks = await _Maker(run, storage, core, outbox, rejected, telemetry).make_all(placed)
    await restore_pauses(storage, control, uplinks)
    telemetry.show_age(outbox)
    Outage(run, storage.database, outbox).start()
    full = FullOutbox(run, outbox)
    full.start()
    run.troubles.append(lambda: full.text)
    RejectedRequests(run, storage, queries.responder, control, rejected, outbox)
    pairs = list(zip(uplinks, settings, strict=True))
    start_recall(run, storage, queries.responder, control, outbox, pairs)
    queries.follow(outbox, rules)
    for uplink in uplinks:
        LinkLines(run, uplink, outbox).start()
        await uplink.start()
        run.stack.push_async_callback(uplink.close)
    reporting = [uplink for uplink, each in pairs if each.reports]
    report_ledger(run, storage, ledger, outbox, reporting)
    watch.report([uplink.control_messages for uplink in reporting])


async def _rule_set(
    run: Run,
    storage: Storage,
    core: Core,
    rules: Sequence[Rule],
    outbox: Outbox,
    ledger: Ledger,
) -> RuleSet:
    keys = [key_of(rules, index) for index in range(len(rules))]
    states = RuleStates(storage.database, storage.writer)
    restored = await states.restore([key for key in keys if key is not None])
    budget = core.broker.budget
    return RuleSet(rules, outbox, run.counters, run.epoch, restored, budget, ledger)


class _Maker(NamedTuple):
    """Makes uplinks from what they share."""

    run: Run
    storage: Storage
    core: Core
    outbox: Outbox
    rejected: Rejected
    telemetry: Telemetry

    async def make_all(self, rules: Sequence[PlacedRule]) -> list[Uplink]:
        """Return the uplinks of the configuration, not started."""
        names = self.outbox.uplinks.names
        uplinks = []
        for index, counters in enumerate(uplink_counters(self.run.counters, names)):
            own = [each for each in rules if index in each.uplinks]
            uplinks.append(await self._make_one(index, own, counters))
        return uplinks

    async def _make_one(
        self, index: int, rules: Sequence[PlacedRule], counters: Counters
    ) -> Uplink:
        run, storage, core = self.run, self.storage, self.core
        table, name = run.configuration.uplinks[index], self.outbox.uplinks.names[index]
        uplink = Uplink(
            uplink_settings(run, table, name, rules),
            self.outbox,
            self.rejected,
            counters,
            run.clock,
            metering=await self._metering(table, name, counters),
            at_turn_end=TurnEnd(core.turn),
            begin=begin_connection,
            # what comes down waits in the session, which goes on even after a crash
            resume=await take_resumable(storage.database, name) or bool(table.down),
            uplink=1 << index,
        )
        run.at_stop.append(lambda: self._note_session(uplink))
        uplink.on_state.append(self.telemetry.sys_topics.say)
        uplink.take_overs.alarm = run.alarm
        gateway_id = run.configuration.gateway_id
        down = await open_down(gateway_id, storage, core, table.down, name, counters)
        uplink.requests.down = down
        return uplink

    def _note_session(self, uplink: Uplink) -> None:
        """Record whether the next run may resume the session at the fleet's broker."""
        if uplink.session.resumable:
            leave_resumable(self.storage.writer, uplink.name)

    async def _metering(self, table: UplinkSettings, name: str, counters: Counters) -> Metering:
        """Return what counts the day's budget, with what an earlier run used of it."""
        if table.budget is None:
            return Metering(None, None, counters, self.run.clock)
        usage = UplinkUsage(self.storage.database, self.storage.writer, name)
        day, used = await usage.load()
        return Metering(Budget(table.budget, day, used), usage, counters, self.run.clock)


async def restore_pauses(storage: Storage, control: Control, uplinks: Sequence[Uplink]) -> None:
    """Take up the pauses of an earlier run, and let clients pause and resume uplinks.

    They ask for all, or for one by its name. Whoever asks is answered when it is on disk.
    """
    _obey(storage, control, "uplink", uplinks)
    for uplink in uplinks:
        if uplink.name:
            _obey(storage, control, f"uplink/{uplink.name}", [uplink])
        if await is_noted(storage.database, note_of(PAUSED, uplink.name)):
            name = f" {uplink.name}" if uplink.name else ""
            logger.warning(
                "uplink%s: paused before the start; `tidegate uplink resume%s` ends that",
                *(name, name),
            )
            uplink.pause()


def _obey(storage: Storage, control: Control, part: str, uplinks: Sequence[Uplink]) -> None:
    def pause() -> None:
        for uplink in uplinks:
            note(storage.writer, note_of(PAUSED, uplink.name))
            uplink.pause()

    def resume() -> None:
        for uplink in uplinks:
            note(storage.writer, note_of(PAUSED, uplink.name), there=False)
            uplink.resume()

    control.know(part, "pause", pause)
    control.know(part, "resume", resume)


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
