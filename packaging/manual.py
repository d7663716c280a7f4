"""Prints the manual page tidegate(1): every command with its options, as the parser has them.

It needs the package on the path: PYTHONPATH=. python packaging/manual.py
"""

import argparse
import re
from collections.abc import Iterator

from gateway.cli.commands import parser_of_all

HEAD = """\
.TH TIDEGATE 1 "" "tidegate" "User Commands"
.SH NAME
tidegate \\- an MQTT edge gateway that loses nothing it acknowledged
.SH SYNOPSIS
.B tidegate
.I COMMAND
[\\fIoptions\\fR]
.SH DESCRIPTION
Commands that speak to a running gateway find the one of this machine by themselves, by its socket.
.SH COMMANDS
"""

TAIL = """\
.SH EXIT STATUS
0 if all is well, 1 if what was asked about is not, 2 for a mistake or no answer, 3 for a gateway
that wants to be started again.
.SH FILES
.TP
/etc/tidegate/gateway.toml
the configuration of the service
.TP
/var/lib/tidegate
its data
.TP
/run/tidegate
the sockets for commands
"""


NOTHING = "\\&"
"""A line of a paragraph that is empty."""

WIDEST = 60
"""Characters of choices in braces that fit into a line; more of them are the option's text."""


def roff(text: str) -> str:
    """Return a text in which nothing means anything to roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", escaped, flags=re.MULTILINE)


def commands(parser: argparse.ArgumentParser, path: str = "", said: str = "") -> Iterator[str]:
    """Yield the section of each command and of those below it."""
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if path and not inner:
        yield f".SS tidegate {roff(path)}\n{roff(said)}\n"
        for action in parser._actions:
            if action.dest != "help" and action.help != argparse.SUPPRESS:
                yield f".TP\n{name_of(action)}\n{roff(help_of(parser, action)) or NOTHING}\n"
    for each in inner:
        helps = {choice.dest: choice.help or "" for choice in each._choices_actions}
        for name, below in each.choices.items():
            yield from commands(below, f"{path} {name}".strip(), helps.get(name, ""))


def name_of(action: argparse.Action) -> str:
    """Return an option or a word as it stands on the command line."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    if len(choices) > WIDEST:  # a name has one line
        choices = ""
    metavar = action.metavar if isinstance(action.metavar, str) else None
    value = metavar or choices or action.dest.upper()
    if not action.option_strings:
        return f"\\fI{roff(value)}\\fR"
    options = ", ".join(f"\\fB{roff(each)}\\fR" for each in action.option_strings)
    return options if action.nargs == 0 else f"{options} \\fI{roff(value)}\\fR"


def help_of(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return what the parser says of it, else its choices, "" if it has none."""
    if action.help:
        return " ".join(parser._get_formatter()._expand_help(action).split())
    return "one of " + ", ".join(map(str, action.choices)) if action.choices else ""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(commands(parser_of_all())) + TAIL


if __name__ == "__main__":
    print(page(), end="")
