"""An edit of the uplink rules: finds the rule, and makes the edited configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.reader import Reader
from gateway.errors import TidegateError
from gateway.settings.checks import did_you_mean
from gateway.settings.declaration import TABLES_MAX, keys_of
from gateway.settings.uplink import RuleSettings, UplinkSettings
from gateway.settings.uplinks import PlacedRule, place_of, rules_of

Check: TypeAlias = Callable[[Configuration, Sequence[ConfigurationError]], None]
"""Raises ConfigurationError for these mistakes and all others of a configuration."""

MAXIMUM_SHOWN = 20
"""Rules that an error names."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A requested change: keys of a rule to `set`, None to omit one, or to `remove` the rule.

    `uplink` is a name or a number from 0; it may be None if there is only one. `rule` is a number
    from 0 of this uplink's, or a name from the ledger. None is a new rule, inserted `at` this
    number, or at the end if there are fewer.
    """

    uplink: str | None = None
    rule: str | None = None
    set: Mapping[str, object] = field(default_factory=dict)
    remove: bool = False
    at: int = TABLES_MAX


class NamedRule(NamedTuple):
    """A rule with its index among all rules, and its name in the ledger."""

    place: int
    name: str
    placed: PlacedRule


class RuleEdit(NamedTuple):
    """A checked edit: the rule before it and after it, each None if there is none.

    It concerns the table `number` of the uplink at `place`, which is `added` or exists; `table` is
    its content afterwards, None if it is removed. `configuration` has the edit.
    """

    configuration: Configuration
    place: int
    number: int
    added: bool
    table: dict[str, object] | None
    old: NamedRule | None
    new: NamedRule | None


def edit_rule(configuration: Configuration, change: RuleChange, check: Check) -> RuleEdit:
    """Return the edit; raise TidegateError for an unknown rule.

    Raises ConfigurationError for what `check` finds. Only the uplinks of the configuration are
    checked.
    """
    uplinks = configuration.uplinks
    place, number = find_rule(uplinks, change)
    tables, unwritten = list(uplinks[place].rules), _unwritten(uplinks, place)
    if number is None:
        number, added, old = min(change.at, len(tables)), True, None
    else:
        added = number == len(tables)
        old = unwritten if added else _written(uplinks, place, number)
    reader = Reader(configuration.file)
    table = None
    if change.remove:
        if added or change.set:
            raise TidegateError("remove is for a rule that is written, and without other changes")
        del tables[number]
    else:
        table = _table(old, change)
        key = f"{place_of(uplinks, place)}.rule[{number}]"
        made = reader.read(RuleSettings, table, key)
        tables[number : number + (not added)] = [made]
    changed = replace(uplinks[place], rules=tuple(tables))
    edited = replace(configuration, uplinks=(*uplinks[:place], changed, *uplinks[place + 1 :]))
    found = [ConfigurationError(edited.file, *each) for each in edited.mistakes(frozenset())]
    check(only_uplinks(edited), reader.mistakes or found)
    default = _unwritten(edited.uplinks, place)
    new = default if table is None else _written(edited.uplinks, place, number)
    if added and default is None:  # a new rule replaces the default rule
        old = unwritten
    return RuleEdit(edited, place, number, added, table, old, new)


def rule_names(uplinks: Sequence[UplinkSettings]) -> list[NamedRule]:
    """Return all rules with their names in the ledger; the default rule is the last."""
    from gateway.uplink.rules.rule import name_of

    found = []
    for index, placed in enumerate(rules_of(uplinks)):
        rule = placed.rule
        name = name_of(index, rule.stream, rule.topic, rule.where)
        found.append(NamedRule(index, name, placed))
    return found


def find_rule(uplinks: Sequence[UplinkSettings], change: RuleChange) -> tuple[int, int | None]:
    """Return the index of the uplink and the number of its rule, None for a new one.

    The default rule has the number that the next one would have.
    """
    if not uplinks:
        raise TidegateError("nothing is sent: there is no [uplink]")
    place = None if change.uplink is None else _place(uplinks, change.uplink)
    rule = change.rule
    if rule is not None and "@" in rule:
        return _find_named(uplinks, place, rule)
    if place is None and len(uplinks) > 1:
        names = ", ".join(each.name or "" for each in uplinks)
        raise TidegateError(f"uplink must be given; there are {names}")
    place = place or 0
    if rule is None:
        return place, None
    if rule.isascii() and rule.isdecimal():
        number, known = int(rule[:9]), len(uplinks[place].rules)
        if number < known or (number == known and _unwritten(uplinks, place) is not None):
            return place, number
    raise _no_rule(uplinks, rule)


def _place(uplinks: Sequence[UplinkSettings], uplink: str) -> int:
    names = [each.name for each in uplinks if each.name]
    for place, each in enumerate(uplinks):
        if each.name == uplink:
            return place
    if uplink.isascii() and uplink.isdecimal() and int(uplink[:9]) < len(uplinks):
        return int(uplink)
    known = ", ".join(names) or "none with a name"
    allowed = f"the name of an [[uplink]]; there are {known}{did_you_mean(uplink, names)}"
    raise TidegateError(f"uplink = {uplink[:80]!r} is not allowed: {allowed}")


def _find_named(
    uplinks: Sequence[UplinkSettings], place: int | None, name: str
) -> tuple[int, int | None]:
    index = next((each.place for each in rule_names(uplinks) if each.name == name), None)
    if index is None:
        raise _no_rule(uplinks, name)
    for of, uplink in enumerate(uplinks):
        if index < len(uplink.rules):
            if place in (None, of):
                return of, index
            raise _no_rule(uplinks, name)
        index -= len(uplink.rules)
    found = [of for of in range(len(uplinks)) if _unwritten(uplinks, of) is not None]
    if place is None and len(found) == 1:
        place = found[0]
    if place not in found:
        raise TidegateError(f"uplink must be given: nobody wrote rule {name}")
    return place, len(uplinks[place].rules)


def _no_rule(uplinks: Sequence[UplinkSettings], rule: str) -> TidegateError:
    names = [each.name for each in rule_names(uplinks)]
    known = ", ".join(names[:MAXIMUM_SHOWN]) + (", …" if len(names) > MAXIMUM_SHOWN else "")
    allowed = f"the number or name of a rule; there are {known}{did_you_mean(rule, names)}"
    return TidegateError(f"rule = {rule[:80]!r} is not allowed: {allowed}")


def _written(uplinks: Sequence[UplinkSettings], place: int, number: int) -> NamedRule:
    return rule_names(uplinks)[sum(len(each.rules) for each in uplinks[:place]) + number]


def _unwritten(uplinks: Sequence[UplinkSettings], place: int) -> NamedRule | None:
    """Return the default rule, if it is for this uplink."""
    last = rule_names(uplinks)[-1]
    return last if not last.placed.key and place in last.placed.uplinks else None


def _table(old: NamedRule | None, change: RuleChange) -> dict[str, object]:
    """Return the keys of the edited rule as the file should have them."""
    table: dict[str, object] = {}
    for key in keys_of(RuleSettings) if old is not None else ():
        value = getattr(old.placed.rule, key.attribute) if old is not None else None
        if value != key.default:
            table[key.name] = list(value) if isinstance(value, tuple) else value
    table.update(change.set)
    return {name: value for name, value in table.items() if value is not None}


def only_uplinks(edited: Configuration) -> Configuration:
    """Return the uplinks' part of a configuration."""
    return Configuration(
        edited.file, edited.gateway_id, uplinks=edited.uplinks, outbox=edited.outbox
    )
