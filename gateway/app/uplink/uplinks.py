"""Joins rules, outbox and uplinks, as the configuration has them, to the broker."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gateway.app.clock import ClockWatch
from gateway.app.control import Control
from gateway.app.history import Recording, record, recorded
from gateway.app.identity import ExportMark
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.queries import Queries
from gateway.app.telemetry import Telemetry
from gateway.app.turn_end import TurnEnd
from gateway.app.uplink.down import down_rule, open_down
from gateway.app.uplink.landing import landing_directory
from gateway.app.uplink.monitoring import (
    FullOutbox,
    LinkLines,
    Outage,
    uplink_counters,
)
from gateway.app.uplink.outbox import (
    open_ledger,
    outbox_settings,
    report_ledger,
    start_outbox,
)
from gateway.app.uplink.recall import start_recall
from gateway.app.uplink.rejected import RejectedRequests
from gateway.app.watched_files import Seen, snapshot
from gateway.config.configuration import Configuration
from gateway.config.credentials import secret_path
from gateway.counters import Counters
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_transport import SocketTransport
from gateway.settings.outbox import StreamSettings
from gateway.settings.uplink import RuleSettings, UplinkSettings
from gateway.settings.uplinks import DEFAULT_RULE, PlacedRule, rules_of
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.state.note import is_noted, note, note_of
from gateway.storage.state.rule_states import RuleKey, RuleState, RuleStates
from gateway.storage.state.uplink_usage import UplinkUsage, note_resumable, pop_resumable
from gateway.uplink.begin_connection import begin_connection as begin_by_asyncio
from gateway.uplink.down import Down
from gateway.uplink.link.budget import (
    Budget,
    Metering,
)
from gateway.uplink.retained import RetainedParts, RetainedUp
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
    begun: Recording | None = None,
) -> "UplinksPart":
    """Join history, rules, outbox and uplinks to the broker; return what can change of them.

    The history has `begun` where they come while the gateway runs.
    """
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
    states = RuleStates(storage.database, storage.writer)
    rules = await _rule_set(run, states, core, configured, outbox, ledger)
    rules.before_numbers.append(watch.before_number)
    run.at_stop += [rules.save, ledger.save]
    recording = begun or await record(run, storage, core, rules)
    if begun is not None:
        begun.join(rules, core.broker)
    elif recording.recorder is None:
        core.broker.subscribe_inline(rules, rules.topic_filters)
    maker = _Maker(run, storage, core, outbox, rejected, telemetry, rules)
    uplinks = await maker.make_all(placed)
    await restore_pauses(run, storage, control, uplinks)
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
    return UplinksPart(maker, rules, states, uplinks, recording, queries.trials.end_all)


async def _rule_set(
    run: Run,
    states: RuleStates,
    core: Core,
    rules: Sequence[Rule],
    outbox: Outbox,
    ledger: Ledger,
) -> RuleSet:
    keys = [key_of(rules, index) for index in range(len(rules))]
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
    rules: RuleSet

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
            uplink_settings(run, run.configuration, table, name, rules),
            self.outbox,
            self.rejected,
            counters,
            run.clock,
            metering=Metering(*await self.budget(table, name), counters, run.clock),
            at_turn_end=TurnEnd(core.turn),
            begin=begin_connection,
            # what comes down waits in the session, which goes on even after a crash
            resume=await pop_resumable(storage.database, name) or bool(table.down),
            uplink=1 << index,
        )
        run.at_stop.append(lambda: self._note_session(uplink))
        uplink.on_state.append(self.telemetry.sys_topics.publish)
        uplink.take_overs.alarm = run.alarm
        uplink.requests.down = await self.down(table, uplink)
        parts = RetainedParts(
            *(core.broker.retained, self.rules, self.outbox),
            *(storage.database, storage.writer, run.clock),
        )
        uplink.requests.retained = retained = RetainedUp(parts, counters, name, 1 << index)
        await retained.load()
        return uplink

    async def down(self, table: UplinkSettings, uplink: Uplink) -> Down | None:
        """Return what publishes an uplink's messages here, None if nothing comes down by it."""
        gateway_id = self.run.configuration.gateway_id
        return await open_down(
            gateway_id, self.storage, self.core, table.down, uplink.name, uplink.counters
        )

    def _note_session(self, uplink: Uplink) -> None:
        """Record whether the next run may resume the session at the fleet's broker."""
        if uplink.session.resumable:
            note_resumable(self.storage.writer, uplink.name)

    async def budget(
        self, table: UplinkSettings, name: str
    ) -> tuple[Budget | None, UplinkUsage | None]:
        """Return the day's budget, with what was used of it so far; None without one."""
        if table.budget is None:
            return None, None
        usage = UplinkUsage(self.storage.database, self.storage.writer, name)
        return Budget(table.budget, *await usage.load()), usage


class UplinksPart:
    """Changes rules, outbox and links while messages pass; the uplinks themselves stay the same."""

    def __init__(
        self,
        maker: _Maker,
        rules: RuleSet,
        states: RuleStates,
        uplinks: Sequence[Uplink],
        recording: Recording,
        end_trials: Callable[[], None],
    ) -> None:
        self._end_trials = end_trials
        self._maker = maker
        self._rules = rules
        self._states = states
        self._uplinks = uplinks
        self._history = recording.history
        self._client = recording.recorder or rules
        self._credentials = [_credentials(each.settings) for each in uplinks]

    async def prepare(
        self, old: Configuration, new: Configuration, _stack: AsyncExitStack
    ) -> Callable[[], Awaitable[list[str]]]:
        """Return what lets a configuration hold that has the same uplinks."""
        placed = rules_of(new.uplinks)
        # in a thread: to compile a hundred expressions takes longer than others can wait
        rules = await asyncio.to_thread(uplink_rules, new.uplinks, placed)
        states = await self._states.begin(self._new_keys(rules))
        links = []
        for index, uplink in enumerate(self._uplinks):
            own = [each for each in placed if index in each.uplinks]
            table = new.uplinks[index]
            settings = uplink_settings(self._maker.run, new, table, uplink.name, own)
            budget = await self._maker.budget(table, uplink.name)
            down = uplink.requests.down or await self._maker.down(table, uplink)
            links.append(_ComingLink(uplink, settings, budget, down))

        async def switch() -> list[str]:
            self._maker.core.turn.now()  # whose end brings to disk what changes
            if (old.outbox, _streams_of(old)) != (new.outbox, _streams_of(new)):
                streams = [rule.stream for rule in rules]
                self._maker.outbox.change(outbox_settings(new, streams))
            if old.uplinks != new.uplinks:
                self._change_rules(rules, states)
            if old.history != new.history:
                self._history.change(new.history.keep, new.history.maximum_bytes)
            return [line for number, link in enumerate(links) for line in self._join(number, link)]

        return switch

    def _new_keys(self, rules: Sequence[Rule]) -> list[RuleKey]:
        """Return the keys of rules that remember something and are not there yet."""
        before = [each.rule for each in self._rules.rules]
        known = {key_of(before, index) for index in range(len(before))}
        keys = [key_of(rules, index) for index in range(len(rules))]
        return [key for key in keys if key is not None and key not in known]

    def _change_rules(self, rules: Sequence[Rule], states: Mapping[RuleKey, RuleState]) -> None:
        """Let other rules be asked from the next message on."""
        self._end_trials()
        broker, client = self._maker.core.broker, self._client
        before, count = list(client.topic_filters), len(self._rules.rules)
        for gone in self._rules.change(rules, states):
            gone.forget(self._states)
        now = client.topic_filters
        broker.subscribe_inline(client, [each for each in now if each not in before])
        for topic_filter in before:
            number = None if topic_filter in now else broker.router.find(client, topic_filter)
            if number is not None:
                broker.router.discard(number)
        for index in range(len(self._rules.rules), count):
            self._maker.telemetry.sys_topics.forget(f"tidegate/rules/{index}/")
        self._history.record_rules(recorded(self._rules))

    def _join(self, number: int, link: "_ComingLink") -> list[str]:
        """Let an uplink go on with its settings; return a line if its credentials are others."""
        uplink, settings, (budget, usage), down = link
        credentials = _credentials(settings)
        renewed = credentials != self._credentials[number]
        self._credentials[number] = credentials
        if _of_link(settings) == _of_link(uplink.settings) and not renewed:
            return []
        if uplink.settings.budget != settings.budget:
            uplink.metering.change(budget, usage)
        if down is not None:
            down.change([down_rule(self._maker.core.policies, each) for each in settings.down])
        uplink.requests.down = down if settings.down else None
        uplink.change(settings)
        name = f"uplink {uplink.name}".rstrip()
        return [f"{name}: its credentials are read again"] if renewed else []


class _ComingLink(NamedTuple):
    """An uplink with what is to hold for it."""

    uplink: Uplink
    settings: UplinkSettings
    budget: tuple[Budget | None, UplinkUsage | None]
    down: Down | None


def _of_link(settings: UplinkSettings) -> UplinkSettings:
    """Return the settings for which a link connects anew: without what rules and bounds say."""
    streams = tuple(StreamSettings(each.name, each.priority) for each in settings.streams)
    return replace(settings, rules=(), streams=streams, commit_within=0.0)


def _streams_of(configuration: Configuration) -> list[object]:
    return [(each.streams, [rule.stream for rule in each.rules]) for each in configuration.uplinks]


def _credentials(settings: UplinkSettings) -> Seen:
    """Return what tells whether the files of an uplink's credentials have changed."""
    names = (
        settings.username_file,
        settings.password_file,
        settings.ca_file,
        settings.tls_certificate,
        settings.tls_key,
    )
    return snapshot([Path(name) for name in names if name is not None])


async def restore_pauses(
    run: Run, storage: Storage, control: Control, uplinks: Sequence[Uplink]
) -> None:
    """Take up the pauses of an earlier run, and let clients pause and resume uplinks.

    They ask for all, or for one by its name. Whoever asks is answered when it is on disk. All are
    paused where the identity was exported.
    """
    mark = ExportMark(run)
    if mark.text:
        _pause(storage, uplinks)
    _obey(storage, control, mark, "uplink", uplinks)
    for uplink in uplinks:
        uplink.take_overs.stop = partial(_pause, storage, [uplink])
        if uplink.name:
            _obey(storage, control, mark, f"uplink/{uplink.name}", [uplink])
        if await is_noted(storage.database, note_of(PAUSED, uplink.name)):
            name = f" {uplink.name}" if uplink.name else ""
            logger.warning(
                "uplink%s: paused before the start; `tidegate uplink resume%s` ends that",
                *(name, name),
            )
            uplink.pause()


def _pause(storage: Storage, uplinks: Sequence[Uplink]) -> None:
    """Pause uplinks until somebody resumes them, also after a restart."""
    for uplink in uplinks:
        note(storage.writer, note_of(PAUSED, uplink.name))
        uplink.pause()


def _obey(
    storage: Storage, control: Control, mark: ExportMark, part: str, uplinks: Sequence[Uplink]
) -> None:
    def resume() -> None:
        mark.lift()
        for uplink in uplinks:
            note(storage.writer, note_of(PAUSED, uplink.name), there=False)
            uplink.resume()

    def bring_up() -> None:
        for uplink in uplinks:
            if uplink.requests.retained is not None:
                uplink.requests.retained.again()

    control.know(part, "pause", partial(_pause, storage, uplinks))
    control.know(part, "retained", bring_up)
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
        made.append(
            Rule(rule.topic, where, rule.stream, rule.lane, within, bits, retain=rule.retain)
        )
    return made


def uplink_settings(
    run: Run,
    configuration: Configuration,
    table: UplinkSettings,
    name: str,
    rules: Sequence[PlacedRule],
) -> UplinkSettings:
    """Return what a table says with what else an uplink must know of this run; these are its rules.

    It has a `name` if there are several.
    """
    directory = landing_directory(table, run.data)
    return replace(
        settings_at_fleet(configuration, table),
        name=name,
        directory=None if directory is None else str(directory),
        epoch=run.epoch,
        version=VERSION,
        targets=_targets(rules),
    )


def settings_at_fleet(configuration: Configuration, table: UplinkSettings) -> UplinkSettings:
    """Return a table with what its connections need: files by their paths, bounds, the id."""
    return replace(
        table,
        username_file=_path(table.username_file),
        password_file=_path(table.password_file),
        ca_file=_path(table.ca_file),
        tls_certificate=_path(table.tls_certificate),
        tls_key=_path(table.tls_key),
        maximum_packet_size=(table.maximum_packet_size or configuration.broker.maximum_packet_size),
        gateway_id=configuration.gateway_id,
    )


def _targets(rules: Sequence[PlacedRule]) -> tuple[RuleSettings, ...]:
    """Return the rules with their targets, none if all go the usual way."""
    if all(rule.way == DEFAULT_RULE.way for _, rule, _ in rules):
        return ()
    return tuple(rule for _, rule, _ in rules)


def _path(text: str | None) -> str | None:
    return None if text is None else str(secret_path(text))
