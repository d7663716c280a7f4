"""Reads a configuration file and the environment; a mistake names file, key, value and limit."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.config.bridges import read_bridges
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.host_name import default_gateway_id, host_name
from gateway.config.named_file import without_mark
from gateway.config.reader import Reader
from gateway.settings.declaration import keys_of
from gateway.settings.listener import ListenerSettings

PREFIX = "TIDEGATE__"

TABLES_MAX = 100
"""Tables of one name that variables may number: a typing mistake must not make a million."""


def load(path: Path) -> Configuration:
    """Return the checked configuration; raise ConfigurationError with all mistakes."""
    configuration, mistakes = read(path)
    raise_all(mistakes)
    return configuration


def read(path: Path) -> tuple[Configuration, Sequence[ConfigurationError]]:
    """Return the configuration of a file, and its mistakes, each of the file or of a variable.

    Raise ConfigurationError if it is not TOML.

    A wrong value is replaced by the key's default, or None without one.
    """
    configuration, mistakes = read_document(str(path), with_environment(document(path)))
    return configuration, [of_variable(each) for each in mistakes]


def read_document(
    file: str, document: dict[str, Any]
) -> tuple[Configuration, Sequence[ConfigurationError]]:
    """Return the configuration of a document, and its mistakes."""
    reader = Reader(file)
    own = {key.name for key in keys_of(Configuration)}
    others = {name: value for name, value in document.items() if name not in own}
    bridges = read_bridges(reader, others)
    rest = {name: value for name, value in document.items() if name in own or name in others}
    configuration = reader.read(Configuration, rest, file=file, gateway_id="", bridges=bridges)
    try:
        name = configuration.gateway.id or default_gateway_id()
    except ValueError as error:
        name = ""
        allowed = f"the host's name cannot be used; set {error}"
        reader.mistake("gateway.id", host_name(), allowed)
    return replace(configuration, gateway_id=name), reader.mistakes


def bare(port: int) -> Configuration:
    """Return the configuration of a gateway without a file: a broker on loopback."""
    try:
        name = default_gateway_id()
    except ValueError:
        name = "tidegate"
    return Configuration("(none)", name, listeners=(ListenerSettings(port=port),))


def document(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raise ConfigurationError if it cannot be read."""
    try:
        return parse(str(path), path.read_bytes())
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error


def parse(file: str, data: bytes) -> dict[str, Any]:
    """Parse the bytes of a TOML file; raise ConfigurationError."""
    import tomllib

    try:
        return tomllib.loads(without_mark(data).decode())
    except UnicodeDecodeError as error:
        raise ConfigurationError(file, "", None, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(file, "", None, f"not TOML: {error}") from error
    except RecursionError:
        raise ConfigurationError(file, "", None, "not TOML: too many brackets") from None


def with_environment(
    document: dict[str, Any], environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the document with the values of variables, which override the file.

    `TIDEGATE__GATEWAY__ID=barn` is `gateway.id = "barn"`, and `TIDEGATE__LISTENER__0__PORT=1884`
    the port of the first listener. A value that is valid TOML is read as such, any other is a text.
    """
    for name in sorted(environment):
        if name.startswith(PREFIX):
            parts = name.removeprefix(PREFIX).lower().split("__")
            document = _set(document, parts, toml_value(environment[name]), name)
    return document


def of_variable(
    mistake: ConfigurationError, environment: Mapping[str, str] = os.environ
) -> ConfigurationError:
    """Return a mistake with the variable's name in place of the file's, if one set that key."""
    for name in environment:
        if name.startswith(PREFIX):
            parts = name.removeprefix(PREFIX).lower().split("__")
            key = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)[1:]
            # the only table of a name needs no number in a variable
            if key.replace("[0]", "") == mistake.key.replace("[0]", ""):
                return ConfigurationError(name, mistake.key, mistake.value, mistake.allowed)
    return mistake


def toml_value(text: str) -> Any:
    """Return the value that a text is in TOML, or the text itself."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text


def _set(place: Any, parts: list[str], value: Any, name: str) -> Any:
    """Return a copy of a part of the document with the value inside."""
    if not parts:
        return value
    first, *rest = parts
    if first.isascii() and first.isdigit():
        tables = [{}] if place is None else place
        number = int(first)
        if not isinstance(tables, list) or number > min(len(tables), TABLES_MAX):
            allowed = "tables are numbered from 0 on, without a gap"
            raise ConfigurationError(name, "", None, allowed)
        below = tables[number] if number < len(tables) else {}
        return [*tables[:number], _set(below, rest, value, name), *tables[number + 1 :]]
    table = {} if place is None else place
    if isinstance(table, list) and len(table) == 1:  # the only one needs no number
        return [_set(table[0], parts, value, name)]
    if not first or not isinstance(table, dict):
        raise ConfigurationError(name, "", None, f"{PREFIX}SECTION__KEY, or SECTION__0__KEY")
    return {**table, first: _set(table.get(first), rest, value, name)}
