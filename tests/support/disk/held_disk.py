"""A durability in memory: what is gathered is on disk once a test says so."""

from gateway.mqtt.output import Pending


class Disk:
    """A durability whose batches reach the disk when `commit` is called."""

    def __init__(self) -> None:
        self.pending = Pending()
        self.pending_rows = 0
        self.batch = 1
        self.committed = 0

    def gather(self, rows: int = 1) -> None:
        self.pending.changes += rows
        self.pending_rows += rows

    def commit_number(self) -> int:
        return self.batch if self.pending_rows else 0

    def commit(self) -> None:
        self.committed = self.batch
        self.batch += 1
        self.pending_rows = 0
