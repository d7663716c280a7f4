"""`tidegate rule try` and `apply`: an edited uplink rule on live messages, and in the file."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli.user import CONFIG
from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.app.query.rule_edit import RuleChange
    from gateway.cli.control_request import Conversation
    from gateway.cli.local_broker import LocalBroker

NEW = "new"
"""Stands for a new rule."""

POLL_SECONDS = 1.0
"""Seconds between two queries of a trial."""

SECONDS = 60
"""How long a trial lasts."""

SHOWN_LETTERS = 60
"""Characters of a payload in a line."""

TEXTS = ("topic", "where", "target", "stream")
KEYS = (*TEXTS, "lane", "retain", "qos", "commit_within", "uplink")
SIDES = ("old", "new")

Row = dict[str, Any]


def add_edit(parser: argparse.ArgumentParser) -> None:
    """Add the options for the edit."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="RULE",
        help="name or number of the rule as in `rule list`, after the name of its uplink if there"
        f" are several; `{NEW}` adds one",
    )
    parser.add_argument("--topic", metavar="FILTER", help="topic filter of the rule")
    parser.add_argument("--where", metavar="EXPR", help="expression of the rule")
    parser.add_argument("--target", metavar="TOPIC", help="topic at the fleet")
    parser.add_argument("--stream", metavar="NAME", help="stream of the rule")
    parser.add_argument("--lane", choices=("live", "backlog"), help="lane of the messages")
    parser.add_argument("--retain", choices=("true", "false"), help="retain at the fleet")
    parser.add_argument("--qos", type=int, choices=(0, 1), help="QoS at the fleet")
    parser.add_argument(
        "--commit-within", type=float, metavar="SECONDS", help="in place of that of the uplink"
    )
    parser.add_argument(
        "--uplink", action="append", metavar="NAME", help="name of an uplink of the rule"
    )
    parser.add_argument("--unset", action="append", default=[], choices=KEYS, help="remove a key")
    parser.add_argument("--at", type=int, metavar="N", help="position of a new rule (at the end)")
    parser.add_argument("--remove", action="store_true", help="remove the rule")


def add_seconds(parser: argparse.ArgumentParser) -> None:
    """Add the option for the duration of a trial."""
    help_text = f"seconds, 1 to 3600 ({SECONDS})"
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="N", help=help_text)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option for the edited file."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"configuration file (the running gateway's, or {CONFIG})",
    )


def request_of(options: argparse.Namespace) -> Row:
    """Return the edit in the form of the query; raise TidegateError for more than two words."""
    *uplink, rule = options.words
    if len(uplink) > 1:
        raise TidegateError(f"one uplink and one rule, not {' '.join(options.words)}")
    keys = {name: getattr(options, name) for name in KEYS if getattr(options, name) is not None}
    if "retain" in keys:
        keys["retain"] = keys["retain"] == "true"
    request: Row = {"set": {**keys, **dict.fromkeys(options.unset)}, "remove": options.remove}
    if uplink:
        request["uplink"] = uplink[0]
    if rule != NEW:
        request["rule"] = rule
    if options.at is not None:
        request["at"] = options.at
    return request


def try_rule(conversation: "Conversation", options: argparse.Namespace) -> int:
    """Try an edit until its time is over or it is interrupted; print differences, then a table.

    With --json only the whole answer is printed, at the end.
    """
    request = {**request_of(options), "seconds": options.seconds}
    trial = conversation.query("rule/try", request)["trial"]
    shown = 0
    try:
        while trial["state"] == "running":
            time.sleep(POLL_SECONDS)
            trial = conversation.query("rule/trial", {"name": trial["name"]})["trial"]
            if not options.json:
                shown = _show_differences(trial, shown)
    except KeyboardInterrupt:
        trial = conversation.query("rule/trial", {"name": trial["name"], "end": True})["trial"]
    if options.json:
        from json import dumps

        print(dumps(trial, indent=2, ensure_ascii=False))
    else:
        print("\n".join(trial_lines(trial)))
    return 0


def _show_differences(trial: Row, shown: int) -> int:
    """Print the differences beyond number `shown`; return the number of the last one."""
    for each in trial["differences"]:
        if each["number"] > shown:
            if each["number"] > shown + 1:
                print(f"… {each['number'] - shown - 1:,} more")
            shown = each["number"]
            print(difference_line(each), flush=True)
    return shown


def difference_line(row: Row) -> str:
    """Return a message that only one of the rules took as a line."""
    from gateway.cli.operate import when
    from gateway.cli.subscribe import harmless

    payload = row.get("payload", f"{row['size']:,} bytes, no text")[:SHOWN_LETTERS]
    by = "edited only" if row["taken_by"] == "new" else "present only"
    return harmless(f"{when(row['time'])} {by:12} {row['topic']}  {payload}")


def trial_lines(trial: Row) -> Iterator[str]:
    """Yield a trial's findings, both rules side by side."""
    from gateway.cli.operate import table

    sides = [trial[side] for side in SIDES]
    rows = [["", "present", "edited"]]
    for name in ("rule", "topic", "where", "target", "stream", "lane", "retain", "qos"):
        cells = ["" if side is None else str(side[name] or "") for side in sides]
        if name in ("rule", "topic", "where") or cells[0] != cells[1]:
            rows.append([name, *cells])
    for name in ("messages", "bytes", "bytes_a_day", "null"):
        cells = ["" if side is None else f"{side[name]:,}" for side in sides]
        rows.append([name.replace("_", " "), *cells])
    rows.append(["largest gap", *map(_gap, sides)])
    rows.append(["taken by it only", f"{trial['only_old']:,}", f"{trial['only_new']:,}"])
    yield from table(rows)
    summary = f"{trial['messages']:,} messages on their topics in {trial['elapsed_seconds']:,} s"
    yield f"{summary}; {_saving(*sides)}" + (f" ({trial['reason']})" if trial["reason"] else "")


def _gap(side: Row | None) -> str:
    if side is None or side["gap"] is None:
        return ""
    return f"{side['gap']['seconds']:,.1f} s, {side['gap']['topic']}"


def _saving(old: Row | None, new: Row | None) -> str:
    from gateway.telemetry.card_life import spell_bytes

    before, after = (0 if side is None else side["bytes_a_day"] for side in (old, new))
    if before == after:
        return "as many bytes a day"
    word = "fewer" if after < before else "more"
    return f"{spell_bytes(abs(after - before))} a day {word}"


def apply_rule(options: argparse.Namespace) -> int:
    """Write an edit into the configuration file, and have a running gateway read it again."""
    from gateway.app.query.rule_edit import RuleChange
    from gateway.cli.control_request import Conversation
    from gateway.cli.local_broker import LocalBroker

    change = RuleChange(**request_of(options))
    broker = LocalBroker.of(options)
    try:
        conversation = Conversation(broker)
    except TidegateError as error:
        if options.url is not None:
            raise
        _write(options.config or CONFIG, change)
        print(f"the next start reads it: {error}")
        return 0
    with conversation:
        read = conversation.query("rules", {"limit": 1}).get("file")
        path = options.config or _own_file(broker, read)
        name = _write(path, change)
        if read is None or Path(read).resolve() != path.resolve():
            print(f"the gateway at {broker.name} reads {read}, not this file: it is not reloaded")
            return 1
        return _reload(conversation, name)


def _own_file(broker: "LocalBroker", read: str | None) -> Path:
    from gateway.cli.local_broker import is_here

    if read is None or not is_here(broker.url):
        file = f"the file that the gateway at {broker.url} reads"
        raise TidegateError(f"--config must say which file is edited: {file} is not here")
    return Path(read)


def _write(path: Path, change: "RuleChange") -> str | None:
    """Write the edit and print the differences; return the rule's new name."""
    from gateway.cli.rule_file import write_rule
    from gateway.cli.subscribe import harmless

    edit, lines = write_rule(path, change)
    for line in lines:
        print(harmless(line))
    print(f"{path}: {'written' if lines else 'is so already'}")
    return None if edit.new is None else edit.new.name


def _reload(conversation: "Conversation", name: str | None) -> int:
    from gateway.cli.operate import RELOAD_SECONDS, reload_lines, reload_status

    answer = conversation.query("reload", {}, RELOAD_SECONDS)
    print("\n".join(reload_lines(answer)))
    status = reload_status(answer)
    if status == 0 and name is not None:
        rows = conversation.rows("rules", {}, 1_000)
        if name not in [row["rule"] for row in rows]:
            print(f"the gateway has no rule {name}: does a variable of its service set the rules?")
            return 1
    return status
