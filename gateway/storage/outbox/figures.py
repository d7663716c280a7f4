"""What the outbox counts: how much waits in it, and how many did not reach the fleet."""

from gateway.config.when_full import GIVING_UP
from gateway.counters import Counters
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.streams.streams import OutboxStreams
from gateway.storage.outbox.uplink_bits import UplinkBits

CAUSES = (*GIVING_UP, "latest")
"""Why an acknowledged message is given up."""


class OutboxFigures:
    """Shows the sums of `streams` under `$SYS/broker/tidegate/outbox/` and counts beside them."""

    def __init__(self, counters: Counters, streams: OutboxStreams, uplinks: UplinkBits) -> None:
        self._counters = counters
        self._streams = streams
        self._uplinks = uplinks
        for cause in CAUSES:
            counters.add(f"tidegate/outbox/evicted/{cause}", 0)
        counters.add("tidegate/outbox/unwritten", 0)

    def show(self, *names: str) -> None:
        """Show the sums of the whole and of the streams of these names."""
        values = self._counters.values  # this is done twice for each message
        values["tidegate/outbox/rows"] = self._streams.rows
        values["tidegate/outbox/bytes"] = self._streams.bytes
        for stream in map(self._streams.of, names):
            values[stream.rows_name] = stream.rows
            values[stream.bytes_name] = stream.bytes
        if self._uplinks.several:
            for name, rows in zip(self._uplinks.names, self._uplinks.rows, strict=True):
                self._counters.set(f"tidegate/uplink/{name}/waiting", rows)

    def ended(self, rows: int, outcome: Outcome, reason: str) -> None:
        """Count rows that left without the fleet."""
        if outcome is Outcome.EVICTED:
            self._counters.add(f"tidegate/outbox/evicted/{reason}", rows)
        elif outcome is Outcome.EXPIRED:
            self._counters.add("tidegate/outbox/expired", rows)

    def unwritten(self, rows: int) -> None:
        """Count rows that the fleet took before they had to be written."""
        self._counters.add("tidegate/outbox/unwritten", rows)

    def overflowed(self) -> None:
        """Count a topic of a latest stream whose newest row was forgotten for another's."""
        self._counters.add("tidegate/outbox/latest_overflow")

    def refused(self, *, by_disk: bool) -> None:
        """Count a message that was refused, for want of the disk or of room in the outbox."""
        part = "storage" if by_disk else "outbox"
        self._counters.add(f"tidegate/{part}/rejected")
