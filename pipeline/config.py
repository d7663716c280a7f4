"""The configuration file: TOML, in which the options of each command are keys.

What the command line says holds before what the file says.
"""

import argparse
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError

VARIABLE = "TIDEGATE_PIPELINE_CONFIG"
SHARED = (
    "landing",
    "tables",
    "master",
    "java_cache",
    "readings",
    "assets",
    "gold_sql",
    "change_feed",
    "openlineage",
)
"""Keys outside of any table: for all commands that have the option."""
SPARK = "spark"
"""The table of Spark's own settings."""
_NUMBERS = {int: "a whole number", float: "a number"}

Table = Mapping[str, Any]


class CommandParser(argparse.ArgumentParser):
    """A parser that knows its options by name."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.options: dict[str, argparse.Action] = {}
        super().__init__(*arguments, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument, as argparse does."""
        action = super().add_argument(*names, **options)
        if action.option_strings and action.dest not in ("help", "config"):
            self.options[action.dest] = action
        return action


def config_file(arguments: Sequence[str]) -> Path | None:
    """Return the file that `--config` names, else the environment, else None."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", type=Path)
    named: Path | None = parser.parse_known_args(arguments)[0].config
    if named is not None:
        return named
    return Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def configure(commands: Mapping[str, CommandParser], file: Path) -> dict[str, str]:
    """Make what the file says the defaults of the commands; returns Spark's settings in it.

    Raises PipelineError, with file and key, for what is not TOML, no key, or no value of it.
    """
    for name, value in _read(file).items():
        where = f"{file}: {name}"
        if name in SHARED:
            _share(commands, name, value, where)
        elif name in commands:
            _set_all(commands[name], _table(value, where), where)
        elif name != SPARK:
            raise PipelineError(f"{where} is not known{_hint(name, [*SHARED, *commands, SPARK])}")
    where = f"{file}: {SPARK}"
    return dict(_spark(_table(_read(file).get(SPARK, {}), where), where))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is not TOML: {error}") from None


def _share(commands: Mapping[str, CommandParser], name: str, value: object, where: str) -> None:
    for parser in commands.values():
        if name in parser.options:
            _set(parser.options[name], value, where)


def _set_all(parser: CommandParser, values: Table, where: str) -> None:
    for name, value in values.items():
        if name not in parser.options:
            raise PipelineError(f"{where}.{name} is not known{_hint(name, list(parser.options))}")
        _set(parser.options[name], value, f"{where}.{name}")


def _set(action: argparse.Action, value: object, where: str) -> None:
    action.default = _converted(action, value, where)
    action.required = False


def _converted(action: argparse.Action, value: object, where: str) -> object:
    if action.nargs == 0:
        return _checked(value, bool, "true or false", where)
    kind: Any = action.type or str
    if kind in _NUMBERS:
        allowed = (int, float) if kind is float else int
        if isinstance(value, bool):
            value = str(value).lower()
        return kind(_checked(value, allowed, _NUMBERS[kind], where))
    text = _checked(value, str, "a text", where)
    try:
        return kind(text)
    except argparse.ArgumentTypeError as error:
        raise PipelineError(f"{where}: {error}") from None


def _checked(value: object, kind: Any, words: str, where: str) -> Any:
    if not isinstance(value, kind):
        raise PipelineError(f"{where} is {value!r}, but {words} is needed")
    return value


def _table(value: object, where: str) -> Table:
    found: Table = _checked(value, dict, "a table", where)
    return found


def _spark(values: Table, where: str, name: str = SPARK) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        whole = key if key.startswith(f"{SPARK}.") else f"{name}.{key}"
        if isinstance(value, dict):
            yield from _spark(value, f"{where}.{key}", whole)
        elif isinstance(value, bool):
            yield whole, str(value).lower()
        else:
            words = "a text, a number, true or false"
            yield whole, str(_checked(value, (str, int, float), words, f"{where}.{key}"))


def _hint(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f": did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
