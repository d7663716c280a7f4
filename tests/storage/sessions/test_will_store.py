"""Wills on disk, from CONNECT until they are published or withdrawn."""

from gateway.access.listeners import Origin
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import Properties
from gateway.session.restored import RestoredWill
from gateway.storage.sessions.broker_store import BrokerStore
from tests.support.disk.sqlite_disk import SqliteDisk

HALL = Origin("0.0.0.0:1883", local=False, proven=True)
WILL = Will(
    "t",
    b"gone",
    2,
    True,
    Properties(
        payload_format_indicator=1,
        message_expiry_interval=60,
        content_type="text",
        response_topic="r",
        correlation_data=b"c",
        will_delay_interval=5,
        user_properties=(("k", "v"), ("k", "w")),
    ),
)


def after_a_crash(disk: SqliteDisk) -> tuple[BrokerStore, list[RestoredWill]]:
    store, kept = disk.restore(0.0, 0)
    return store, kept.wills


def test_a_will_comes_back_as_it_was() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("c", "u", HALL, WILL)
    store.store_will("plain", None, HALL, Will("t", b""))
    assert (disk.pending.changes, disk.wanted) == (2, 0.0)
    disk.commit()
    _, wills = after_a_crash(disk)
    assert wills == [
        RestoredWill("c", "u", WILL, origin=HALL),
        RestoredWill("plain", None, Will("t", b""), origin=HALL),
    ]


def test_a_new_will_takes_the_place_of_the_last_one_with_its_deadline() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("c", "u", HALL, WILL)
    store.postpone_will("c", 17)
    disk.commit()
    store, wills = after_a_crash(disk)
    assert wills == [RestoredWill("c", "u", WILL, 17, HALL)]
    store.postpone_will("c", 18)
    disk.commit()
    assert after_a_crash(disk)[1] == [RestoredWill("c", "u", WILL, 18, HALL)]
    store, _ = after_a_crash(disk)
    store.store_will("c", None, HALL, WILL)
    disk.commit()
    assert after_a_crash(disk)[1] == [RestoredWill("c", None, WILL, origin=HALL)]


def test_a_will_that_is_dropped_is_gone() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("c", "u", HALL, WILL)
    disk.commit()
    store, _ = after_a_crash(disk)
    store.drop_will("c")
    store.drop_will("c")  # it has none any more: nothing to write
    store.drop_will("never")
    assert disk.pending.changes == 1
    disk.commit()
    assert after_a_crash(disk)[1] == []


def test_a_will_that_makes_no_sense_is_left_out() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("c", "u", HALL, WILL)
    disk.commit()
    disk.connection.execute("UPDATE will SET qos = 3")
    assert after_a_crash(disk)[1] == []


def test_a_client_that_comes_and_goes_within_a_batch_has_its_last_will() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("c", "u", HALL, WILL)
    disk.commit()
    for username in ("v", "w"):
        store.drop_will("c")
        store.store_will("c", username, HALL, WILL)
    store.store_will("new", "v", HALL, WILL)
    store.drop_will("new")
    store.store_will("new", "w", HALL, WILL)
    store.store_will("twice", "v", HALL, WILL)
    store.store_will("twice", "w", HALL, WILL)
    disk.commit()
    assert sorted(after_a_crash(disk)[1], key=lambda kept: kept.client_id) == [
        RestoredWill(client_id, "w", WILL, origin=HALL) for client_id in ("c", "new", "twice")
    ]


def test_first_wills_are_inserted_side_by_side_and_nothing_is_deleted_for_them() -> None:
    disk = SqliteDisk()
    store, _ = after_a_crash(disk)
    store.store_will("old", None, HALL, WILL)
    disk.commit()
    for client_id in ("a", "old", "b"):
        store.store_will(client_id, None, HALL, WILL)
    for gather in disk.before_batch:
        gather()
    written = [(statement.split()[0], row[0]) for statement, row in disk.rows]
    inserts = [("INSERT", client_id) for client_id in ("a", "old", "b")]
    assert written == [("DELETE", "old"), *inserts]
