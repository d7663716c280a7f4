"""`tidegate import mosquitto.conf`: migrates from Mosquitto."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.cli.mosquitto.conversion import Conversion
from gateway.errors import TidegateError


def convert(file: Path, output: Path | None) -> int:
    """Write the configuration to `output`, or print it, and report lines without an equivalent."""
    conversion = Conversion(file)
    folder = None if output is None else output.parent.absolute()
    for _, table in conversion.uplinks:
        if folder is not None and "password_file" in table:
            table["password_file"] = str(folder / table["password_file"])
    text = text_of(conversion, str(file))
    if output is None or folder is None:
        print(text, end="")
        for name in conversion.secrets:
            print(f"{name}: write the password there, and nothing else", file=sys.stderr)
    else:
        _write(output, text, 0o644)
        for name, secret in conversion.secrets.items():
            _write(folder / name, secret, 0o600)
    for line in remarks(conversion):
        print(line, file=sys.stderr)
    return 0 if output is None else _check(output)


def _write(file: Path, text: str, mode: int) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as opened:  # noqa: PTH123 - by its descriptor
            opened.write(text)
    except FileExistsError as error:
        raise TidegateError(f"{file}: is there already; it is not overwritten") from error
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    print(f"{file}: written", file=sys.stderr)


def _check(file: Path) -> int:
    """Check the file as `tidegate check` does; raise TidegateError."""
    from gateway.app.checks.check import check_configuration
    from gateway.config.load import read

    check_configuration(*read(file))
    print(f"{file}: ok", file=sys.stderr)
    return 0


Table = dict[str, Any]

FIRST = ("url", "name")
"""Keys that precede the others."""


def text_of(conversion: Conversion, source: str) -> str:
    """Return the whole file, with lines without an equivalent at its end."""
    return "\n".join(_lines(conversion, source)) + "\n"


def _lines(conversion: Conversion, source: str) -> Iterator[str]:
    yield f"# made by `tidegate import {source}`"
    for name in ("broker", "storage", "log"):
        table: Table = getattr(conversion, name)
        if table:
            yield from ("", f"[{name}]", *_keys(table))
    for place, table in conversion.listeners:
        yield from ("", *_comment(place), "[[listener]]", *_keys(table))
    only_one = len(conversion.uplinks) == 1
    for place, table in conversion.uplinks:
        head = "[uplink]" if only_one else "[[uplink]]"
        yield from ("", *_comment(place), head, *_keys(table))
        for kind in ("rule", "down"):
            for each in table.get(kind, ()):
                yield from ("", f"[[uplink.{kind}]]", *_keys(each))
    if conversion.unconverted or conversion.remarks:
        yield from ("", "# Not converted, or converted with a difference:")
        yield from (f"# {each}" for each in remarks(conversion))


def remarks(conversion: Conversion) -> Iterator[str]:
    """Yield a line for each that has no equivalent, and for differences."""
    for line, why, differs in sorted(conversion.unconverted, key=lambda each: not each[2]):
        what = f"{line.option} {_shown(line.option, line.value)}".rstrip()
        prefix = "" if differs else "needless: "
        yield f"{line.place}: {what}: {prefix}{why.removeprefix('needless: ')}"
    yield from conversion.remarks


def _shown(option: str, value: str) -> str:
    """Return a value without secrets."""
    return "(not shown)" if "password" in option or "psk" in option else value


def _comment(place: str) -> list[str]:
    return [f"# {place}"] if place else []


def _keys(table: Table) -> Iterator[str]:
    for name, value in sorted(table.items(), key=lambda each: each[0] not in FIRST):
        if not (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield f"{name} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_value(each)}' for name, each in value.items())} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
