"""The declaration of a kind of bridge: all that the gateway needs to know about it.

An entry point of the group `tidegate.bridges` names it (docs/use/bridges.md, "Writing a bridge").
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.settings import BridgeSettings
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import Bridge

Make = Callable[[Any, Host], Bridge]
"""Makes a bridge from its settings; raises BridgeError if something that it needs is missing."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to scan: `places` such as ports, or everything that can be found if empty.

    `seconds` is how long to listen at each place, None for the usual time. `report` shows progress,
    or why a place cannot be scanned.
    """

    report: Callable[[str], None]
    places: tuple[str, ...] = ()
    seconds: float | None = None
    devices: range | None = None
    """Identifiers of devices to ask, for kinds that have them; None for the usual ones."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A configuration table for a found device, and comments for a person."""

    name: str
    values: Mapping[str, object]
    comments: tuple[str, ...] = ()


Scan = Callable[[ScanOptions], Coroutine[None, None, list[FoundTable]]]


@dataclass(frozen=True, slots=True)
class BridgeKind:
    """A kind of bridge, configured by `[[<name>]]` tables whose keys are the fields of `settings`.

    `needs` are modules that must be installed, and Tidegate's `extra` has them.
    `retry` is how long a bridge waits after a BridgeError: seconds, growth and the most seconds.
    `counters` and `gauges` say what the figures below `$SYS/broker/tidegate/<name>/` mean.
    """

    name: str
    summary: str
    settings: type[BridgeSettings]
    make: Make
    needs: tuple[str, ...] = ()
    extra: str = ""
    retry: tuple[float, float, float] = (1.0, 2.0, 30.0)
    counters: Mapping[str, str] = field(default_factory=dict)
    gauges: Mapping[str, str] = field(default_factory=dict)
    default_name: Callable[[Any], str] = lambda _: ""
    """Names a bridge whose settings have no name; empty for the kind's."""
    series: Callable[[Any, str], Iterable[tuple[str, str]]] = lambda _settings, _name: ()
    """Yields the series in the settings as key and topic, for a bridge name: two bridges must not
    share one."""
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    """Yields notes on settings that are valid; `tidegate check` prints them."""
    place: Callable[[Any], str] = lambda _: ""
    """Says where a bridge finds its devices, such as a port; empty for everywhere."""
    scan: Scan | None = None
    """Finds devices and returns configuration for them; `tidegate bridges scan` runs it."""
    examine: Callable[[Any], str] = lambda _: ""
    """Returns the problem that `tidegate doctor` should report; empty if none."""

    def bridge_name(self, settings: BridgeSettings) -> str:
        """Return the bridge's name, which is unique within its kind."""
        return settings.name or self.default_name(settings) or self.name
