"""`tidegate user`: the users of a gateway, their passwords and rights."""

import argparse
import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import TidegateError

if TYPE_CHECKING:
    from gateway.cli.parser import Commands
    from gateway.config.configuration import Configuration

CONFIG = Path("/etc/tidegate/gateway.toml")

MAXIMUM_FIELD = 65_535
"""Bytes of a user name or a password in CONNECT."""


def add_user(commands: "Commands") -> None:
    """Add the command `user`."""
    user = commands.add_parser("user", help="manage users, and check what they may read and write")
    actions = user.add_subparsers(required=True, metavar="ACTION")
    for name, words in (
        ("add", "add a user; the password is asked for, or read from standard input"),
        ("passwd", "change a user's password"),
    ):
        action = actions.add_parser(name, help=words)
        action.add_argument("user", metavar="USER", type=_name, help="user name")
        _add_file(action)
        action.set_defaults(command=_set_password, new=name == "add")
    listing = actions.add_parser("list", help="list the users of a password file")
    _add_file(listing)
    listing.set_defaults(command=_list)
    check = actions.add_parser(
        "check", help="show whether a user may read and write a topic, and why"
    )
    check.add_argument("user", metavar="USER", help="user name; '' for clients without one")
    check.add_argument("topic", metavar="TOPIC", help="topic to read or write")
    check.add_argument(
        "--client-id", default="", metavar="ID", help="client identifier, for rules with %%c"
    )
    check.add_argument("--local", action="store_true", help="check for a client on this machine")
    _add_config(check)
    check.set_defaults(command=_check)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, default=CONFIG, metavar="FILE", help=f"configuration ({CONFIG})"
    )


def _add_file(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="password file (the configuration's)"
    )


def _name(text: str) -> str:
    if not text or not text.isprintable() or text != text.strip() or ":" in text or text[0] == "#":
        allowed = "1 or more characters without : and control characters, not beginning with #"
        raise argparse.ArgumentTypeError(f"{text!r} is no user name: {allowed}")
    if len(text.encode()) > MAXIMUM_FIELD:
        raise argparse.ArgumentTypeError(f"a user name is of at most {MAXIMUM_FIELD} bytes")
    return text


def _set_password(options: argparse.Namespace) -> int:
    from gateway.cli.user_actions import set_password

    path = _password_file(options)
    set_password(path, options.user, _password, new=options.new)
    print(f"{path}: {options.user} {'added' if options.new else 'has a new password'}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from gateway.server.passwords.file import load

    for username, kind in load(_password_file(options)).users():
        print(f"{username}  ({kind})")
    return 0


def _check(options: argparse.Namespace) -> int:
    from gateway.cli.user_actions import explain

    for line in explain(
        _configuration(options.config),
        options.user or None,
        options.topic,
        options.client_id,
        local=options.local,
    ):
        print(line)
    return 0


def _password_file(options: argparse.Namespace) -> Path:
    """Return the named file, or the only one of the configuration."""
    if options.file is not None:
        return Path(options.file)
    configuration = _configuration(options.config)
    named = [each.password_file for each in configuration.listeners]
    files = [name for name in dict.fromkeys(named) if name is not None]
    if len(files) != 1:
        found = " and ".join(files) or "no password_file"
        raise TidegateError(f"{options.config} names {found}; say which with --file")
    return Path(files[0])


def _configuration(path: Path) -> "Configuration":
    from gateway.config.load import load

    return load(path)


def _password() -> bytes:
    """Request the password twice, or read a line without a terminal."""
    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise TidegateError("the two passwords differ; nothing was changed")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    encoded = password.encode(errors="surrogateescape")
    if not 1 <= len(encoded) <= MAXIMUM_FIELD:
        raise TidegateError(f"a password has 1 to {MAXIMUM_FIELD} bytes; nothing was changed")
    return encoded
