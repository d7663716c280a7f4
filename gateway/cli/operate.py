"""Commands for a running gateway: `status`, `client`, `queue`, `rule`, `events`, others."""

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.cli.parser import add_broker
from gateway.cli.rule import add_config, add_edit, add_seconds, apply_rule, try_rule
from gateway.cli.top import add_rounds, top
from gateway.errors import TidegateError
from gateway.settings.log import PARTS, Level

if TYPE_CHECKING:
    from gateway.cli.control_request import Conversation
    from gateway.cli.parser import Commands

SORTS = (
    "id",
    "rate",
    "received_rate",
    "sent_rate",
    "received",
    "sent",
    "waiting",
    "inflight",
    "since",
)
KINDS = (
    "start",
    "stop",
    "alarm",
    "link",
    "refused",
    "ended",
    "flapping",
    "shared",
    "denied",
    "order",
    "reload",
)
TOPIC_SORTS = ("topic", "rate", "silent_seconds", "count", "bytes")
QUEUES = ("uplink", "channel", "delayed", "session")
LEVELS = "debug, info, warning or error, until the next start or reload"

MOST = 1_000
"""Rows that a list shows, unless `--limit` changes that."""

VALUE_LETTERS = 40
"""Characters of a payload in a list."""

RATE_SECONDS = 1.0
"""Seconds over which rates are measured."""

FOLLOW_SECONDS = 2.0
"""Seconds between two checks for new events."""

RELOAD_SECONDS = 60.0
"""Seconds that a reload may take: links and devices are closed in order."""

REFUSED, RESTART_NEEDED = 1, 3
"""Exit statuses of `reload` that changed nothing, or not all; without an answer it is 2."""

EXIT = {"well": 0, "attention": 1, "trouble": 1}
"""Exit statuses of `status`, by the verdict; without an answer it is 2."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGO = re.compile(r"(\d{1,6})([smhd])")

Row = dict[str, Any]


def add_operate(commands: "Commands") -> None:
    """Add the commands."""
    status = commands.add_parser("status", help="report whether a running gateway is well")
    _finish(status, _status)
    _add_client(commands)
    queue = commands.add_parser("queue", help="list the queues and how much waits in each")
    verbs = queue.add_subparsers(required=True, metavar="list")
    found = verbs.add_parser("list", help="uplinks, channels, delayed messages, sessions")
    found.add_argument(
        "--kind", choices=("all", *QUEUES), default="all", help="kind of queue (all)"
    )
    _finish_list(found, _queue_list)
    _add_rule(commands)
    _add_topic(commands)
    _add_log(commands)
    load = commands.add_parser("top", help="show the busiest clients and topics every 2 s")
    add_rounds(load)
    _finish(load, top)
    reload = commands.add_parser(
        "reload", help="have a running gateway apply its changed configuration"
    )
    _finish(reload, _reload)
    events = commands.add_parser("events", help="list events, the newest last")
    events.add_argument(
        "--since", metavar="WHEN", help="start: 15m, 2h or 3d ago, or '2026-11-28 07:00'"
    )
    events.add_argument(
        "--kind", choices=("all", *KINDS), default="all", help="kind of event (all)"
    )
    events.add_argument("--follow", action="store_true", help="continue with new events")
    _finish_list(events, _events)


def _add_client(commands: "Commands") -> None:
    client = commands.add_parser("client", help="list, show or disconnect clients")
    verbs = client.add_subparsers(required=True, metavar="list|show|kick")
    found = verbs.add_parser("list", help="sessions and connected clients")
    found.add_argument(
        "--sort", choices=SORTS, default="id", help="figure to sort by, the largest first (id)"
    )
    found.add_argument(
        "--match", metavar="PATTERN", help="client identifier; * stands for any characters"
    )
    found.add_argument("--user", metavar="NAME", help="user name; '' for clients without one")
    found.add_argument(
        "--state",
        choices=("all", "connected", "offline"),
        default="all",
        help="only connected or only offline clients",
    )
    _finish_list(found, _client_list)
    show = verbs.add_parser("show", help="show one client with its subscriptions and losses")
    show.add_argument("id", metavar="ID", help="client identifier")
    _finish(show, _client_show)
    kick = verbs.add_parser("kick", help="disconnect a client")
    kick.add_argument("id", metavar="ID", help="client identifier")
    kick.add_argument(
        "--reason", metavar="TEXT", help="reason for the client, the log and the events"
    )
    kick.add_argument(
        "--drop", action="store_true", help="also end its session and delete its queue"
    )
    _finish(kick, _client_kick)


def _add_rule(commands: "Commands") -> None:
    rule = commands.add_parser("rule", help="list the uplink rules, try an edited one, apply it")
    verbs = rule.add_subparsers(required=True, metavar="list|try|apply")
    _finish_list(verbs.add_parser("list", help="list the rules and their counts"), _rule_list)
    edited = verbs.add_parser(
        "try", help="run an edited rule beside the current one on live messages"
    )
    add_edit(edited)
    add_seconds(edited)
    _finish(edited, try_rule)
    applied = verbs.add_parser(
        "apply", help="write an edited rule to the configuration file and reload it"
    )
    add_edit(applied)
    add_config(applied)
    add_broker(applied)
    applied.set_defaults(command=apply_rule)


def _add_topic(commands: "Commands") -> None:
    topic = commands.add_parser("topic", help="list topics with their last values, or show one")
    verbs = topic.add_subparsers(required=True, metavar="list|show")
    found = verbs.add_parser("list", help="list topics with their last values")
    found.add_argument("--match", metavar="FILTER", help="topic filter")
    found.add_argument("--silent", action="store_true", help="only silent topics")
    found.add_argument(
        "--sort", choices=TOPIC_SORTS, default="topic", help="figure to sort by, the largest first"
    )
    _finish_list(found, _topic_list)
    show = verbs.add_parser("show", help="show the last value and the receivers of one topic")
    show.add_argument("topic", metavar="TOPIC", help="topic name")
    _finish(show, _topic_show)


def _add_log(commands: "Commands") -> None:
    log = commands.add_parser("log", help="show or change a running gateway's log levels")
    verbs = log.add_subparsers(required=True, metavar="level")
    level = verbs.add_parser("level", help="show the levels, or set that of a part")
    level.add_argument("part", nargs="?", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    level.add_argument("level", nargs="?", choices=[*Level], metavar="LEVEL", help=LEVELS)
    _finish(level, _log_level)


def _finish(parser: argparse.ArgumentParser, run: Callable[[Any, argparse.Namespace], int]) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_broker(parser)

    def command(options: argparse.Namespace) -> int:
        from gateway.cli.control_request import Conversation
        from gateway.cli.local_broker import LocalBroker

        with Conversation(LocalBroker.of(options)) as conversation:
            return run(conversation, options)

    parser.set_defaults(command=command)


def _finish_list(
    parser: argparse.ArgumentParser, run: Callable[[Any, argparse.Namespace], int]
) -> None:
    parser.add_argument(
        "--limit", type=_number, default=MOST, metavar="N", help=f"rows, at most ({MOST})"
    )
    _finish(parser, run)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000000")
    return int(text)


def _status(conversation: "Conversation", options: argparse.Namespace) -> int:
    status = conversation.query("status", {})
    _show(options, status, status_lines(status))
    return EXIT[status["verdict"]]


def status_lines(status: Row) -> list[str]:
    """Return what a person wants to know first, a line for each thing."""
    from gateway.app.uplink.headroom import spell_seconds
    from gateway.telemetry.card_life import spell_bytes

    reasons = "; ".join(status["troubles"])
    up = f"{status['gateway']}, up {spell_seconds(status['uptime_seconds'])}"
    parts = [(status["verdict"], f"{reasons} ({up})" if reasons else up)]
    parts += [("uplink", _uplink(each)) for each in status["uplinks"]] or [("uplink", "none")]
    parts.append(("waiting", _waiting(status)))
    if status["channels_waiting"]:
        parts.append(("channels", f"{status['channels_waiting']:,} messages wait"))
    parts += [("channel", _stuck(each)) for each in status["channels_stuck"]]
    clients, free = status["clients"], status["free_bytes"]
    parts.append(("clients", f"{clients['connected']:,} connected, {clients['offline']:,} offline"))
    parts.append(("disk", "in memory only" if free is None else f"{spell_bytes(free)} free"))
    held, limit = status["memory_bytes"], status["memory_limit"]
    parts.append(("memory", f"clients hold {spell_bytes(held)} of {spell_bytes(limit)}"))
    parts += [("alarm", _alarm(each)) for each in status["alarms"]] or [("alarms", "none")]
    parts += [("silent", _silent(each)) for each in status["silent"]] or [("silent", "none")]
    parts.append(("version", f"tidegate {status['version']} ({status['build']})"))
    return [f"{name:12}{_line(text)}" for name, text in parts]


def _waiting(status: Row) -> str:
    from gateway.app.uplink.headroom import spell_seconds
    from gateway.telemetry.card_life import spell_bytes

    outbox, survives = status["outbox"], status["survives_seconds"]
    if outbox is None:
        return "nothing is sent to a fleet"
    text = f"{outbox['messages']:,} messages, {spell_bytes(outbox['bytes'])}"
    if outbox["oldest_seconds"] is not None:
        text += f", the oldest for {spell_seconds(outbox['oldest_seconds'])}"
    return (
        text if survives is None else f"{text}; enough for an outage of {spell_seconds(survives)}"
    )


def _stuck(channel: Row) -> str:
    from gateway.app.uplink.headroom import spell_seconds

    name, oldest = channel["name"], spell_seconds(channel["oldest_seconds"])
    counts = f"{channel['depth']:,} wait, {channel['inflight']:,} unacknowledged"
    return f"{name} {channel['state']}, {channel['consumers']:,} subscribed, {counts} for {oldest}"


def _alarm(alarm: Row) -> str:
    return f"{alarm['name']}, since {when(alarm['since'])}: {alarm['text']}"


def _silent(bridge: Row) -> str:
    return f"{bridge['kind']} {bridge['name']} {bridge['state']}: {bridge['error']}"


def _uplink(uplink: Row) -> str:
    from gateway.app.uplink.headroom import spell_seconds

    name = f"{uplink['name']} " if uplink["name"] else ""
    error = f" ({uplink['error']})" if uplink["error"] else ""
    seconds = uplink.get("next_attempt_seconds")
    attempt = "" if seconds is None else f", next try in {spell_seconds(seconds)}"
    waiting = f"{uplink['waiting']:,} wait, to {uplink['destination']}"
    return f"{name}{uplink['state']}{error}{attempt}, {waiting}"


def _client_list(conversation: "Conversation", options: argparse.Namespace) -> int:
    request: Row = {"sort": options.sort, "state": options.state}
    if options.sort.endswith("rate"):
        request["seconds"] = RATE_SECONDS
    for key in ("match", "user"):
        if getattr(options, key) is not None:
            request[key] = getattr(options, key)
    found = conversation.rows("clients", request, options.limit)
    columns = ["client", "user", "address", "mqtt", "since", "waiting", "inflight", "in", "out"]
    rows = [_client_cells(each) for each in found]
    _show(options, found, [*table([columns, *rows]), *_notes(found)])
    return 0


def _client_cells(row: Row) -> list[str]:
    since = when(row.get("since") or row.get("disconnected"))
    rated = "received_rate" in row
    return [
        row["id"],
        row["user"] or "",
        row.get("address", "offline"),
        row.get("version", ""),
        since,
        f"{row['waiting']:,}",
        f"{row['inflight']:,}",
        f"{row['received_rate']:,.1f}/s" if rated else f"{row.get('received', 0):,}",
        f"{row['sent_rate']:,.1f}/s" if rated else f"{row.get('sent', 0):,}",
    ]


def _notes(found: Sequence[Row]) -> Iterator[str]:
    for row in found:
        if row["shared_identifier"]:
            yield f"{_line(row['id'])}: probably two devices use this identifier"


def _client_show(conversation: "Conversation", options: argparse.Namespace) -> int:
    answer = conversation.query("client", {"id": options.id})
    _show(options, answer, list(client_lines(answer)))
    return 0


def client_lines(answer: Row) -> Iterator[str]:
    """Yield all that is known of a client, for people."""
    row = dict(answer["client"] or {})
    if not row:
        yield "it is not here and has no session"
    for name, value in row.items():
        shown = when(value) if name in ("since", "disconnected") else value
        yield f"{name.replace('_', ' '):18}{_line(_spelled(shown))}"
    for name, value in (answer.get("aliases") or {}).items():
        yield f"{'aliases ' + name:18}{value:,}"
    if answer.get("oldest_seconds") is not None:
        yield f"{'oldest waits':18}{answer['oldest_seconds']:,} s"
    for name, value in (answer.get("drops") or {}).items():
        yield f"{'lost, ' + name.replace('_', ' '):26}{value:,}"
    for each in answer.get("subscriptions", ()):
        where = f" $where {each['where']}: {each['passed']:,} passed" if "where" in each else ""
        every = f", each {each['every_ms']:,} ms" if "every_ms" in each else ""
        yield f"{'subscription':18}{_line(each['filter'])}, QoS {each['qos']}{every}{_line(where)}"
    for end in answer["ends"]:
        text = (
            f"{when(end['time'])} from {end['address']} after {end['seconds']:,} s: {end['reason']}"
        )
        yield f"{'ended':18}{_line(text)}"


def _client_kick(conversation: "Conversation", options: argparse.Namespace) -> int:
    if options.drop:
        answer = conversation.query("session/drop", {"id": options.id})
        text = f"session {options.id} is gone, and {answer['messages']:,} messages with it"
    else:
        request = {"id": options.id, "reason": options.reason}
        answer = conversation.query("client/disconnect", request)
        text = f"client {options.id} at {answer['address']} is disconnected"
    _show(options, answer, [_line(text)])
    return 0


def _queue_list(conversation: "Conversation", options: argparse.Namespace) -> int:
    request = {"kind": options.kind, "seconds": RATE_SECONDS}
    found = conversation.rows("queues", request, options.limit)
    columns = [
        "kind",
        "name",
        "state",
        "depth",
        "inflight",
        "bytes",
        "oldest",
        "in",
        "out",
        "empty in",
    ]
    _show(options, found, table([columns, *map(_queue_cells, found)]))
    return 0


def _queue_cells(row: Row) -> list[str]:
    from gateway.app.uplink.headroom import spell_seconds

    def seconds(name: str) -> str:
        value = row.get(name)
        return "" if value is None else spell_seconds(value)

    def rate(name: str) -> str:
        return f"{row[name]:,.1f}/s" if name in row else ""

    return [
        row["kind"],
        row["name"],
        row.get("state", ""),
        f"{row['depth']:,}",
        f"{row['inflight']:,}" if "inflight" in row else "",
        "" if row["bytes"] is None else f"{row['bytes']:,}",
        seconds("oldest_seconds"),
        rate("in_rate"),
        rate("out_rate"),
        seconds("empty_seconds"),
    ]


def _rule_list(conversation: "Conversation", options: argparse.Namespace) -> int:
    found = conversation.rows("rules", {}, options.limit)
    columns = ["rule", "uplink", "topic", "evaluated", "passed", "null", "µs", "where"]
    _show(options, found, table([columns, *map(_rule_cells, found)]) if found else ["no rule"])
    return 0


def _rule_cells(row: Row) -> list[str]:
    counters = row["counters"]
    counts = (f"{counters.get(name, 0):,}" for name in ("evaluated", "passed", "null"))
    microseconds = str(counters.get("microseconds", ""))
    uplinks = ",".join(row["uplinks"])
    return [row["rule"], uplinks, row["topic"], *counts, microseconds, row["where"] or ""]


def _reload(conversation: "Conversation", options: argparse.Namespace) -> int:
    answer = conversation.query("reload", {}, RELOAD_SECONDS)
    _show(options, answer, list(reload_lines(answer)))
    return reload_status(answer)


def reload_status(answer: Row) -> int:
    """Return the exit status for a reload's result."""
    if answer["refused"]:
        return REFUSED
    return RESTART_NEEDED if answer["restart"] else 0


def reload_lines(answer: Row) -> Iterator[str]:
    """Yield the result of each change of a reload, for people."""
    for each in answer["refused"]:
        yield f"{'refused':16}{_line(each['error'])}"
    for each in answer["changed"]:
        yield f"{'changed':16}{_line(_change(each))}"
    for each in answer["restart"]:
        yield f"{'needs a restart':16}{_line(_change(each))} ({_line(each['reason'])})"
    for each in answer["files"]:
        yield f"{'changed':16}{_line(each)}"
    for each in answer["warnings"]:
        yield f"{'warning':16}{_line(each)}"
    for what, count in answer["counts"].items():
        if count > len(answer[what]):
            yield f"{what:16}{count - len(answer[what]):,} more"
    if not (answer["refused"] or answer["changed"] or answer["restart"] or answer["files"]):
        yield f"nothing has changed in {_line(answer['file'])}"


def _change(row: Row) -> str:
    old, new = row["old"], row["new"]
    if isinstance(old, dict) or isinstance(new, dict):
        return f"{row['key']} is {'new' if old is None else 'gone'}"
    shown = (json.dumps(each, ensure_ascii=False) for each in (old, new))
    return f"{row['key']}: {' -> '.join(shown)}"


def _log_level(conversation: "Conversation", options: argparse.Namespace) -> int:
    request = {} if options.part is None else {"part": options.part, "level": options.level}
    levels = conversation.query("log/level", request)["levels"]
    shown = [(part, level or "as all") for part, level in levels.items()]
    _show(options, levels, table([("part", "level"), *shown]))
    return 0


def _topic_list(conversation: "Conversation", options: argparse.Namespace) -> int:
    request: Row = {"sort": options.sort, "state": "silent" if options.silent else "all"}
    if options.match is not None:
        request["match"] = options.match
    found = conversation.rows("topics", request, options.limit)
    columns = ["topic", "value", "age", "every", "rate", "messages", "publisher"]
    _show(options, found, table([columns, *map(_topic_cells, found)]))
    return 0


def _topic_cells(row: Row) -> list[str]:
    from gateway.app.uplink.headroom import spell_seconds

    every = row["interval_seconds"]
    sign = "! " if row["silent"] else ""
    return [
        f"{sign}{row['topic']}",
        _value(row)[:VALUE_LETTERS],
        spell_seconds(row["silent_seconds"]),
        "" if every is None else spell_seconds(every) if every >= 1 else f"{every:.3g} s",
        f"{row['rate']:,}/s",
        f"{row['count']:,}",
        row["publisher"] or "the gateway",
    ]


def _value(row: Row) -> str:
    return str(row.get("payload", f"{row['size']:,} bytes, no text"))


def _topic_show(conversation: "Conversation", options: argparse.Namespace) -> int:
    answer = conversation.query("topic", {"topic": options.topic})
    _show(options, answer, list(topic_lines(answer)))
    return 0


def topic_lines(answer: Row) -> Iterator[str]:
    """Yield all that is known of a topic, for people."""
    row = answer["topic"]
    if row is None:
        reason = "had no message" if answer["remembered"] else "[broker] remembered_topics is 0"
        yield f"its last message is unknown: {reason}"
    else:
        yield f"{'value':18}{_line(_value(row))}"
        for name in ("time", "size", "qos", "publisher", "count", "interval_seconds", "rate"):
            shown = when(row[name]) if name == "time" else _spelled(row[name])
            yield f"{name.replace('_', ' '):18}{_line(shown)}"
        yield f"{'silent':18}{'yes' if row['silent'] else 'no'}, {row['silent_seconds']:,} s"
    if answer["retained"] is not None:
        yield f"{'retained':18}{_line(_value(answer['retained']))}"
    yield f"{'receivers':18}{_line(', '.join(answer['receivers']) or 'none that get all of it')}"
    if answer["filtered"]:
        yield f"{'perhaps':18}{_line(', '.join(answer['filtered']))}, by $where or group"


def _events(conversation: "Conversation", options: argparse.Namespace) -> int:
    request: Row = {"kind": options.kind}
    if options.since is not None:
        request["since"] = since(options.since, time.time())
    last = 0
    while True:
        try:
            found = conversation.rows("events", {**request, "after": last}, options.limit)
        except TidegateError:
            if not (last and options.follow):
                raise
            found = []  # it starts again: paho connects once it is back
        for event in reversed(found):
            print(
                json.dumps(event, ensure_ascii=False) if options.json else event_line(event),
                flush=True,
            )
        last = max([last, *(event["id"] for event in found)])
        if not options.follow:
            return 0
        request.pop("since", None)
        time.sleep(FOLLOW_SECONDS)


def event_line(event: Row) -> str:
    """Return an event as a line."""
    until = event["until"]
    count = f" ({event['count']:,} times, last {when(until)})" if event["count"] > 1 else ""
    lasts = " (lasts)" if until is None and event["kind"] != "start" else ""
    if until is not None and event["kind"] in ("alarm", "link"):
        lasts = f" (until {when(until)})"
    text = f"{event['kind']} {event['subject']}: {event['text']}{count}{lasts}"
    return f"{when(event['time'])} {event['severity']:8}{_line(text)}"


def since(text: str, now: float) -> int:
    """Return a time in ms since 1970; raise TidegateError for an invalid text."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, round(1000 * (now - int(ago[1]) * UNITS[ago[2]])))
    try:
        return max(0, round(1000 * datetime.fromisoformat(text).timestamp()))
    except (ValueError, OverflowError, OSError):
        allowed = "90s, 15m, 2h or 3d ago, or a time such as '2026-11-28 07:00'"
        raise TidegateError(f"--since {text!r} is not {allowed}") from None


def when(milliseconds: int | None) -> str:
    """Return a time for people, "" for none."""
    if milliseconds is None:
        return ""
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    shown = [[_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in shown) for index in range(len(shown[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def _show(options: argparse.Namespace, answer: object, lines: Sequence[str]) -> None:
    if options.json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        print("\n".join(lines))


def _spelled(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _line(text: str) -> str:
    """Return a text in one line that is harmless on a terminal."""
    from gateway.cli.subscribe import harmless

    return harmless(text)
