"""The links of a gateway to its fleets: made, connected to shared parts, and ended, together."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gateway.access.access import AccessPolicy
from gateway.access.rule import WRITE
from gateway.app.clock import ClockWatch
from gateway.app.control import Control
from gateway.app.identity import ExportMark
from gateway.app.parts import Core, Run, Storage
from gateway.app.responder import Responder
from gateway.app.uplink.monitoring import PART, LinkLines, UplinkCounters
from gateway.app.uplink.outbox import report_ledger
from gateway.app.uplink.recall import start_recall
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.config.configuration import Configuration
from gateway.config.named_file import secret_path
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.settings.uplink import DownSettings, RuleSettings, UplinkSettings
from gateway.settings.uplinks import DEFAULT_RULE, PlacedRule, rules_of
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.outbox.uplinks import Places
from gateway.storage.state.note import is_noted, note, note_of
from gateway.storage.state.uplink_state import (
    DownSeen,
    FleetTopics,
    UplinkUsage,
    note_resumable,
    pop_resumable,
)
from gateway.telemetry.sys_topics import SysTopics
from gateway.uplink.begin_connection import begin_connection as begin_by_asyncio
from gateway.uplink.down import Down, DownRule
from gateway.uplink.landing.folder import landing_directory
from gateway.uplink.link.budget import Budget, Metering
from gateway.uplink.retained import RetainedParts, RetainedUp
from gateway.uplink.rules.rules import RuleSet
from gateway.uplink.uplink import Uplink
from gateway.version import VERSION

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

PAUSED = "uplink_paused"


class Shared(NamedTuple):
    """The objects that all links share while the gateway runs."""

    run: Run
    storage: Storage
    core: Core
    control: Control
    responder: Responder
    sys_topics: SysTopics
    outbox: Outbox
    rejected: Rejected
    ledger: Ledger
    watch: ClockWatch
    rules: RuleSet


class Links:
    """The `uplinks` of the configuration, in its order.

    `make` those of a configuration, which may fail, then `close` the running ones, and `start` the
    new ones. A link with a place among them continues with its session, its pause and its use of
    the day's budget.
    """

    def __init__(self, shared: Shared) -> None:
        self.uplinks: list[Uplink] = []
        self.shared = shared
        self._mark = ExportMark(shared.run)
        self._seen: dict[str, DownSeen] = {}
        self._lines: list[LinkLines] = []
        self._counters: list[UplinkCounters] = []
        self._stack = AsyncExitStack()
        shared.run.at_stop.append(self._note_sessions)
        shared.sys_topics.refresh.append(self._show_gauges)
        shared.run.stack.push_async_callback(self.close)

    async def make(self, configuration: Configuration, places: Places = ()) -> list[Uplink]:
        """Return the uplinks of a configuration, not started; raise sqlite3.Error.

        `places` are those of the present `uplinks` among them, None for a removed one.
        """
        placed = rules_of(configuration.uplinks)
        made = []
        for index in range(len(configuration.uplinks)):
            own = [each for each in placed if index in each.uplinks]
            stays = index in places
            made.append(await self._make_one(configuration, index, own, stays=stays))
            if not stays or self.uplinks[places.index(index)].requests.down is None:
                await self.change_down(made[-1], made[-1].settings.down)
        return made

    async def start(self, uplinks: Sequence[Uplink], places: Places = ()) -> None:
        """Start these, which `make` has made for the same `places`."""
        run, storage, _, control, *_ = self.shared
        before, self.uplinks = self.uplinks, list(uplinks)
        self._counters[:] = [
            each.counters for each in uplinks if isinstance(each.counters, UplinkCounters)
        ]
        for each in self._counters:
            each.show()
        await self._restore_pauses([each for n, each in enumerate(uplinks) if n not in places])
        for old, place in zip(before, places, strict=False):
            if place is not None:
                self._continue_from(old, uplinks[place])
        configured = run.configuration.uplinks
        pairs = list(zip(uplinks, configured, strict=True))
        outbox = self.shared.outbox
        start_recall(run, storage, self.shared.responder, control, outbox, pairs, self._stack)
        for uplink in uplinks:
            self._lines.append(LinkLines(run, uplink, outbox))
            self._lines[-1].start(self._stack)
            await uplink.start()
            self._stack.push_async_callback(uplink.close)
        reporting = [uplink for uplink, each in pairs if each.reports]
        report_ledger(run, storage, self.shared.ledger, outbox, reporting, self._stack)
        self.shared.watch.report([uplink.control_messages for uplink in reporting])

    def next_attempt_seconds(self, name: str) -> int | None:
        """Return the seconds until an uplink connects by itself, None while that is not planned."""
        found = (each.next_attempt_seconds for each in self.uplinks if each.name == name)
        return next(found, None)

    def _show_gauges(self) -> None:
        for each in self.uplinks:
            each.counters.set(f"{PART}next_attempt_seconds", each.next_attempt_seconds or 0)
        for counters in self._counters:
            counters.show()  # what a link sets for each message, it sets in its own figures only

    async def close(self) -> None:
        """Disconnect all cleanly; unacknowledged messages stay in the outbox."""
        await self._stack.aclose()

    def forget(self, names: Sequence[str], places: Places) -> None:
        """Forget the figures of links whose names are not among `names`, once all are closed."""
        for lines in self._lines:
            lines.end()
        self._lines.clear()
        for uplink, place in zip(self.uplinks, places, strict=False):
            uplink.take_overs.end()
            if uplink.requests.retained is not None:
                uplink.requests.retained.close()
            if place is None and uplink.session.resumable:
                note_resumable(self.shared.storage.writer, uplink.name)
            if uplink.name and uplink.name not in names:
                self.shared.control.forget(f"uplink/{uplink.name}")
                self.shared.sys_topics.forget(f"{PART}{uplink.name}/")

    async def change_down(self, uplink: Uplink, rules: tuple[DownSettings, ...]) -> None:
        """Publish messages from an uplink by these rules from now on."""
        down = uplink.requests.down
        if not rules:
            uplink.requests.down = None
        elif down is not None:
            down.change([down_rule(self.shared.core.policies, each) for each in rules])
        else:
            seen = self._seen[uplink.name] = DownSeen(*self.shared.storage[:2], uplink.name)
            await seen.load()
            uplink.requests.down = open_down(
                *(uplink.settings.gateway_id, self.shared.core, rules, seen, uplink.counters)
            )

    async def budget(
        self, table: UplinkSettings, name: str
    ) -> tuple[Budget | None, UplinkUsage | None]:
        """Return the day's budget, with what was used of it so far; None without one."""
        if table.budget is None:
            return None, None
        usage = UplinkUsage(*self.shared.storage[:2], name)
        return Budget(table.budget, *await usage.load()), usage

    async def _make_one(
        self,
        configuration: Configuration,
        index: int,
        rules: Sequence[PlacedRule],
        *,
        stays: bool,
    ) -> Uplink:
        run, storage, core = self.shared[:3]
        table = configuration.uplinks[index]
        name = (table.name or "") if len(configuration.uplinks) > 1 else ""
        counters = self._counters_of(name)
        uplink = Uplink(
            uplink_settings(self.shared, configuration, table, name, rules),
            self.shared.outbox,
            self.shared.rejected,
            counters,
            run.clock,
            metering=Metering(*await self.budget(table, name), counters, run.clock),
            at_turn_end=core.turn.touch,
            begin=begin_connection,
            # messages from the fleet wait in the session, which continues even after a crash
            resume=not stays and (await pop_resumable(storage.database, name) or bool(table.down)),
            uplink=1 << index,
        )
        parts = RetainedParts(
            *(core.broker.retained, self.shared.rules, self.shared.outbox),
            *(storage.database, storage.writer, run.clock),
        )
        uplink.requests.retained = retained = RetainedUp(parts, counters, name, 1 << index)
        await retained.load()
        subscribed = FleetTopics(storage.database, storage.writer, name)
        await subscribed.load()
        uplink.requests.subscribed = subscribed
        return uplink

    def _counters_of(self, name: str) -> Counters:
        """Return an uplink's counters; a single one uses the common ones."""
        counters = self.shared.run.counters
        if not name:
            return counters
        known = next((each for each in self._counters if each.name == name), None)
        return known or UplinkCounters(counters, name, self._counters)

    def _continue_from(self, before: Uplink, uplink: Uplink) -> None:
        """Let an uplink continue where its predecessor has ended."""
        old, new = before.settings, uplink.settings
        if (old.url, old.client_id) == (new.url, new.client_id):
            uplink.session.known = uplink.session.persistent and (
                before.session.resumable or bool(new.down)
            )
            if uplink.requests.retained is not None and before.requests.retained is not None:
                uplink.requests.retained.continue_from(before.requests.retained)
            topics = before.requests.subscribed.topics
            uplink.requests.subscribed.add(topics)
        uplink.metering.continue_from(before.metering)
        if before.paused:
            _pause(self.shared.storage, [uplink])
        down, seen = before.requests.down, self._seen.pop(before.name, None)
        if down is None or seen is None or not new.down:
            return
        seen.rename(uplink.name)
        self._seen[uplink.name] = seen
        policies = self.shared.core.policies
        down.change([down_rule(policies, each) for each in new.down], uplink.counters)
        uplink.requests.down = down

    def _note_sessions(self) -> None:
        """Record whether the next run may resume the sessions at the fleet's brokers."""
        for uplink in self.uplinks:
            if uplink.session.resumable:
                note_resumable(self.shared.storage.writer, uplink.name)

    async def _restore_pauses(self, fresh: Sequence[Uplink]) -> None:
        """Restore the pauses of an earlier run, and let clients pause and resume uplinks.

        They request it for all uplinks, or for one by its name; the answer is sent when it is on
        disk. All are paused if the identity was exported.
        """
        storage = self.shared.storage
        if self._mark.text:
            _pause(storage, self.uplinks)
        self._obey("uplink", self.uplinks)
        for uplink in self.uplinks:
            uplink.take_overs.alarm = self.shared.run.alarm
            uplink.take_overs.stop = partial(_pause, storage, [uplink])
            uplink.on_state.append(self.shared.sys_topics.publish)
            if uplink.name:
                self._obey(f"uplink/{uplink.name}", [uplink])
        for uplink in fresh:
            if await is_noted(storage.database, note_of(PAUSED, uplink.name)):
                name = f" {uplink.name}" if uplink.name else ""
                logger.warning(
                    "uplink%s: paused before the start; `tidegate uplink resume%s` ends that",
                    *(name, name),
                )
                uplink.pause()

    def _obey(self, part: str, uplinks: Sequence[Uplink]) -> None:
        storage = self.shared.storage

        def resume() -> None:
            self._mark.lift()
            for uplink in uplinks:
                note(storage.writer, note_of(PAUSED, uplink.name), there=False)
                uplink.resume()

        def bring_up() -> None:
            for uplink in uplinks:
                if uplink.requests.retained is not None:
                    uplink.requests.retained.again()

        self.shared.control.know(part, "pause", partial(_pause, storage, uplinks))
        self.shared.control.know(part, "retained", bring_up)
        self.shared.control.know(part, "resume", resume)


def _pause(storage: Storage, uplinks: Sequence[Uplink]) -> None:
    """Pause uplinks until they are resumed, also after a restart."""
    for uplink in uplinks:
        note(storage.writer, note_of(PAUSED, uplink.name))
        uplink.pause()


async def begin_connection(
    sock: socket.socket, protocol: asyncio.Protocol, tls: "ssl.SSLContext | None", host: str
) -> None:
    """Have the gateway's own selector serve the socket, or asyncio for TLS.

    The own selector needs no round of the loop between two messages, a tenth of a message's cost.
    """
    loop = asyncio.get_running_loop()
    if tls is None and isinstance(loop, GatewayLoop):
        if sock.family != socket.AF_UNIX:  # else a small packet waits for the ACK of the last one
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        SocketTransport(sock, protocol, loop.sockets, loop).start()
    else:
        await begin_by_asyncio(sock, protocol, tls, host)


def uplink_settings(
    shared: Shared,
    configuration: Configuration,
    table: UplinkSettings,
    name: str,
    rules: Sequence[PlacedRule],
) -> UplinkSettings:
    """Return a table's settings with what an uplink needs from this run; these are its rules.

    It has a `name` if there are several.
    """
    run = shared.run
    directory = landing_directory(table, run.data)
    return replace(
        settings_at_fleet(configuration, table),
        name=name,
        directory=None if directory is None else str(directory),
        epoch=run.epoch,
        previous_epoch=shared.ledger.starts.previous_epoch,
        version=VERSION,
        targets=_targets(rules),
    )


def settings_at_fleet(configuration: Configuration, table: UplinkSettings) -> UplinkSettings:
    """Return a table with what its connections need: paths of files, limits, the id."""
    return replace(
        table,
        username_file=_path(table.username_file),
        password_file=_path(table.password_file),
        ca_file=_path(table.ca_file),
        tls_certificate=_path(table.tls_certificate),
        tls_key=_path(table.tls_key),
        proxy_credentials_file=_path(table.proxy_credentials_file),
        maximum_packet_size=(table.maximum_packet_size or configuration.broker.maximum_packet_size),
        gateway_id=configuration.gateway_id,
    )


def _targets(rules: Sequence[PlacedRule]) -> tuple[RuleSettings, ...]:
    """Return the rules with their targets, none if all use the default one."""
    if all(rule.way == DEFAULT_RULE.way for _, rule, _ in rules):
        return ()
    return tuple(rule for _, rule, _ in rules)


def _path(text: str | None) -> str | None:
    return None if text is None else str(secret_path(text))


def open_down(
    gateway_id: str,
    core: Core,
    configured: tuple[DownSettings, ...],
    seen: DownSeen,
    counters: Counters,
) -> Down:
    """Return a function that publishes an uplink's messages here."""

    def publish(message: Message, forced: bool) -> ReasonCode:
        broker, instant = core.broker, core.turn.instant
        message.received_at, message.arrived = instant.wall, instant.monotonic
        if broker.topic_limits.fault(message.topic):
            return ReasonCode.TOPIC_NAME_INVALID
        # the fleet still has messages that do not fit on the disk
        only_once = forced and broker.store.accepts(len(message.payload))
        return broker.publish(message, instant, only_once=only_once)

    return Down(
        gateway_id,
        [down_rule(core.policies, each) for each in configured],
        seen,
        counters,
        publish=publish,
        when_on_disk=core.turn.when_on_disk,
        later=asyncio.get_running_loop().call_later,
        refusal=lambda: core.broker.refusals.reason,
    )


def down_rule(policies: list[AccessPolicy], config: DownSettings) -> DownRule:
    """Return a rule that uses the present access rules of all listeners."""
    rule = DownRule(config.topic, config.local, config.qos)
    username = config.username
    if username is None:
        return rule

    def may_write(topic: str) -> bool:
        """Check the present rules of every listener: one refusal is enough."""
        accesses = (
            policy.access(username, UPLINK_CLIENT, local=False, proven=True) for policy in policies
        )
        return all(access.rights(topic) & WRITE for access in accesses)

    return replace(rule, may_write=may_write)
