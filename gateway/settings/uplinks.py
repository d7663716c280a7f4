"""Common checks of several uplinks: which rules are for which, and their conflicts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.settings.checks import did_you_mean
from gateway.settings.declaration import Mistake
from gateway.settings.uplink import RuleSettings, UplinkSettings

MAX_UPLINKS = 8
"""Uplinks of one gateway; a bit of each message says that it waits for one."""

DEFAULT_RULE = RuleSettings("sensors/#")
"""The default rule of an uplink."""


class PlacedRule(NamedTuple):
    """A rule with its key in messages, and the indexes of its uplinks in the configuration."""

    key: str
    rule: RuleSettings
    uplinks: tuple[int, ...]

    @property
    def bits(self) -> int:
        """The same uplinks as bits."""
        return sum(1 << place for place in self.uplinks)


def place_of(uplinks: Sequence[UplinkSettings], index: int) -> str:
    """Return the key of an uplink in messages."""
    return f"uplink[{index}]" if len(uplinks) > 1 else "uplink"


def rules_of(uplinks: Sequence[UplinkSettings]) -> list[PlacedRule]:
    """Return all rules in order, and the default one for uplinks without any."""
    names = {uplink.name: place for place, uplink in enumerate(uplinks) if uplink.name}
    rules = []
    for place, uplink in enumerate(uplinks):
        for number, rule in enumerate(uplink.rules):
            own: tuple[int, ...] = (place,)
            if rule.uplink:
                own = tuple(sorted({names[name] for name in rule.uplink if name in names}))
            rules.append(PlacedRule(f"{place_of(uplinks, place)}.rule[{number}]", rule, own))
    used = {place for each in rules for place in each.uplinks}
    without = tuple(place for place in range(len(uplinks)) if place not in used)
    if without:
        rules.append(PlacedRule("", DEFAULT_RULE, without))
    return rules


def mistakes_of_uplinks(uplinks: Sequence[UplinkSettings]) -> Iterator[Mistake]:
    """Yield conflicts between uplinks that are each valid."""
    names = [uplink.name for uplink in uplinks if uplink.name]
    for index, uplink in enumerate(uplinks):
        where = place_of(uplinks, index)
        if len(uplinks) > 1 and uplink.name is None:
            yield f"{where}.name", None, "a name of its own, where there are several [[uplink]]"
        elif uplink.name in [other.name for other in uplinks[:index]]:
            yield f"{where}.name", uplink.name, "a name that no other [[uplink]] has"
        yield from _shared(uplinks, index, where)
        for number, rule in enumerate(uplink.rules):
            for name in rule.uplink:
                if name not in names:
                    known = ", ".join(names) or "none with a name"
                    allowed = f"the name of an [[uplink]]; there are {known}"
                    allowed += did_you_mean(name, names)
                    yield f"{where}.rule[{number}].uplink", name, allowed
    yield from _mistakes_of_streams(uplinks)


def _shared(uplinks: Sequence[UplinkSettings], index: int, where: str) -> Iterator[Mistake]:
    """Yield values that an uplink must not share with an earlier one."""
    uplink = uplinks[index]
    for other in uplinks[:index]:
        if uplink.url is None and other.url is None and uplink.directory == other.directory:
            yield f"{where}.directory", uplink.directory, "one that no other [[uplink]] has"
        elif set(uplink.urls) & set(other.urls):
            if uplink.client_id == other.client_id:
                allowed = "one that no other [[uplink]] has at the same broker"
                yield f"{where}.client_id", uplink.client_id, allowed
        else:
            continue
        return


def _mistakes_of_streams(uplinks: Sequence[UplinkSettings]) -> Iterator[Mistake]:
    used = sorted({each.rule.stream for each in rules_of(uplinks)})
    names: set[str] = set()
    for index, uplink in enumerate(uplinks):
        for number, stream in enumerate(uplink.streams):
            key = f"{place_of(uplinks, index)}.stream[{number}].name"
            if stream.name in names:
                yield key, stream.name, "one table for each stream"
            elif stream.name not in used:
                allowed = "a stream that a rule has; there are " + ", ".join(used)
                yield key, stream.name, allowed + did_you_mean(stream.name, used)
            names.add(stream.name)
