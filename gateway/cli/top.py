"""`tidegate top`: a running gateway's load, and the busiest clients and topics."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.control_request import Conversation

SECONDS = 2
"""Seconds of a round, over which rates are measured."""

ONCE_SECONDS = 1
"""The same of the only round."""

ROWS = 10
"""Clients and topics that are shown of each, and bridges."""

FIGURES = ("cpu_percent", "messages_in", "messages_out", "bytes_in", "bytes_out", "evaluated")

Row = dict[str, Any]


def add_rounds(parser: argparse.ArgumentParser) -> None:
    """Add the options for the interval, and the number of rounds."""
    parser.add_argument("--once", action="store_true", help="print once and end")
    parser.add_argument(
        "--rows", type=int, default=ROWS, metavar="N", help=f"rows of each table ({ROWS})"
    )


def top(conversation: "Conversation", options: argparse.Namespace) -> int:
    """Print a round, or one after another until the process is interrupted."""
    seconds = ONCE_SECONDS if options.once else SECONDS
    while True:
        found = measure(conversation, seconds, options.rows)
        if options.json:
            indent = 2 if options.once else None
            print(json.dumps(found, indent=indent, ensure_ascii=False), flush=True)
        else:
            print("\n".join(top_lines(found)), flush=True)
        if options.once:
            return 0
        if not options.json:
            print()


def measure(conversation: "Conversation", seconds: int, rows: int) -> Row:
    """Return a gateway's load of the next seconds; `topics` is None if it remembers none."""
    request = {"sort": "rate", "state": "connected", "seconds": seconds, "limit": rows}
    clients = conversation.query("clients", request)
    series = conversation.query("series", {"figures": ",".join(FIGURES), "last": seconds})
    status = conversation.query("status", {})
    try:
        topics = conversation.query("topics", {"sort": "rate", "limit": rows})["rows"]
    except TidegateError:
        topics = None
    return {
        "time": clients["time"],
        "gateway": status["gateway"],
        "verdict": status["verdict"],
        **{name: _mean(values) for name, values in series["figures"].items()},
        **{name: status[name] for name in ("resident_bytes", "memory_bytes", "memory_limit")},
        # Of the moment when its rows were listed.
        **{name: clients[name] for name in ("connected", "offline")},
        "clients": clients["rows"],
        "topics": topics,
        "uplinks": status["uplinks"],
        "outbox": status["outbox"],
        "bridges": conversation.query("bridges", {"limit": rows})["rows"],
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values, None without any."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 1) if known else None


def top_lines(found: Row) -> Iterator[str]:
    """Yield a round for people."""
    from gateway.cli.operate import table, when
    from gateway.cli.subscribe import harmless
    from gateway.telemetry.card_life import spell_bytes

    def rate(name: str) -> str:
        return "?" if found[name] is None else f"{found[name]:,}/s"

    cpu = "?" if found["cpu_percent"] is None else f"{found['cpu_percent']:,} %"
    held = f"clients hold {spell_bytes(found['memory_bytes'])}"
    yield f"{when(found['time'])} {harmless(found['gateway'])}: {found['verdict']}"
    yield f"cpu         {cpu}; memory {spell_bytes(found['resident_bytes'])}, {held}"
    yield f"messages    in {rate('messages_in')}, out {rate('messages_out')}"
    yield f"bytes       in {rate('bytes_in')}, out {rate('bytes_out')}"
    yield f"clients     {found['connected']:,} connected, {found['offline']:,} offline"
    for each in found["uplinks"]:
        name = f"{each['name']} " if each["name"] else ""
        yield harmless(f"uplink      {name}{each['state']}, {each['waiting']:,} wait")
    for each in found["bridges"]:
        yield harmless(f"bridge      {each['kind']} {each['name']} {each['state']}")
    yield from table([("client", "address", "in", "out"), *map(_client, found["clients"])])
    if found["topics"]:
        yield from table([("topic", "rate", "messages"), *map(_topic, found["topics"])])
    elif found["topics"] is None:
        yield "topics are not remembered: [broker] remembered_topics is 0"


def _client(row: Row) -> Sequence[str]:
    rates = (row.get(name, 0.0) for name in ("received_rate", "sent_rate"))
    return (row["id"], row.get("address", "offline"), *(f"{each:,.1f}/s" for each in rates))


def _topic(row: Row) -> Sequence[str]:
    return row["topic"], f"{row['rate']:,}/s", f"{row['count']:,}"
