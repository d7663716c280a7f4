"""Connects rules, outbox and uplinks, as configured, to the broker."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gateway.app.clock import ClockWatch
from gateway.app.control import Control
from gateway.app.history import Recording
from gateway.app.parts import Core, Run, Storage
from gateway.app.query.queries import Queries
from gateway.app.telemetry import Telemetry
from gateway.app.uplink.links import Links, Shared, uplink_settings
from gateway.app.uplink.monitoring import FullOutbox, Outage
from gateway.app.uplink.outbox import open_ledger, outbox_settings, reporting, start_outbox
from gateway.app.uplink.rejected import RejectedRequests
from gateway.app.watched_files import Seen, snapshot
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.settings.outbox import StreamSettings
from gateway.settings.uplink import UplinkSettings
from gateway.settings.uplinks import place_of, rules_of
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.storage.outbox.uplinks import Places
from gateway.storage.state.rule_states import RuleKey, RuleState, RuleStates
from gateway.storage.state.uplink_state import UplinkUsage
from gateway.uplink.link.budget import Budget
from gateway.uplink.rules.rule import Rule, key_of
from gateway.uplink.rules.rules import RuleSet
from gateway.uplink.uplink import Uplink
from gateway.where.rule import compile_rule

MAXIMUM_REWRITTEN = 10_000
"""Rows of the outbox that a reload rewrites in one commit when uplinks are renamed."""

_Change: TypeAlias = Callable[[Callable[[], None]], Awaitable[list[str]]]
"""Changes links, and the rules at the right moment; returns lines about further changes."""


async def start_uplinks(
    run: Run,
    storage: Storage,
    core: Core,
    control: Control,
    telemetry: Telemetry,
    queries: Queries,
    recording: Recording,
) -> "UplinksPart":
    """Connect history, rules, outbox and uplinks to the broker.

    Return the parts that can change.
    """
    configured = uplink_rules(run.configuration.uplinks)
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
    await recording.begin(rules)
    sys_topics, responder = telemetry.sys_topics, queries.responder
    links = Links(
        Shared(
            *(run, storage, core, control, responder, sys_topics),
            *(outbox, rejected, ledger, watch, rules),
        )
    )
    telemetry.show_age(outbox)
    Outage(run, storage.database, outbox).start()
    full = FullOutbox(run, outbox)
    full.start()
    run.troubles.append(lambda: full.text)
    RejectedRequests(run, storage, responder, control, rejected, outbox)
    queries.follow(outbox, rules, links.next_attempt_seconds)
    await links.start(await links.make(run.configuration))
    watch.start()
    return UplinksPart(links, rules, states, recording, queries.trials.end_all)


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


class UplinksPart:
    """Changes rules, outbox and links while messages pass.

    A link with changed settings is retained. If links are added or removed, or report differently,
    all are rebuilt.
    """

    def __init__(
        self,
        links: Links,
        rules: RuleSet,
        states: RuleStates,
        recording: Recording,
        end_trials: Callable[[], None],
    ) -> None:
        self._end_trials = end_trials
        self._links = links
        self._rules = rules
        self._states = states
        self._recording = recording
        self._credentials = [_credentials(each.settings) for each in links.uplinks]

    async def prepare(
        self, old: Configuration, new: Configuration, _stack: AsyncExitStack
    ) -> Callable[[], Awaitable[list[str]]]:
        """Return a function that applies a configuration."""
        # in a thread: compiling a hundred expressions blocks the loop too long
        rules = await asyncio.to_thread(uplink_rules, new.uplinks)
        states = await self._states.begin(self._new_keys(rules))
        anew = _of_links(old) != _of_links(new)
        change = await (self._other_links if anew else self._same_links)(old, new)

        async def switch() -> list[str]:
            self._links.shared.core.turn.now()  # its end writes the changes to disk
            if (old.outbox, _streams_of(old)) != (new.outbox, _streams_of(new)):
                streams = [rule.stream for rule in rules]
                self._links.shared.outbox.change(outbox_settings(new, streams))
            return await change(lambda: self._change_rules(rules, states))

        async def and_history() -> list[str]:
            lines = await switch()
            if old.history != new.history:
                await self._recording.change(new.history.keep, new.history.maximum_bytes)
            return lines

        return and_history

    async def _same_links(self, old: Configuration, new: Configuration) -> _Change:
        """Return a function that gives each link its settings."""
        links, placed = [], rules_of(new.uplinks)
        for index, uplink in enumerate(self._links.uplinks):
            own = [each for each in placed if index in each.uplinks]
            table = new.uplinks[index]
            settings = uplink_settings(self._links.shared, new, table, uplink.name, own)
            budget = await self._links.budget(table, uplink.name)
            links.append(_ComingLink(uplink, settings, budget))

        async def change(change_rules: Callable[[], None]) -> list[str]:
            if old.uplinks != new.uplinks:
                change_rules()
            return [
                line for number, link in enumerate(links) for line in await self._join(number, link)
            ]

        return change

    async def _other_links(self, old: Configuration, new: Configuration) -> _Change:
        """Return a function that ends all links, reassigns waiting rows, and starts others.

        Raises ConfigurationError if too many rows would have to be rewritten.
        """
        shared, places = self._links.shared, places_of(old.uplinks, new.uplinks)
        names = [each.name or "" for each in new.uplinks]
        # without uplinks, rows wait for the first one that is added
        of_rows: Places = places if len(old.uplinks) > 1 else [places[0] or 0] if places else [0]
        rewritten = shared.outbox.uplinks.rows_to_rewrite(of_rows)
        if rewritten > MAXIMUM_REWRITTEN:
            allowed = (
                f"the same [[uplink]] in the same order: {rewritten:,} messages wait for a removed"
                f" one, or for the only one; above {MAXIMUM_REWRITTEN:,} only a restart moves them"
            )
            raise ConfigurationError(new.file, "uplink", None, allowed)
        if shared.storage.writer.full:  # what waits could not be handed on
            allowed = "the same [[uplink]] while nothing can be written to the disk"
            raise ConfigurationError(new.file, "uplink", None, allowed)
        made = await self._links.make(new, places)

        async def change(change_rules: Callable[[], None]) -> list[str]:
            lines = self._farewells(old, new, places)
            await self._links.close()
            await shared.outbox.change_uplinks(names, of_rows, shared.rules.brought_up.rows)
            shared.ledger.change(names, of_rows, reporting(new.uplinks))
            change_rules()
            self._links.forget(names if len(names) > 1 else [], places)
            await self._links.start(made, places)
            self._credentials = [_credentials(each.settings) for each in made]
            return lines

        return change

    def _farewells(self, old: Configuration, new: Configuration, places: Places) -> list[str]:
        """Return a line for each uplink that is removed."""
        names = [each.name or f"uplink[{n}]" for n, each in enumerate(new.uplinks)]
        to = f"are sent by {names[0]}" if names else "wait for another uplink"
        waiting_only_for = self._links.shared.outbox.uplinks.waiting_only_for
        return [
            f"{f'uplink {each.name}' if each.name else place_of(old.uplinks, index)} is removed:"
            f" {waiting_only_for(index):,} messages that waited only for it {to}"
            for index, (each, place) in enumerate(zip(old.uplinks, places, strict=False))
            if place is None
        ]

    def _new_keys(self, rules: Sequence[Rule]) -> list[RuleKey]:
        """Return the keys of new rules with a memory."""
        before = [each.rule for each in self._rules.rules]
        known = {key_of(before, index) for index in range(len(before))}
        keys = [key_of(rules, index) for index in range(len(rules))]
        return [key for key in keys if key is not None and key not in known]

    def _change_rules(self, rules: Sequence[Rule], states: Mapping[RuleKey, RuleState]) -> None:
        """Use other rules from the next message on."""
        self._end_trials()
        count = len(self._rules.rules)
        for gone in self._rules.change(rules, states):
            gone.forget(self._states)
        self._recording.subscribe()
        for index in range(len(self._rules.rules), count):
            self._links.shared.sys_topics.forget(f"tidegate/rules/{index}/")

    async def _join(self, number: int, link: "_ComingLink") -> list[str]:
        """Let an uplink continue with its settings.

        Return a line if its credentials have changed.
        """
        uplink, settings, (budget, usage) = link
        credentials = _credentials(settings)
        renewed = credentials != self._credentials[number]
        self._credentials[number] = credentials
        if _of_link(settings) == _of_link(uplink.settings) and not renewed:
            return []
        if uplink.settings.budget != settings.budget:
            uplink.metering.change(budget, usage)
        await self._links.change_down(uplink, settings.down)
        uplink.change(settings)
        name = f"uplink {uplink.name}".rstrip()
        return [f"{name}: its credentials are read again"] if renewed else []


class _ComingLink(NamedTuple):
    """An uplink with its new settings."""

    uplink: Uplink
    settings: UplinkSettings
    budget: tuple[Budget | None, UplinkUsage | None]


def places_of(old: Sequence[UplinkSettings], new: Sequence[UplinkSettings]) -> Places:
    """Return for each uplink its place among the new ones, None for a removed one.

    It is the one with the same name, or without a name the one with the same address. An only
    uplink becomes the first if no other matches.
    """
    if len(old) < 2 and len(new) < 2:
        return [0 if new else None] * len(old)

    def place(each: UplinkSettings) -> int | None:
        for index, other in enumerate(new):
            named = each.name and other.name
            if each.name == other.name if named else _address(each) == _address(other):
                return index
        return None

    places = [place(each) for each in old]
    return [places[0] or 0] if len(old) == 1 else places


def _address(uplink: UplinkSettings) -> tuple[str | None, ...]:
    return uplink.url, uplink.directory, uplink.client_id


def _of_links(configuration: Configuration) -> list[object]:
    """Return the settings whose change rebuilds all links."""
    uplinks = configuration.uplinks
    return [(each.name if len(uplinks) > 1 else "", each.recall, each.reports) for each in uplinks]


def _of_link(settings: UplinkSettings) -> UplinkSettings:
    """Return the settings whose change needs a new connection: without rules and bounds."""
    streams = tuple(StreamSettings(each.name, each.priority) for each in settings.streams)
    return replace(settings, rules=(), streams=streams, commit_within=0.0)


def _streams_of(configuration: Configuration) -> list[object]:
    return [(each.streams, [rule.stream for rule in each.rules]) for each in configuration.uplinks]


def _credentials(settings: UplinkSettings) -> Seen:
    """Return the state of the files of an uplink's credentials."""
    names = (
        settings.username_file,
        settings.password_file,
        settings.ca_file,
        settings.tls_certificate,
        settings.tls_key,
        settings.proxy_credentials_file,
    )
    return snapshot([Path(name) for name in names if name is not None])


def uplink_rules(uplinks: Sequence[UplinkSettings]) -> list[Rule]:
    """Return the rules; one without a wait of its own uses the shortest of its uplinks."""
    made = []
    for _, rule, places in rules_of(uplinks):
        where = None if rule.where is None else compile_rule(rule.where)
        commit_within = rule.commit_within
        if commit_within is None:
            commit_within = min((uplinks[place].commit_within for place in places), default=0.0)
        bits = sum(1 << place for place in places)
        made.append(
            Rule(rule.topic, where, rule.stream, rule.lane, commit_within, bits, retain=rule.retain)
        )
    return made
