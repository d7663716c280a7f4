"""How changes are announced."""

from gateway.storage.engine.pending_batch import PendingBatch
from tests.support.disk.sqlite_disk import SqliteDisk


def test_a_commit_number_makes_due_what_was_put_off() -> None:
    disk = SqliteDisk()
    pending = PendingBatch(disk)
    assert pending.commit_number() == 0
    assert disk.wanted is None  # there is nothing to wait for
    pending.put_off()
    assert pending.commit_number() == 1
    assert disk.wanted == 0.0


def test_a_deferred_write_is_announced_when_its_turn_has_come() -> None:
    disk = SqliteDisk()
    pending = PendingBatch(disk)
    pending.defer()
    assert disk.commit_number() == 0
    assert (disk.pending.deferred, pending.deferred_commit) == (1, 2)
    pending.committed(1)
    assert disk.wanted == disk.commit_delay / 2
    disk.wanted = None
    pending.committed(2)
    assert disk.wanted is None


def test_a_commit_number_of_a_batch_that_is_on_its_way_makes_nothing_due() -> None:
    disk = SqliteDisk()
    pending = PendingBatch(disk)
    pending.changed()
    disk.wanted, disk.batch = None, 2  # closed, and not on disk yet
    disk.rows.append(("", ()))
    disk.commit_number = lambda: 1  # type: ignore[method-assign]  # as the writer says then
    assert pending.commit_number() == 1
    assert disk.wanted is None
