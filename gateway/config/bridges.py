"""The bridges of a configuration file: `[[<kind>]]` tables, read as the kind declares.

Kinds are entry points of the group `tidegate.bridges`; only those that a file names are loaded.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from gateway.config.reader import Reader
from gateway.settings.declaration import settings_class

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tidegate.bridges"

BRIDGES_MAX = 256
"""Bridges of one gateway."""


class BridgeKind(Protocol):
    """What a configuration needs of a kind (gateway.bridges.kind.BridgeKind)."""

    @property
    def name(self) -> str:
        """The name of its tables."""

    @property
    def settings(self) -> type:
        """The class that declares the keys of a table."""

    @property
    def series(self) -> Callable[[Any, str], Iterable[tuple[str, str]]]:
        """Returns the series of settings, as key and topic."""

    def bridge_name(self, settings: Any) -> str:
        """Return the bridge's name."""


@settings_class
class BridgeConfig:
    """One table, read."""

    kind: Any
    name: str
    settings: Any


def bridge_kinds() -> "dict[str, EntryPoint]":
    """Return the kinds that are installed, by name."""
    from importlib.metadata import entry_points

    return {each.name: each for each in sorted(entry_points(group=GROUP))}


def load_kind(kind: "EntryPoint") -> BridgeKind:
    """Return the declaration of a kind; raise ImportError if it is not available."""
    try:
        declaration: BridgeKind = kind.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ImportError(f"{kind.value}: {error}") from error
    return declaration


def read_bridges(reader: Reader, document: dict[str, Any]) -> tuple[BridgeConfig, ...]:
    """Read and remove the tables of bridges from a document.

    The reader notes mistakes; a table with one is skipped.
    """
    kinds = bridge_kinds() if document else {}
    found: dict[tuple[str, str], BridgeConfig] = {}
    series: dict[str, str] = {}
    for key in [key for key in document if key in kinds]:
        for place, bridge in _read_kind(reader, key, document.pop(key), kinds[key]):
            if (key, bridge.name) in found:
                allowed = f"two {key} bridges cannot have one name: give each a name of its own"
                reader.mistake(f"{place}.name", bridge.name, allowed)
            found[key, bridge.name] = bridge
            for own, topic in bridge.kind.series(bridge.settings, bridge.name):
                if topic in series:
                    allowed = f"another series than {series[topic]} has: name a node or instance"
                    reader.mistake(f"{place}.{own}", topic, allowed)
                series.setdefault(topic, f"{place}.{own}")
    if len(found) > BRIDGES_MAX:
        reader.mistake("bridges", len(found), f"at most {BRIDGES_MAX} of them")
    return tuple(found.values())


def _read_kind(
    reader: Reader, key: str, tables: object, entry_point: "EntryPoint"
) -> Iterator[tuple[str, BridgeConfig]]:
    if not isinstance(tables, list):
        reader.mistake(key, tables, f"[[{key}]], one for each")
        return
    try:
        kind = load_kind(entry_point)
    except ImportError as error:
        reader.mistake(key, None, f"this kind cannot be loaded: {error}")
        return
    for number, table in enumerate(tables):
        place, before = f"{key}[{number}]", len(reader.mistakes)
        try:
            settings: Any = reader.read(kind.settings, table, place)
        except ValueError as error:  # keys that exclude each other
            reader.mistake(place, None, str(error))
        if len(reader.mistakes) == before:
            yield place, BridgeConfig(kind, kind.bridge_name(settings), settings)
