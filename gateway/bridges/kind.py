"""The declaration of a kind of bridge: all that the gateway needs to know of one.

An entry point of the group `tidegate.bridges` names it (docs/bridges.md, "A kind of your own").
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.settings import BridgeSettings
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import Bridge

Make = Callable[[Any, Host], Bridge]
"""Makes a bridge of its settings; raises BridgeError if what it needs is not there."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What a scan looks at: `places` such as ports, without any all that it can find by itself.

    `seconds` is how long each place is listened to, None for the usual time. `report` shows a
    person how far it is, or why a place cannot be scanned.
    """

    report: Callable[[str], None]
    places: tuple[str, ...] = ()
    seconds: float | None = None
    devices: range | None = None
    """Identifiers of devices that are asked, where a kind has such; None for the usual ones."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table of the configuration for something that was found, and what a person should know."""

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
    """Names a bridge whose settings give no name; empty for the kind's."""
    series: Callable[[Any, str], Iterable[tuple[str, str]]] = lambda _settings, _name: ()
    """Gives the series that settings name, as key and topic, for a bridge of a name: two bridges
    must not have one."""
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    """Gives what a person should know of settings that can work; `tidegate check` prints it."""
    place: Callable[[Any], str] = lambda _: ""
    """Says where a bridge finds its devices, such as a port; empty for everywhere."""
    scan: Scan | None = None
    """Finds devices, and returns the configuration for them; `tidegate bridges scan` runs it."""
    examine: Callable[[Any], str] = lambda _: ""
    """Says what `tidegate doctor` would find wrong; empty if nothing."""

    def bridge_name(self, settings: BridgeSettings) -> str:
        """Return the bridge's name, with which it is told apart from others of the kind."""
        return settings.name or self.default_name(settings) or self.name
