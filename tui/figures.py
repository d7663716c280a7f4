"""What a gateway publishes below `$SYS/broker/` (docs/operate/sys-topics.md), unchanged."""

from collections.abc import Iterator

from tui.payload import as_number, as_text
from tui.text import amount, printable, size, span

ROOT = "$SYS/broker/"
UPTIME = "uptime"
VERSION = "version"
RECEIVED = "publish/messages/received"
SENT = "publish/messages/sent"
SYS_SENT = "tidegate/sys/messages_sent"
ANSWERED = "tidegate/queries/answered"
REFUSED = "tidegate/queries/refused"
CLIENTS = "clients/connected"
OFFLINE = "clients/disconnected"
GATEWAY_ID = "tidegate/gateway/id"
OUTBOX_ROWS = "tidegate/outbox/rows"
OUTBOX_BYTES = "tidegate/outbox/bytes"
OUTBOX_OLDEST = "tidegate/outbox/oldest_seconds"
OUTBOX_SURVIVES = "tidegate/outbox/survives_seconds"
ACKNOWLEDGED = "tidegate/uplink/acknowledged"
BRIDGE_READINGS = "tidegate/bridges/readings"
CARD_DAYS = "tidegate/storage/card_days"
RULES_MATCHED = "tidegate/rules/matched"
RULES_FILTERED = "tidegate/rules/filtered"
RULES_SAVED = "tidegate/rules/bytes_saved"

WATCHED = (
    "uptime", "version", "clients/connected", "clients/disconnected", "publish/messages/+",
    "tidegate/gateway/+", "tidegate/uplink/+", "tidegate/uplink/+/+", "tidegate/outbox/+",
    "tidegate/rules/+", "tidegate/storage/card_days", "tidegate/storage/written_per_day",
    "tidegate/bridges/readings", "tidegate/sys/messages_sent", "tidegate/queries/+",
    "tidegate/ledger/lost", "tidegate/outbox/evicted/+", "tidegate/alarm/+", "tidegate/log",
    "tidegate/log/recent",
)  # fmt: skip
"""what is subscribed to: a quarter of what changes each second"""
LOST = (
    "tidegate/ledger/lost", "tidegate/outbox/evicted/drop-newest",
    "tidegate/outbox/evicted/drop-oldest", "tidegate/outbox/evicted/drop-lowest-priority",
)  # fmt: skip
"""figures of messages that the fleet never gets"""
EVERYTHING = "#"
"""what is subscribed to while every figure is shown"""

MAX_FIGURES = 5_000
"""figures; a further one is counted and not kept"""
MAX_NAME = 96
"""characters of a name"""
MAX_WORDS = 256
"""characters of a value"""


def uplink_prefix(name: object) -> str:
    """Return what the names of an uplink's figures begin with; the only one has no name."""
    return f"tidegate/uplink/{name}/" if name else "tidegate/uplink/"


class Figures:
    """The last value of each figure, by its name below `$SYS/broker/`."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self.not_stored = 0
        """messages about figures beyond MAX_FIGURES"""

    def apply(self, name: str, payload: bytes) -> None:
        """Keep a value; an empty payload ends the figure."""
        if not payload:
            self._values.pop(name, None)
        elif name in self._values or len(self._values) < MAX_FIGURES:
            self._values[name] = payload
        else:
            self.not_stored += 1

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self.not_stored = 0

    def number(self, name: str) -> float | None:
        """Return a number, or None while it is not known or is a text."""
        return as_number(self._values.get(name, b""))

    def count(self, name: str) -> int | None:
        """Return a whole number, or None while it is not known or is a text."""
        found = self.number(name)
        return None if found is None else int(found)

    def word(self, name: str) -> str:
        """Return a text; empty while it is not known."""
        return as_text(self._values.get(name, b""), MAX_WORDS)

    def numbers(self) -> dict[str, float]:
        """Return all that are a number."""
        found = ((name, as_number(payload)) for name, payload in self._values.items())
        return {name: number for name, number in found if number is not None}

    def uplinks(self) -> list[str]:
        """Return the names of several uplinks; one empty name if there is a single one.

        A gateway without uplinks has the state `off`, and no outbox.
        """
        begin, end = "tidegate/uplink/", "/state"
        names = [
            name[len(begin) : -len(end)]
            for name in self._values
            if name.startswith(begin) and name.endswith(end) and len(name) > len(begin + end)
        ]
        if names:
            return sorted(names)
        state = self.word(f"{begin}state")
        return [""] if state and (state != "off" or OUTBOX_ROWS in self._values) else []

    def shown(self) -> Iterator[tuple[str, str]]:
        """Give each figure as (name, value with its unit), in alphabetical order."""
        for name, payload in sorted(self._values.items()):
            if not name.startswith("tidegate/log"):
                yield printable(name, MAX_NAME), shown(name, payload)


def shown(name: str, payload: bytes) -> str:
    """Return the value with the unit that the end of its name says."""
    number = as_number(payload)
    if number is None:
        return as_text(payload, MAX_WORDS)
    words = name.replace("/", "_").split("_")
    if "bytes" in words or name.endswith(("written_per_day", "write_budget")):
        return size(int(number))
    if words[-1] == "seconds":
        return span(number)
    if words[-1] == "days":
        return f"{number:,.0f} d"
    if words[-1] in ("percent", "rate") and number <= 100:
        return f"{number:g} %"
    if "ms" in words:
        return f"{number:,g} ms"
    if words[-1] == "microseconds":
        return f"{number:,g} µs"
    return amount(int(number)) if number == int(number) else f"{number:,g}"
