"""docs/use/commands.md has every command of the two programs, and each word after it."""

import argparse
import re
from pathlib import Path

from gateway.cli.commands import parser_of_all
from pipeline.cli import ADD
from pipeline.config import CommandParser
from tests.support.table import table

PAGE = (Path(__file__).parents[1] / "docs/use/commands.md").read_text(encoding="utf-8")
CELLS = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `tidegate")]


def choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the words that may follow a command, each with what it parses."""
    found = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    return found[0] if found else {}


def pipeline() -> argparse.ArgumentParser:
    parser = CommandParser(prog="tidegate-pipeline")
    commands = parser.add_subparsers(dest="command")
    for add in ADD:
        add(commands)
    return parser


def commands() -> list[tuple[str, list[str]]]:
    gateway = [
        (f"tidegate {name}", [*choices(each)]) for name, each in choices(parser_of_all()).items()
    ]
    return gateway + [(f"tidegate-pipeline {name}", []) for name in choices(pipeline())]


@table(("command", "words"), commands(), ids=[name for name, _ in commands()])
def test_a_command_is_on_the_page(command: str, words: list[str]) -> None:
    program, _, name = command.partition(" ")
    cells = [cell for cell in CELLS if f"`{program} " in cell and re.search(rf"\b{name}\b", cell)]
    assert cells, command
    assert [word for word in words if not any(word in cell for cell in cells)] == []
