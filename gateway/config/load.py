"""Read a configuration file; every mistake names file, key, value and what is allowed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.config.bridges import read_bridges
from gateway.config.configuration import Configuration
from gateway.config.environment import with_environment
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.host_name import default_gateway_id, host_name
from gateway.config.reader import Reader
from gateway.settings.declaration import keys_of
from gateway.settings.listener import ListenerSettings


def load(path: Path) -> Configuration:
    """Return the checked configuration; raise ConfigurationError, which tells all mistakes."""
    configuration, mistakes = read(path)
    raise_all(mistakes)
    return configuration


def read(path: Path) -> tuple[Configuration, Sequence[ConfigurationError]]:
    """Return what a file says, and its mistakes; raise ConfigurationError if it is not TOML.

    After a mistake the key's default stands for its value, and None if it has none.
    """
    return read_document(str(path), with_environment(document(path)))


def read_document(
    file: str, document: dict[str, Any]
) -> tuple[Configuration, Sequence[ConfigurationError]]:
    """Return what a document says, and its mistakes."""
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
    """Return the configuration of a gateway that reads no file: a broker on loopback."""
    try:
        name = default_gateway_id()
    except ValueError:
        name = "tidegate"
    return Configuration("(none)", name, listeners=(ListenerSettings(port=port),))


def document(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds; raise ConfigurationError if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), "", None, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(path), "", None, f"not TOML: {error}") from error
    except RecursionError:
        raise ConfigurationError(str(path), "", None, "not TOML: too many brackets") from None
