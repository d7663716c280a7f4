"""`tidegate bridges status`: the readings and faults of a running gateway's bridges."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.app.uplink.headroom import spell_seconds
from gateway.cli.control_request import Conversation
from gateway.cli.local_broker import LocalBroker
from gateway.cli.operate import table
from gateway.cli.subscribe import harmless
from gateway.errors import TidegateError

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
    blocks = ["\n".join(map(harmless, lines(each))) for each in bridges]
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


def lines(bridge: Entry) -> Iterator[str]:
    """Yield a bridge's status for people."""
    place = bridge["place"]
    title = f"{bridge['kind']} {bridge['name']}" + (f" ({place})" if place else "")
    error = f": {bridge['error']}" if bridge["error"] else ""
    age = bridge["age"]
    last_seen = "nothing came yet" if age is None else f"last heard {spell_age(age)} ago"
    yield f"{title}: {bridge['state']}{error}, {last_seen}"
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
