"""The command line of `tidegate`: its commands, their arguments and functions."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.backup import add_backup
from gateway.cli.channel import add_channel
from gateway.cli.crashtest import add_crashtest
from gateway.cli.export import add_export
from gateway.cli.firmware.arguments import add_firmware
from gateway.cli.operate import add_operate
from gateway.cli.parser import URL_HELP, Parser, add_user_options
from gateway.cli.run_arguments import DATA, DURABILITY, INSTALLED, port_number
from gateway.cli.user import CONFIG, add_user
from gateway.cli.where.command import add_where
from gateway.compiled import build
from gateway.errors import TidegateError
from gateway.version import describe

SENSORS = "sensors/#"
"""What `subscribe` prints without a topic filter."""

if TYPE_CHECKING:
    from gateway.cli.parser import Commands
    from gateway.config.configuration import Configuration


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line, `command` being the function to call.

    Words of `uplink` may precede and follow options. The URL of a gateway may stand without `--url`
    in every command that has it.
    """
    parser = parser_of_all()
    options, others = parser.parse_known_args(words)
    if len(others) == 1 and _is_url(others[0]) and getattr(options, "url", "") is None:
        options.url = others.pop()
    if others and (not hasattr(options, "words") or any(each.startswith("-") for each in others)):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if others:
        options.words += others
    return options


def _is_url(word: str) -> bool:
    return "://" in word and not word.startswith("-")


def parser_of_all() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = Parser(
        prog="tidegate", description="An MQTT edge gateway that loses nothing it acknowledged."
    )
    parser.add_argument("--version", action="version", version=describe(build()))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_check(commands)
    _add_tui(commands)
    _add_subscribe(commands)
    _add_uplink(commands)
    add_operate(commands)
    add_channel(commands)
    add_user(commands)
    add_where(commands)
    _add_bridges(commands)
    _add_node(commands)
    add_firmware(commands)
    _add_doctor(commands)
    add_backup(commands)
    add_export(commands)
    _add_bugreport(commands)
    add_crashtest(commands)
    _add_completion(commands)
    _add_docs(commands)
    return parser


def _add_completion(commands: "Commands") -> None:
    shells = ("bash", "zsh", "fish")
    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=shells, metavar="SHELL", help=", ".join(shells))
    completion.set_defaults(command=_completion)


def _add_docs(commands: "Commands") -> None:
    docs = commands.add_parser(
        "docs", help="print the section of the documentation with these words"
    )
    docs.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="name of a page, or words; without any, list the pages",
    )
    docs.set_defaults(command=_docs)


def _docs(options: argparse.Namespace) -> int:
    from gateway.cli.docs import command_docs

    return command_docs(options.words)


def _completion(options: argparse.Namespace) -> None:
    from gateway.cli.completion import completion

    print(completion(options.shell, parser_of_all()), end="")


def _add_run(commands: "Commands") -> None:
    run = commands.add_parser("run", help="run the gateway; without --config, a broker")
    run.add_argument("--config", type=Path, metavar="FILE", help="configuration in TOML")
    run.add_argument("--port", type=_port, metavar="N", help="port of the first listener")
    run.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="data folder (./var)")
    run.add_argument(
        "--durability",
        choices=DURABILITY,
        default=DURABILITY[0],
        help="commit: messages are on disk before they are acknowledged (default); "
        "memory: within a second",
    )
    run.set_defaults(command=_run)


def _add_check(commands: "Commands") -> None:
    check = commands.add_parser("check", help="check a configuration file")
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("file", type=Path, metavar="FILE", nargs="?", help="configuration file")
    what.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of the file, for editors"
    )
    check.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="data folder, whose disk must have space for [outbox] survive",
    )
    check.add_argument(
        "--try",
        dest="connect",
        action="store_true",
        help="also connect to each uplink and report what it allows; publishes nothing",
    )
    check.set_defaults(command=_check)


def _add_tui(commands: "Commands") -> None:
    tui = commands.add_parser("tui", help="show a running gateway in the terminal")
    _add_broker_options(tui)
    tui.add_argument(
        "--record", type=Path, metavar="FILE", help="record what the gateway sends to FILE"
    )
    tui.add_argument("--replay", type=Path, metavar="FILE", help="show a recording")
    tui.add_argument("--serve", action="store_true", help="show it in browsers of this machine")
    tui.add_argument(
        "--port", type=_port, default=8_086, metavar="N", help="port of --serve (8086)"
    )
    tui.add_argument(
        "--behind",
        metavar="ADDRESS",
        help="with --serve: answer only this proxy, which checks logins, without a token",
    )
    tui.set_defaults(command=_tui)


def _add_subscribe(commands: "Commands") -> None:
    subscribe = commands.add_parser("subscribe", help="print messages as they arrive")
    subscribe.add_argument(
        "topic_filter",
        metavar="FILTER",
        nargs="?",
        default=SENSORS,
        help=f"topic filter ({SENSORS})",
    )
    _add_broker_options(subscribe)
    subscribe.add_argument(
        "--where", metavar="EXPR", help="print only messages for which the expression is TRUE"
    )
    subscribe.add_argument(
        "--every",
        metavar="MS",
        help="at most the newest message of each topic in so many milliseconds",
    )
    subscribe.set_defaults(command=_subscribe)


def _add_uplink(commands: "Commands") -> None:
    uplink = commands.add_parser("uplink", help="show, pause and resume the links to the fleet")
    actions = ("status", "pause", "resume", "retained", "rejected", "confirm")
    uplink.add_argument("action", choices=actions, help="what to do with the links")
    uplink.add_argument(
        "words",
        metavar="NAME",
        nargs="*",
        help="name of one uplink (default: all); for rejected: list, show, retry or drop, "
        "and message numbers or `all`",
    )
    uplink.add_argument("--uplink", metavar="NAME", help="for rejected: name of one uplink")
    uplink.add_argument(
        "--json", action="store_true", help="for status: print every figure as JSON"
    )
    _add_broker_options(uplink)
    uplink.set_defaults(command=_uplink)


def _add_node(commands: "Commands") -> None:
    node = commands.add_parser("node", help="remove a node from a running gateway")
    node.add_argument("action", choices=("forget",), help="what to do with the node")
    node.add_argument("name", metavar="NODE", help="name of a removed or renamed node")
    _add_broker_options(node)
    node.set_defaults(command=_node)


def _add_bridges(commands: "Commands") -> None:
    bridges = commands.add_parser(
        "bridges", help="list kinds of bridges, show their state, scan for devices"
    )
    bridges.add_argument(
        "words",
        nargs="*",
        metavar="KIND",
        help="KIND: its keys and figures; status [NAME]; scan KIND [PORT, HOST or ADAPTER]",
    )
    bridges.add_argument("--json", action="store_true", help="status: print JSON")
    bridges.add_argument(
        "--seconds", type=float, metavar="S", help="scan: seconds at each place and speed"
    )
    bridges.add_argument(
        "--devices", metavar="N-M", help="scan modbus: device identifiers, such as 1-32"
    )
    _add_broker_options(bridges)
    bridges.set_defaults(command=_bridges)


def _add_doctor(commands: "Commands") -> None:
    doctor = commands.add_parser(
        "doctor", help="check the board, its card, the data folder and the links"
    )
    installed = "the installed service's, or"
    doctor.add_argument(
        "--config", type=Path, metavar="FILE", help=f"configuration in TOML ({installed} none)"
    )
    doctor.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({installed} ./var of a checkout)"
    )
    doctor.set_defaults(command=_doctor)


def _add_bugreport(commands: "Commands") -> None:
    report = commands.add_parser("bugreport", help="write an archive for support, without secrets")
    report.add_argument("file", type=Path, metavar="FILE", help="archive to write, .tar.gz")
    report.add_argument("--data", type=Path, default=INSTALLED, metavar="DIR", help="data folder")
    report.add_argument(
        "--config", type=Path, default=CONFIG, metavar="FILE", help=f"configuration ({CONFIG})"
    )
    report.set_defaults(command=_bugreport)


def _add_broker_options(parser: argparse.ArgumentParser) -> None:
    # without a default, which would take the place of what --url has set
    parser.add_argument("url", metavar="URL", nargs="?", default=argparse.SUPPRESS, help=URL_HELP)
    parser.add_argument("--url", metavar="URL", help="the same as the argument URL")
    add_user_options(parser)


def _port(text: str) -> int:
    try:
        return port_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(options: argparse.Namespace) -> int:
    from gateway.cli.run import run

    return run(options.config, options.port, options.data, options.durability)


def _check(options: argparse.Namespace) -> int:
    if options.schema:
        from gateway.config.json_schema import schema_text

        print(schema_text(), end="")
        return 0
    import time

    from gateway.app.certificates import certificate_warnings
    from gateway.app.checks.check import check_configuration
    from gateway.app.checks.service import find_service, service_warnings
    from gateway.app.checks.warnings import warnings
    from gateway.app.uplink.headroom import check_promise
    from gateway.config.load import read
    from gateway.storage.engine.damage import free_bytes

    configuration, mistakes = read(options.file)
    check_configuration(configuration, mistakes)
    try:
        free = None if options.data is None else free_bytes(options.data)
    except OSError as error:
        raise TidegateError(f"{options.data}: {error.strerror}") from error
    promise = check_promise(configuration, free)
    if promise is not None:
        print(f"{options.file}: {promise}")
    service = find_service(configuration)
    found = [] if service is None else list(service_warnings(configuration, service))
    ending = certificate_warnings(configuration, time.time())
    for warning in [*warnings(configuration, options.data), *ending, *found]:
        print(f"{options.file}: warning: {warning}")
    for bridge in configuration.bridges:
        for note in bridge.kind.notes(bridge.settings):
            print(f"{options.file}: {bridge.kind.name} {bridge.name}: {note}")
    print(f"{options.file}: ok")
    if options.connect:
        return _try_uplinks(configuration)
    return 0


def _try_uplinks(configuration: "Configuration") -> int:
    """Print what the other side of each uplink allows; return 1 unless everything works."""
    from gateway.app.uplink.try_out import try_uplinks
    from gateway.cli.own_gateway import socket_url

    trials = try_uplinks(configuration, running=socket_url() is not None)
    if not trials:
        print(f"{configuration.file}: no uplink has a url, so there is nothing to try")
    for trial in trials:
        for line in trial.allows:
            print(f"{trial.name}: {line}")
        for line in trial.fails:
            print(f"{trial.name}: fails: {line}")
    return 1 if any(trial.fails for trial in trials) else 0


def _bugreport(options: argparse.Namespace) -> int:
    from gateway.cli.bugreport import command_bugreport

    return command_bugreport(options.file, options.data, options.config)


def _tui(options: argparse.Namespace) -> int:
    from gateway.cli.own_gateway import default_url
    from gateway.cli.tui import serve, tui

    if options.serve:
        return serve(options.port, options.behind)
    url = options.url or default_url(options.username)
    login = options.username, options.password_file, options.ca_file
    own = {"cert": options.cert, "key": options.key}
    return tui(url, *login, options.record, options.replay, **own)


def _subscribe(options: argparse.Namespace) -> int:
    from gateway.cli.local_broker import LocalBroker
    from gateway.cli.subscribe import subscribe

    if _is_url(options.topic_filter) and not options.url:
        options.url, options.topic_filter = options.topic_filter, SENSORS
    return subscribe(LocalBroker.of(options), options.topic_filter, options.where, options.every)


def _node(options: argparse.Namespace) -> int:
    from gateway.cli.control_request import ask_gateway
    from gateway.cli.local_broker import LocalBroker

    payload = json.dumps({options.action: options.name})
    refused = f"knows no bridge that could {options.action} {options.name}"
    ask_gateway(LocalBroker.of(options), "node", payload, refused)
    print(f"{options.name}: forgotten")
    return 0


def _uplink(options: argparse.Namespace) -> int:
    words: list[str] = options.words
    if words and "://" in words[-1]:  # only a URL: no name has a colon
        options.url = words.pop()
    from gateway.cli.local_broker import LocalBroker

    broker = LocalBroker.of(options)
    if options.action == "rejected":
        from gateway.cli.uplink import command_rejected

        return command_rejected(broker, options)
    if len(words) > 1:
        raise TidegateError(f"uplink {options.action} takes one name, not {' '.join(words)}")
    from gateway.cli.uplink import command_confirm, command_uplink, command_uplink_status

    name = words[0] if words else options.uplink
    if options.action == "confirm":
        return command_confirm(broker, name)
    if options.action == "status":
        return command_uplink_status(broker, name, as_json=options.json)
    return command_uplink(broker, options.action, name)


def _bridges(options: argparse.Namespace) -> int:
    words: list[str] = options.words
    if words[:1] == ["status"]:
        from gateway.cli.bridges import command_status

        if "://" in words[-1]:  # only a URL: no bridge's name has a slash
            options.url = words.pop()
        return command_status(options, words[1:])
    if words[:1] == ["scan"]:
        from gateway.cli.bridges import command_scan

        return command_scan(words[1:], options)
    from gateway.cli.bridges import show_bridges

    show_bridges(words)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from gateway.cli.doctor import doctor, places

    return doctor(*places(options.data, options.config))
