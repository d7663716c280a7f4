"""What sessions keep on disk, against a model."""

import copy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.output import Pledge
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery, SharedDelivery
from gateway.session.kept import KeptSession, KeptSubscription
from gateway.storage.broker_store import BrokerStore
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
        awaits=st.booleans(),
    )
    def subscribe(
        self,
        data: st.DataObject,
        topic_filter: str,
        where: str | None,
        flag: bool,
        identifier: int | None,
        awaits: bool,
    ) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        kept = KeptSubscription(topic_filter, 1, flag, not flag, identifier, where, flag, awaits)
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
