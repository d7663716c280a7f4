"""A broker in memory whose sessions are on a disk, which a crash leaves as it was."""

from gateway.access.listeners import Listeners
from gateway.broker.restore import restore
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.disk.sqlite_disk import SqliteDisk


class DurableHarness(Harness):
    """Every turn is committed at once, unless `commits` is False; then `commit` does it.

    `crash` forgets what was not committed.
    """

    disk: SqliteDisk

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        self.settings = settings
        self.listeners = Listeners()  # also of who is away when it starts
        self.commits = True
        self._start(SqliteDisk(), 1_000.0, 1_763_740_000_000)

    def _start(self, disk: SqliteDisk, now: float, wall: int) -> None:
        store, kept = disk.restore(now, wall)
        super().__init__(self.settings, disk, store)
        self.now, self.wall = now, wall
        disk.reading.counters = self.counters
        self.broker.listeners = self.listeners
        restore(self.broker, kept, self.instant)

    def settle(self) -> None:
        super().settle()
        self.disk.time = self.now, self.wall
        self.disk.run_steps()
        super().settle()
        while self.commits and self.disk.due():
            self.disk.commit()
            self.disk.run_steps()
            super().settle()

    def crash(self, seconds: float = 1.0) -> None:
        """Lose all connections and what is not on disk; start again `seconds` later."""
        self._start(self.disk, self.now + seconds, self.wall + int(1000 * seconds))

    def set_clock(self, seconds: float) -> None:
        """Set the wall clock forward, or back, and let the broker see it."""
        self.pass_time(10)
        self.wall += int(1000 * seconds)
        self.pass_time(10)

    def reboot(self, seconds: float) -> None:
        """Do the same with a monotonic clock that begins anew."""
        self._start(self.disk, 10.0, self.wall + int(1000 * seconds))


def away(harness: Harness, topic_filter: str = "t", name: str = "c", qos: int = 2) -> None:
    """Leave a persistent session behind that is subscribed and has no connection."""
    client = harness.persistent(name)
    client.subscribe(topic_filter, qos)
    client.drop()
