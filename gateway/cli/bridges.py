"""`tidegate bridges`: the kinds of bridges, how a gateway's do, and which devices are there."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.app.uplink.headroom import spell_seconds
from gateway.bridges.kind import BridgeKind, FoundTable, ScanOptions
from gateway.bridges.settings import BridgeSettings
from gateway.cli.control_request import Conversation
from gateway.cli.local_broker import LocalBroker
from gateway.cli.operate import table
from gateway.cli.subscribe import harmless
from gateway.config.bridges import GROUP, bridge_kinds, load_kind
from gateway.config.reference import key_lines
from gateway.errors import TidegateError
from gateway.extras import how_to_install
from gateway.settings.declaration import keys_of


def show_bridges(names: Sequence[str]) -> None:
    """Print a line for each kind, or everything about some; raise TidegateError without one."""
    for name in names:
        print(describe(load(name)))
        print(describe_common(), end="")
    if not names:
        for each in bridge_kinds():
            print(f"{each:16}{load(each).summary}")


def load(name: str) -> BridgeKind:
    """Return a kind of bridge; raise TidegateError if it does not exist or cannot be loaded."""
    kinds = bridge_kinds()
    if name not in kinds:
        raise TidegateError(f"no bridge {name!r}; there are {', '.join(kinds)}")
    try:
        kind = load_kind(kinds[name])
    except ImportError as error:
        raise TidegateError(f"bridge {name} cannot be loaded: {error}") from error
    if not isinstance(kind, BridgeKind):
        raise TidegateError(f"bridge {name}: what the group {GROUP} names is no BridgeKind")
    return kind


NOTHING = 1
"""The exit status if nothing is found."""


def command_scan(words: Sequence[str], options: argparse.Namespace) -> int:
    """Print the configuration for what is found; raise TidegateError for a kind that cannot scan.

    Progress is printed to standard error. Returns 0 if something is found, else 1.
    """
    if not words:
        raise TidegateError(f"scan needs a kind of bridge: {', '.join(_kinds())}")
    kind = load(words[0])
    if kind.scan is None:
        raise TidegateError(f"{kind.name} cannot scan; these can: {', '.join(_kinds())}")
    try:
        found = asyncio.run(
            kind.scan(
                ScanOptions(
                    lambda text: print(text, file=sys.stderr, flush=True),
                    tuple(words[1:]),
                    options.seconds,
                    _devices(options.devices),
                )
            )
        )
    except ImportError as failure:
        how = how_to_install(kind.extra)
        raise TidegateError(
            f"{kind.name} needs {failure.name or failure}, which is not installed: {how}"
        ) from failure
    print("\n".join(scan_lines(found)))
    return 0 if found else NOTHING


def _kinds() -> list[str]:
    return [name for name in bridge_kinds() if load(name).scan is not None]


def _devices(text: str | None) -> range | None:
    """Return the identifiers of `1-32` or `7`."""
    if text is None:
        return None
    first, _, last = text.partition("-")
    last = last or first
    if first.isdecimal() and last.isdecimal() and 0 <= int(first) <= int(last) <= 255:
        return range(int(first), int(last) + 1)
    raise TidegateError(f"--devices {text}: a number or a range such as 1-32, of 0 to 255")


def scan_lines(found: Sequence[FoundTable]) -> Iterator[str]:
    """Yield tables as TOML, each below its comments."""
    for each in found:
        yield from (f"# {comment}" for comment in each.comments)
        yield f"[[{each.name}]]"
        for key, value in each.values.items():
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
        yield ""


NOT_WORKING = 1
"""The exit status if a bridge is not open."""

OPEN = "open"

MOST = 100_000
"""Bridges and series that are shown."""

Entry = dict[str, Any]


def command_status(options: argparse.Namespace, names: Sequence[str]) -> int:
    """Print the status of all bridges, or of those with a name; raise TidegateError without one.

    Returns 0 if they are open, else 1.
    """
    broker = LocalBroker.of(options)
    bridges = _bridges(broker)
    for name in names:
        if all(name not in (each["name"], each["kind"]) for each in bridges):
            known = ", ".join(f"{each['kind']} {each['name']}" for each in bridges) or "none"
            raise TidegateError(
                f"the gateway at {broker.name} has no bridge {name!r}; there are {known}"
            )
    if names:
        bridges = [each for each in bridges if {each["name"], each["kind"]} & set(names)]
    if options.json:
        print(json.dumps(bridges, indent=2, ensure_ascii=False))
    else:
        print(report(bridges))
    return 0 if all(each["state"] == OPEN for each in bridges) else NOT_WORKING


def report(bridges: Sequence[Entry]) -> str:
    """Return the status of bridges, with control characters of devices escaped."""
    blocks = ["\n".join(map(harmless, status_lines(each))) for each in bridges]
    return "\n\n".join(blocks) or "no bridge is configured"


def _bridges(broker: LocalBroker) -> list[Entry]:
    """Return the bridges of a gateway, each with its series."""
    with Conversation(broker) as conversation:
        bridges = conversation.rows("bridges", {}, MOST)
        series = conversation.rows("readings", {}, MOST)
    for each in bridges:
        names = (each["kind"], each["name"])
        each["series"] = [row for row in series if (row["kind"], row["name"]) == names]
    return bridges


def status_lines(bridge: Entry) -> Iterator[str]:
    """Yield a bridge's status for people."""
    place = bridge["place"]
    title = f"{bridge['kind']} {bridge['name']}" + (f" ({place})" if place else "")
    error = f": {bridge['error']}" if bridge["error"] else ""
    yield f"{title}: {bridge['state']}{error}, {_last_seen(bridge)}"
    counted = ", ".join(f"{number:,} {name}" for name, number in sorted(bridge["counted"].items()))
    if counted:
        yield f"  counted: {counted}"
    for source, text in bridge["troubles"].items():
        yield f"  trouble: {source}: {text}"
    for each in bridge["refused"]:
        often = f"{each['count']:,} times, last {spell_age(each['age'])} ago"
        yield f"  refused: {often}: {each['example']}"
    if bridge["series"]:
        yield from (f"  {line}" for line in table(list(map(_row, bridge["series"]))))


def _last_seen(bridge: Entry) -> str:
    if bridge["age"] is not None:
        return f"last received {spell_age(bridge['age'])} ago"
    if bridge.get("sent"):  # by a bridge without devices; an earlier gateway does not say it
        return f"{bridge['sent']:,} messages sent, the last {spell_age(bridge['sent_age'])} ago"
    return "nothing came yet"


def spell_age(seconds: float) -> str:
    """Return an age in words; a negative one is of a clock that was set back."""
    return spell_seconds(max(seconds, 0.0))


def _row(series: Entry) -> tuple[str, str, str, str]:
    """Return node, quantity with its instance, value with its unit, and age of a series."""
    name = "/".join(filter(None, (series["quantity"], series["instance"])))
    value = json.dumps(series["value"], ensure_ascii=False)
    shown = value if series["unit"] is None else f"{value} {series['unit']}"
    quality = f", {series['quality'].replace('_', ' ')}" if series["quality"] else ""
    return series["node"], name, shown, f"{spell_age(series['age'])} ago{quality}"


def describe(kind: BridgeKind) -> str:
    """Return the keys and figures of a kind."""
    return "".join(f"{line}\n" for line in (*_lines(kind), *_figures(kind)))


def describe_common() -> str:
    """Return the keys that every kind has."""
    return "\n".join(key_lines(BridgeSettings)) + "\n"


def _lines(kind: BridgeKind) -> Iterator[str]:
    yield f"`[[{kind.name}]]`: {kind.summary}."
    if kind.extra:
        yield f"It needs the extra `{kind.extra}`."
    yield ""
    yield from key_lines(kind.settings, frozenset(each.name for each in keys_of(BridgeSettings)))
    yield from _tables(kind.settings, kind.name)


def _figures(kind: BridgeKind) -> Iterator[str]:
    if kind.counters or kind.gauges:
        yield f"\nFigures below `$SYS/broker/tidegate/{kind.name}/`:\n"
        for name, meaning in kind.counters.items():
            yield f"- `{name}`: {meaning}"
        for name, meaning in kind.gauges.items():
            yield f"- `<bridge>/{name}`: {meaning}"


def _tables(settings: type, place: str) -> Iterator[str]:
    """Yield the tables in a table, each with a sentence and its keys."""
    for each in keys_of(settings):
        if each.table is not None:
            name = f"{place}.{each.name}"
            least = "1 to" if each.needed else "up to"
            yield f"\n`[[{name}]]`, {least} {each.many:,}: {_summary(each.table)}\n"
            yield from key_lines(each.table)
            yield from _tables(each.table, name)


def _summary(settings: type) -> str:
    return (settings.__doc__ or "").partition("\n")[0]
