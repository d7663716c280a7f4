"""`tidegate channel`: the channels of a running gateway, and commands for them."""

import argparse
import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from gateway.cli.operate import table
from gateway.cli.parser import add_broker
from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.control_request import Conversation
    from gateway.cli.local_broker import LocalBroker
    from gateway.cli.parser import Commands
    from gateway.cli.uplink import Figures

COMMANDS = ("pause", "resume", "empty", "delete")
MOVES = ("move", "redrive")
QUERIES = ("peek", "consumers", *MOVES)
FILTER_COMMANDS = ("pause", "resume")
COLUMNS = ("state", "kind", "consumers", "depth", "in_flight", "oldest_seconds", "filter")
PEEK_COLUMNS = ("id", "queued_at", "attempts", "topic", "size", "payload")
CONSUMER_COLUMNS = ("client", "connected", "in_flight", "late", "used", "limit", "filter")
PEEKED = 10
PAYLOAD_SHOWN = 60
STEP, MOST = 1_000, 100_000_000
"""Messages that one request moves, and that all of them move at most."""

COUNT = "channels"
PAUSED_FILTERS = "channels_paused_filters"
FILTERS = (
    "$SYS/broker/tidegate/channels/#",
    f"$SYS/broker/tidegate/{PAUSED_FILTERS}",
    "$SYS/broker/tidegate/channels",
)

Channels = dict[str, "Figures"]


def add_channel(commands: "Commands") -> None:
    """Add the command `channel`."""
    channel = commands.add_parser("channel", help="list, create, pause, resume or empty channels")
    channel.add_argument(
        "action",
        choices=("list", "stats", "create", *QUERIES, *COMMANDS),
        help="what to do with the channel",
    )
    channel.add_argument("name", nargs="?", help="name of the channel; list needs none")
    channel.add_argument(
        "--filter",
        metavar="TOPIC",
        help="create: topic filter of the channel; pause, resume: topics, in all channels",
    )
    channel.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="create: KEY=VALUE of [[channel]]",
    )
    channel.add_argument("--to", metavar="NAME", help="move: name of the other channel")
    channel.add_argument("-n", "--count", type=int, help="messages (peek: 10; move, redrive: all)")
    channel.add_argument(
        "--json", action="store_true", help="list, stats, peek, consumers: print JSON"
    )
    add_broker(channel)
    channel.set_defaults(command=_channel)


def _channel(options: argparse.Namespace) -> int:
    from gateway.cli.control_request import ask_gateway
    from gateway.cli.local_broker import LocalBroker

    if options.name is not None and "://" in options.name and not options.url:
        options.url, options.name = options.name, None
    broker = LocalBroker.of(options)
    if options.action == "list":
        if options.name is not None:
            raise TidegateError(f"channel list takes no name: channel stats {options.name}")
        return _list(*read_channels(broker), as_json=options.json)
    if options.filter is not None and options.action != "create":
        return _change_filter(broker, options)
    if options.name is None:
        raise TidegateError(f"channel {options.action} needs the name of a channel")
    if options.action == "create":
        return _create(broker, options)
    if options.action in QUERIES:
        return _query(broker, options)
    found, _ = read_channels(broker)
    if options.name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise TidegateError(f"there is no channel {options.name!r}; there are: {known}")
    if options.action == "stats":
        return _stats(found[options.name], as_json=options.json)
    part = f"channel/{options.name}/{options.action}"
    ask_gateway(broker, part, "", f"did not {options.action} channel {options.name}")
    print(f"channel {options.name}: {options.action}")
    return 0


def _query(broker: "LocalBroker", options: argparse.Namespace) -> int:
    """Show messages or consumers of a channel, or move messages."""
    from gateway.cli.control_request import Conversation

    name, action, count = options.name, options.action, options.count
    if (action == "move") is not (options.to is not None):
        raise TidegateError("--to is the channel that move moves to")
    if count is not None and not 1 <= count <= MOST:
        raise TidegateError(f"--count is {count}, not 1 to {MOST:,}")
    with Conversation(broker) as conversation:
        if action in MOVES:
            moved, left = _move(conversation, options, count or MOST)
            print(f"channel {name}: {action} of {moved:,} messages; {left:,} wait there")
            return 0
        most = MOST if action == "consumers" else count or PEEKED
        rows = conversation.rows(f"channel/{action}", {"channel": name}, most)
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        columns = PEEK_COLUMNS if action == "peek" else CONSUMER_COLUMNS
        lines = [[_cell(row, each) for each in columns] for row in rows]
        print("\n".join(table([[each.replace("_", " ") for each in columns], *lines])))
    return 0


def _move(conversation: "Conversation", options: argparse.Namespace, count: int) -> tuple[int, int]:
    """Move up to `count` messages; return how many were moved, and how many wait there still."""
    request = {"channel": options.name} | ({"to": options.to} if options.to else {})
    moved = 0
    while True:
        step = min(count - moved, STEP)
        answer = conversation.query(f"channel/{options.action}", {**request, "count": step})
        moved += answer["moved"]
        if answer["moved"] < step or moved >= count:
            return moved, answer["left"]


def _cell(row: dict[str, object], column: str) -> str:
    """Return a cell of a message or a consumer."""
    value = row.get(column)
    if column == "payload":
        value = value if value is not None else row["payload_base64"]
        return repr(str(value)[:PAYLOAD_SHOWN])[1:-1]
    if column == "queued_at" and isinstance(value, int):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value / 1000))
    return str(value)


def _create(broker: "LocalBroker", options: argparse.Namespace) -> int:
    """Create a channel; its keys are checked before the gateway is asked."""
    from gateway.app.channels import read_channel
    from gateway.cli.control_request import ask_gateway
    from gateway.config.load import toml_value

    pairs = (each.partition("=") for each in options.set)
    keys = {name: toml_value(value) for name, _, value in pairs}
    if options.filter is not None:
        keys["filter"] = options.filter
    _, text = read_channel(options.name, json.dumps(keys))
    name = options.name
    refused = f"did not create channel {name}"
    ask_gateway(broker, f"channel/{name}/create", text, refused)
    print(f"channel {name}: create")
    return 0


def _change_filter(broker: "LocalBroker", options: argparse.Namespace) -> int:
    """Pause or resume the messages of a topic filter in all channels."""
    from gateway.cli.control_request import ask_gateway

    action, topic_filter = options.action, options.filter
    if action not in FILTER_COMMANDS or options.name is not None:
        raise TidegateError("--filter is for pause and resume, without the name of a channel")
    refused = f"did not {action} topic filter {topic_filter!r}"
    ask_gateway(broker, f"channel/{action}", topic_filter, refused)
    print(f"topic filter {topic_filter}: {action}")
    return 0


def read_channels(broker: "LocalBroker") -> tuple[Channels, list[str]]:
    """Return the figures of all channels by name, and the paused topic filters.

    Raises TidegateError without an answer.
    """
    from gateway.cli.uplink import figures

    found: Channels = defaultdict(dict)
    figures_by_path = figures(broker, FILTERS, COUNT)
    for path, value in figures_by_path.items():
        name, _, figure = path.removeprefix("channels/").rpartition("/")
        if path not in (COUNT, PAUSED_FILTERS):
            found[name][figure] = value
    return dict(found), json.loads(str(figures_by_path.get(PAUSED_FILTERS, "[]")))


def _list(found: Channels, paused: list[str], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))
        return 0
    rows = [("channel", *(each.replace("_", " ") for each in COLUMNS))]
    rows += [
        (name, *(_figure(figures, each) for each in COLUMNS))
        for name, figures in sorted(found.items())
    ]
    print("\n".join(table(rows)))
    if paused:
        print(f"paused topic filters: {', '.join(paused)}")
    return 0


def _figure(figures: "Figures", name: str) -> str:
    """Return a figure; the depth of a channel with priorities, with that of its levels."""
    text = str(figures.get(name, ""))
    if name == "depth" and "depth_high" in figures:
        text += f" ({figures['depth_high']} high, {figures.get('depth_low', 0)} low)"
    return text


def _stats(figures: "Figures", *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(figures, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        for name, value in figures.items():
            print(f"{name.replace('_', ' '):16}{value}")
    return 0
