"""Pages, help, error texts and log lines keep the rules of writing that a program can check."""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gateway.cli.commands import parser_of_all
from pipeline.cli import ADD
from pipeline.config import CommandParser
from tests.support.table import table
from tools.prose import PAGES, page_faults, text_faults

ROOT = Path(__file__).parents[1]
FILES = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
LONG = 120
"""Characters of an error text or a log line, at most, which does not name a page."""

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def pipeline() -> argparse.ArgumentParser:
    parser = CommandParser(prog="tidegate-pipeline")
    commands = parser.add_subparsers(dest="command")
    for add in ADD:
        add(commands)
    return parser


def help_texts(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from filter(None, (parser.description, parser.epilog))
    for action in parser._actions:
        yield from filter(None, [action.help])
        if isinstance(action, argparse._SubParsersAction):
            yield from (each.help or "" for each in action._choices_actions)
            for command in action.choices.values():
                yield from help_texts(command)


def without_help(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            explained = {each.dest for each in action._choices_actions if each.help}
            for name, command in action.choices.items():
                yield from [] if name in explained else [f"{parser.prog} {name}"]
                yield from without_help(command)
        elif not action.help:
            yield f"{parser.prog}: {action.option_strings or action.metavar or action.dest}"


def printed(source: Path) -> Iterator[str]:
    """Yield the text of each error and log line of a module, with ` for what is filled in."""
    for call in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call):
            continue
        match call.func:
            case ast.Attribute(ast.Name("logger"), name) if name in LEVELS:
                pass
            case ast.Name(name) if name.endswith("Error"):
                pass
            case _:
                continue
        for text in call.args:
            match text:
                case ast.Constant(str(words)):
                    yield words
                case ast.JoinedStr(values):
                    parts = (str(v.value) if isinstance(v, ast.Constant) else "`" for v in values)
                    yield "".join(parts)


@table("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    assert [*page_faults(page.read_text(encoding="utf-8"))] == []


PARSERS = table("parser", [parser_of_all(), pipeline()], ids=("tidegate", "tidegate-pipeline"))


@PARSERS
def test_help(parser: argparse.ArgumentParser) -> None:
    texts = [*help_texts(parser)]
    assert len(texts) > 40
    assert [fault for text in texts for fault in text_faults(text)] == []


@PARSERS
def test_each_command_and_argument_has_help(parser: argparse.ArgumentParser) -> None:
    assert [*without_help(parser)] == []


@table("program", ["gateway", "pipeline", "tui"])
def test_errors_and_log_lines(program: str) -> None:
    texts = [text for source in (ROOT / program).rglob("*.py") for text in printed(source)]
    assert texts
    assert [fault for text in texts for fault in text_faults(text)] == []
    bare = [text for text in texts if len(text) > LONG and "tidegate docs " not in text]
    assert bare == [], "needs more than a line, so it ends with its page"
    named = {page for text in texts for page in re.findall(r"tidegate docs ([\w-]+)\)", text)}
    assert named <= {page.stem for page in ROOT.glob("docs/*/*.md")}


@table(
    ("text", "faults"),
    [
        ("The outbox is full. The oldest message is dropped.", 0),
        ("Is the outbox full, the oldest message is dropped.", 1),
        ("Is the outbox full?", 0),
        ("Can the note not be written, it goes on without ending.", 1),
        ("The reader is told of it, and messages are owed.", 2),
        (f"A sentence has {'many ' * 27}words.", 1),
        (f"A sentence has {'many ' * 26}words.", 0),
        (f"A row of names: {'`name`, ' * 40}`name`.", 0),
        (f"- {'many ' * 20}; {'many ' * 20}", 0),
        ("## Too deep", 1),
        ("# It ends with a colon:", 1),
        ("# Twice\n\n## Twice", 1),
    ],
)
def test_what_is_a_fault(text: str, faults: int) -> None:
    assert len([*page_faults(text)]) == faults
