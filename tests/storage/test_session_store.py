"""The store of sessions against a model in memory, with crashes that lose the uncommitted."""

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.counters import Counters
from gateway.mqtt.output import Pledge
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery, SharedDelivery
from gateway.session.kept import KeptSession, KeptSubscription
from gateway.storage.broker_store import BrokerStore
from gateway.storage.gathering import PUT_OFF
from gateway.storage.session_journal import SessionJournal
from tests.support.queues import single
from tests.support.sqlite_disk import SqliteDisk

NAMES = ["a", "b", "c"]
FILTERS = ["t/+", "#", "$share/g/t"]
PACKET_IDS = [1, 2, 65_535]


@dataclass
class Owed:
    """What a session is owed, as the model sees it."""

    payload: bytes
    qos: int
    shared: bool
    identifiers: tuple[int, ...]
    packet_id: int = 0
    released: bool = False


@dataclass
class Modelled:
    """A session of the model."""

    expiry_interval: int
    username: str | None
    left_at: int | None = None
    owed: list[Owed] = field(default_factory=list)
    subscriptions: dict[str, KeptSubscription] = field(default_factory=dict)
    incoming: set[int] = field(default_factory=set)


def seen(kept: KeptSession) -> Modelled:
    """Return what was read from the disk as the model would have it."""
    owed = [
        Owed(
            single(each.delivery).message.payload,
            each.delivery.qos,
            isinstance(each.delivery, SharedDelivery),
            single(each.delivery).subscription_identifiers,
            each.packet_id,
            each.released,
        )
        for each in kept.deliveries
    ]
    return Modelled(
        kept.expiry_interval,
        kept.username,
        kept.left_at,
        owed,
        {each.topic_filter: each for each in kept.subscriptions},
        set(kept.incoming),
    )


class SessionStoreMachine(RuleBasedStateMachine):
    """Does to journals what sessions do; `committed` is what a crash must leave."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SqliteDisk()
        self.model: dict[str, Modelled] = {}
        self.committed: dict[str, Modelled] = {}
        self.journals: dict[str, SessionJournal] = {}
        self.deliveries: dict[str, list[Delivery]] = {}
        self.lent: set[int] = set()  # ids of deliveries that the next batch may leave out
        self.sent = 0
        self.restart()

    def restart(self) -> None:
        self.store: BrokerStore
        self.store, kept = self.disk.restore(0.0, 0)
        self.model = {each.client_id: seen(each) for each in kept.sessions}
        assert self.model == self.committed
        self.journals = {each.client_id: each.journal for each in kept.sessions}  # type: ignore[misc]  # ours
        self.deliveries = {
            each.client_id: [single(one.delivery) for one in each.deliveries]
            for each in kept.sessions
        }

    @rule()
    def crash(self) -> None:
        self.restart()

    @rule()
    def commit(self) -> None:
        self.disk.commit()
        self.disk.commit()  # what is lent goes with the second
        self.committed = copy.deepcopy(self.model)

    @rule(name=st.sampled_from(NAMES), expiry=st.sampled_from([60, 3600]))
    def keep(self, name: str, expiry: int) -> None:
        if name not in self.model:
            self.journals[name] = self.store.open(name, 0.0)
            self.model[name] = Modelled(expiry, None)
            self.deliveries[name] = []
        self.journals[name].keep(expiry, "u")
        self.model[name].expiry_interval = expiry
        self.model[name].username = "u"
        self.model[name].left_at = None

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.journals[name].leave(17)
        self.model[name].left_at = 17

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.journals.pop(name).close(self.deliveries.pop(name))
        del self.model[name]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), qos=st.sampled_from([1, 2]), shared=st.booleans(), lend=st.booleans())
    def publish(self, data: st.DataObject, qos: int, shared: bool, lend: bool) -> None:
        names = data.draw(st.sets(st.sampled_from(sorted(self.model)), min_size=1))
        self.sent += 1
        payload = b"%d" % self.sent
        message = Message("t", payload, qos, received_at=0)
        message.pledge = Pledge(0)
        for name in names:
            identifiers = data.draw(st.sampled_from([(), (1,), (3, 268_435_455)]))
            delivery = Delivery(message, qos, subscription_identifiers=identifiers)
            if shared:
                delivery = SharedDelivery(
                    message, qos, subscription_identifiers=identifiers, topic_filter="$share/g/t"
                )
            lent = lend and qos == 1
            (self.journals[name].lend if lent else self.journals[name].owe)(delivery)
            self.deliveries[name].append(delivery)
            self.model[name].owed.append(Owed(payload, qos, shared, identifiers))

    def one(self, data: st.DataObject) -> tuple[str, int]:
        """Return a session and the index of something that it is owed."""
        name = data.draw(st.sampled_from([each for each in self.model if self.deliveries[each]]))
        return name, data.draw(st.integers(0, len(self.deliveries[name]) - 1))

    @precondition(lambda self: any(self.deliveries.values()))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        name, index = self.one(data)
        delivery = self.deliveries[name].pop(index)
        self.journals[name].done(delivery)
        self.journals[name].done(delivery)  # nothing more happens
        del self.model[name].owed[index]

    @precondition(lambda self: any(self.deliveries.values()))
    @rule(data=st.data(), packet_id=st.sampled_from(PACKET_IDS))
    def progress(self, data: st.DataObject, packet_id: int) -> None:
        name, index = self.one(data)
        delivery, journal = self.deliveries[name][index], self.journals[name]
        owed = self.model[name].owed[index]
        if owed.qos == 1:
            if self.model[name].left_at is None:
                return  # packet identifiers of QoS 1 are noted when the client has gone
            journal.identify(delivery, packet_id)
            owed.packet_id = packet_id
        elif not owed.packet_id:
            assert journal.sent(delivery, packet_id) == self.disk.batch
            owed.packet_id = packet_id
        else:
            assert journal.released(delivery) == self.disk.batch
            owed.released = True

    @precondition(lambda self: self.model)
    @rule(data=st.data(), packet_id=st.sampled_from(PACKET_IDS), take=st.booleans())
    def incoming(self, data: st.DataObject, packet_id: int, take: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if take:
            self.journals[name].take(packet_id)
            self.model[name].incoming.add(packet_id)
        else:
            self.journals[name].let_go(packet_id)
            self.model[name].incoming.discard(packet_id)

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        topic_filter=st.sampled_from(FILTERS),
        where=st.sampled_from([None, "value > 'ü'"]),
        flag=st.booleans(),
        identifier=st.sampled_from([None, 1]),
    )
    def subscribe(
        self,
        data: st.DataObject,
        topic_filter: str,
        where: str | None,
        flag: bool,
        identifier: int | None,
    ) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        kept = KeptSubscription(topic_filter, 1, flag, not flag, identifier, where, flag)
        self.journals[name].subscribe(kept)
        self.model[name].subscriptions[topic_filter] = kept

    @precondition(lambda self: self.model)
    @rule(data=st.data(), topic_filter=st.sampled_from(FILTERS))
    def unsubscribe(self, data: st.DataObject, topic_filter: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.journals[name].unsubscribe(topic_filter)
        self.model[name].subscriptions.pop(topic_filter, None)

    @invariant()
    def no_row_is_left_behind(self) -> None:
        if self.disk.wanted is None:  # all is on disk
            owed = {each.payload for session in self.committed.values() for each in session.owed}
            if owed:  # what is owed no more may stay as long as others are
                assert self.disk.count("message") >= len(owed)
            else:
                assert self.disk.count("message") == 0
            assert self.disk.count("delivery") == sum(
                len(session.owed) for session in self.committed.values()
            )
            assert self.disk.count("session") == len(self.committed)


SessionStoreMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None
)
TestSessionsAgainstModel = SessionStoreMachine.TestCase


@pytest.fixture
def disk() -> SqliteDisk:
    return SqliteDisk()


def opened(disk: SqliteDisk, within: float = 0.0) -> tuple[BrokerStore, SessionJournal]:
    store, _ = disk.restore(0.0, 0)
    return store, store.open("c", within)


def test_changes_are_due_as_the_class_of_the_session_says(disk: SqliteDisk) -> None:
    store, journal = opened(disk, 0.05)
    journal.keep(60, None)
    assert disk.wanted == 0.05
    assert store.changes == 1
    journal.keep(60, None)
    assert store.changes == 1  # it says nothing new
    disk.commit()
    journal.leave(5)
    assert disk.wanted == PUT_OFF


@pytest.mark.parametrize(("within", "wanted"), [(0.0, 0.0), (0.05, 0.05)])
def test_deliveries_are_due_as_the_class_of_their_message_says(
    disk: SqliteDisk, within: float, wanted: float
) -> None:
    _, journal = opened(disk)
    message = Message("t", b"", 1)
    message.commit_within = within
    journal.owe(Delivery(message, 1))
    assert disk.wanted == wanted


def test_what_is_kept_in_memory_alone_has_no_place(disk: SqliteDisk) -> None:
    store, journal = opened(disk)
    message = Message("t", b"", 2)
    message.commit_within = None
    message.pledge = Pledge(0)
    delivery = Delivery(message, 2)
    journal.owe(delivery)
    journal.lend(delivery)
    assert journal.sent(delivery, 1) == journal.released(delivery) == 0
    journal.identify(delivery, 1)
    journal.done(delivery)
    journal.close([delivery])
    assert (delivery.place, message.owed, store.lent) == (0, 0, 0)


def lent_or_owed(journals: list[SessionJournal], number: int, *, lend: bool, qos: int = 1) -> None:
    """Let the sessions have a message: lend it to the first, owe it to the others."""
    message = Message("t", b"%d" % number, qos, received_at=0)
    message.pledge = Pledge(0)
    for place, journal in enumerate(journals):
        (journal.lend if lend and not place else journal.owe)(Delivery(message, qos))


def on_disk(disk: SqliteDisk) -> dict[str, list[bytes]]:
    _, kept = disk.restore(0.0, 0)
    return {
        each.client_id: [single(one.delivery).message.payload for one in each.deliveries]
        for each in kept.sessions
    }


def test_what_is_written_leaves_nothing_lent_before_it_out(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    a, b = store.open("a", 0.0), store.open("b", 0.0)
    a.keep(60, None)
    b.keep(60, None)
    disk.commit()
    lent_or_owed([b], 1, lend=True)  # stands before 3 in b
    lent_or_owed([a], 2, lend=True)  # stands before 3 in a
    lent_or_owed([b, a], 3, lend=True)
    lent_or_owed([a], 4, lend=True)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2", b"3"], "b": [b"1", b"3"]}


def test_the_order_is_that_of_one_qos(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    journal = store.open("a", 0.0)
    journal.keep(60, None)
    lent_or_owed([journal], 1, lend=True)
    lent_or_owed([journal], 2, lend=False, qos=2)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2"]}


@pytest.mark.parametrize(
    ("table", "change", "lost"),
    [
        ("message", "qos = 7", "deliveries"),
        ("message", "user_properties = 'no JSON'", "deliveries"),
        ("message", "topic = CAST(x'ff' AS TEXT)", "deliveries"),
        ("delivery", "qos = 3", "deliveries"),
        ("delivery", "message = 99", "deliveries"),
        ("delivery", "packet_id = 65536", "deliveries"),
        ("delivery", "identifiers = '1 x'", "deliveries"),
        ("subscription", "qos = 3", "subscriptions"),
        ("incoming", "packet_id = 0", "incoming"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out(
    disk: SqliteDisk, table: str, change: str, lost: str
) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    journal.owe(Delivery(Message("t", b"", 1, received_at=0), 1))
    journal.subscribe(KeptSubscription("t", 1))
    journal.take(5)
    disk.commit()
    disk.connection.execute(f"UPDATE {table} SET {change}")
    counters = Counters()
    store, kept = disk.restore(0.0, 0, counters)
    (session,) = kept.sessions
    expected: dict[str, list[Any]] = {
        name: [] for name in ("deliveries", "subscriptions", "incoming") if name == lost
    }
    for name in ("deliveries", "subscriptions", "incoming"):
        assert len(getattr(session, name)) == (0 if name in expected else 1), name
    assert counters.count("tidegate/storage/unreadable") >= 1
    another = store.open("d", 0.0)  # what comes now takes no place of what could not be read
    another.keep(60, None)
    another.owe(Delivery(Message("t", b"new", 1, received_at=0), 1))
    session.journal.owe(Delivery(Message("t", b"new", 1, received_at=0), 1))
    disk.commit()
    _, kept = disk.restore(0.0, 0)
    assert [single(each.deliveries[-1].delivery).message.payload for each in kept.sessions] == [
        b"new"
    ] * 2


def test_messages_that_nobody_is_owed_are_deleted_at_the_start(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    journal.owe(Delivery(Message("t", b"", 1, received_at=0), 1))
    disk.commit()
    disk.connection.execute("DELETE FROM delivery")
    disk.restore(0.0, 0)
    disk.commit()
    assert disk.count("message") == 0


def test_messages_that_are_owed_no_more_stay_while_others_are(
    disk: SqliteDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    deliveries = [Delivery(Message("t", b"x" * 50, 1, received_at=0), 1) for _ in range(4)]
    for delivery in deliveries:
        journal.owe(delivery)
    disk.commit()
    journal.done(deliveries[1])
    disk.commit()
    assert (disk.count("message"), disk.count("delivery")) == (4, 3)
    monkeypatch.setattr("gateway.storage.message_store.MAXIMUM_DEAD_BYTES", 300)
    journal.done(deliveries[0])
    disk.commit()  # 300 bytes with what is counted for a row
    assert (disk.count("message"), disk.count("delivery")) == (2, 2)
    journal.done(deliveries[2])
    disk.commit()
    assert disk.count("message") == 2
    _, kept = disk.restore(0.0, 0)  # a start finds it
    disk.commit()
    assert disk.count("message") == 1
    kept.sessions[0].journal.done(single(kept.sessions[0].deliveries[0].delivery))
    disk.commit()
    assert disk.count("message") == 0
