import gc

from gateway.storage.outbox.fetched_rows import FetchedRows
from tests.support.disk.storage import outbox_row


def test_what_is_held_is_the_same_object_however_often_it_is_read() -> None:
    fetched = FetchedRows()
    [first] = fetched.known([outbox_row(1, identifier=7)])
    first.taken = True
    [again, other] = fetched.known([outbox_row(1, identifier=7), outbox_row(2, identifier=8)])
    assert again is first
    assert (fetched.is_taken(7), fetched.is_taken(8)) == (True, False)
    fetched.leaves(outbox_row(2, identifier=8))
    assert (first.left, other.left) == (False, True)


def test_what_nobody_holds_is_forgotten() -> None:
    fetched = FetchedRows()
    [row] = fetched.known([outbox_row(1, identifier=7)])
    row.taken = True
    del row
    gc.collect()
    assert not fetched.is_taken(7)
    fetched.leaves(outbox_row(1, identifier=7))
    [row] = fetched.known([outbox_row(1, identifier=7)])
    assert not row.left
