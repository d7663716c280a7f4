"""`tidegate where` and `tidegate why`: test filters, and explain the outcome of a message."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.own_gateway import FOLDERS
from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.parser import Commands

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = re.compile(r"([0-9a-f]{10})\.([A-Za-z0-9_-]{1,16})\.([0-9]{1,18})", re.ASCII)


def add_where(commands: "Commands") -> None:
    """Add the commands `where` and `why`."""
    where = commands.add_parser("where", help="check, explain and test $where expressions")
    actions = where.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check an expression")
    _add_expression(check)
    check.add_argument(
        "--rule", action="store_true", help="allow functions of uplink rules that remember"
    )
    check.set_defaults(command=_check)
    explain = actions.add_parser("explain", help="show the value of each part for a message")
    _add_expression(explain)
    explain.add_argument(
        "--message",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON file of the message, or - for standard input",
    )
    explain.set_defaults(command=_explain)
    test = actions.add_parser("test", help="run an expression on the messages of the history")
    _add_expression(test)
    test.add_argument("--topic", default="#", metavar="FILTER", help="topic filter (#)")
    test.add_argument(
        "--last", type=_duration, default="1h", metavar="TIME", help="length of time: 90s, 2h, 7d"
    )
    _add_data(test)
    test.set_defaults(command=_test)
    vectors = actions.add_parser("vectors", help="run a file of test vectors")
    vectors.add_argument(
        "file", type=Path, metavar="FILE", help="test vectors, a JSON object a line"
    )
    vectors.set_defaults(command=_vectors)
    why = commands.add_parser("why", help="explain why a message did or did not arrive")
    which = why.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "number",
        metavar="EPOCH.STREAM.NUMBER",
        type=_number,
        nargs="?",
        help="seq of the message",
    )
    which.add_argument(
        "--message",
        type=Path,
        metavar="FILE",
        help="JSON file of a message that was not sent, or -",
    )
    which.add_argument("--topic", metavar="TOPIC", help="explain the last message of this topic")
    _add_data(why)
    why.set_defaults(command=_why)


def _add_expression(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression",
        metavar="EXPR",
        type=_expression,
        help="condition, such as 'payload.value > 30'",
    )


def _add_data(parser: argparse.ArgumentParser) -> None:
    folders = " or ".join(map(str, FOLDERS))
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"data folder ({folders})")


def _data(options: argparse.Namespace) -> Path:
    """Return the data folder that is named, or the first of those of a gateway of this machine."""
    from gateway.storage.engine.database import FILE_NAME as DATABASE

    named: Path | None = options.data
    for folder in FOLDERS if named is None else (named,):
        if os.path.exists(folder / DATABASE):  # noqa: PTH110 - what is closed to us is not there
            return folder
    if named is not None:
        raise TidegateError(f"{named}: there is no {DATABASE} that this user may read")
    folders = " or ".join(map(str, FOLDERS))
    raise TidegateError(
        f"no {DATABASE} in {folders} that this user may read: name the folder with --data, or"
        " become root"
    )


def _expression(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError("the expression is not UTF-8") from error
    return text


def _duration(text: str) -> int:
    """Return seconds."""
    count, unit = text[:-1], text[-1:]
    if not count.isascii() or not count.isdigit() or unit not in _SECONDS or len(count) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 30m, 2h or 7d")
    return int(count) * _SECONDS[unit]


def _number(text: str) -> tuple[str, str, int]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not <epoch>.<stream>.<number>, as in seq")
    return match[1], match[2], int(match[3])


def _check(options: argparse.Namespace) -> int:
    from gateway.cli.where.check import check_expression

    return check_expression(options.expression, rule=options.rule)


def _explain(options: argparse.Namespace) -> int:
    from gateway.cli.where.check import explain_expression

    return explain_expression(options.expression, options.message)


def _vectors(options: argparse.Namespace) -> int:
    from gateway.cli.where.check import run_vectors

    return run_vectors(options.file)


def _test(options: argparse.Namespace) -> int:
    from gateway.cli.where.check import print_error
    from gateway.cli.where.history import try_on_history
    from gateway.mqtt.errors import MqttError
    from gateway.mqtt.topics import check_topic_filter
    from gateway.where.language.errors import WhereError
    from gateway.where.rule import compile_rule

    try:
        check_topic_filter(options.topic)
        where = compile_rule(options.expression)
    except MqttError as error:
        raise TidegateError(f"--topic {options.topic!r}: {error.reason}") from error
    except WhereError as error:
        print_error(options.expression, error)
        return 1
    return try_on_history(where, options.topic, options.last, _data(options))


def _why(options: argparse.Namespace) -> int:
    from gateway.cli.where.history import why, why_last_of, why_not_sent

    if options.topic is not None:
        return why_last_of(options.topic, _data(options))
    if options.message is not None:
        return why_not_sent(options.message, _data(options))
    return why(options.number, _data(options))
