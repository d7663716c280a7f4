"""What sessions keep on disk, against a model that knows nothing of rows: a list of messages."""

import copy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.mqtt.output import Barrier
from gateway.mqtt.properties import Properties
from gateway.session.kept import KeptSession, KeptSubscription
from gateway.session.span import Span
from gateway.storage.broker_store import BrokerStore
from gateway.storage.kept_size import kept_size
from gateway.storage.session_journal import SessionJournal
from tests.support.publications import publish
from tests.support.sqlite_disk import SqliteDisk

NAMES = ["a", "b", "c"]
FILTERS = ["t/+", "#", "$share/g/t"]
PACKET_IDS = [1, 700, 65_436]

NEVER = Barrier()
NEVER.add()
"""The barrier of an answer that waits for a commit alone."""


@dataclass
class Owed:
    """A message that a session is owed, as the model sees it."""

    payload: bytes
    qos: int
    topic_filter: str
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


@dataclass
class Held:
    """A span in memory, and its messages that are not done: their places behind its first."""

    span: Span
    left: list[int]

    def payload(self, place: int) -> bytes:
        return self.span.publication.packets.one(self.span.first + place)

    @property
    def kept(self) -> int:
        """The bytes on disk; as it was read a single one takes what it took when it was written."""
        span = self.span
        if span.count == 1:
            return span.kept
        return sum(kept_size(span.publication, span.first + place, 1) for place in self.left)


def held(span: Span) -> Held:
    return Held(span, [*range(span.count)])


@dataclass
class Promise:
    """What a publisher is told: after this commit, or when the barrier is settled."""

    payloads: set[bytes]
    barrier: Barrier
    commit: int


def seen(kept: KeptSession) -> Modelled:
    """Return what was read from the disk as the model would have it."""
    owed = [
        Owed(
            span.publication.packets.one(span.first + place),
            span.qos,
            span.topic_filter,
            span.subscription_identifiers,
            span.packet_id and span.packet_id + place,
            each.released,
        )
        for each in kept.spans
        for span in [each.span]
        for place in range(span.count)
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
    """Does to journals what sessions do; `committed` is what a crash must leave.

    A deferred write may be missing there (`perhaps`), with all that came behind it at QoS 1, until
    the batch after the next is on disk; but not if its publisher was told otherwise (`promises`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.disk = SqliteDisk()
        self.model: dict[str, Modelled] = {}
        self.committed: dict[str, Modelled] = {}
        self.journals: dict[str, SessionJournal] = {}
        self.held: dict[str, list[Held]] = {}
        self.deferred: set[bytes] = set()  # since the last commit
        self.perhaps: set[bytes] = set()
        self.promises: list[Promise] = []
        self.sent = 0
        self.packet_id = 1
        self.restart()

    def restart(self) -> None:
        promised = self.promised()
        self.store: BrokerStore
        self.store, kept = self.disk.restore(0.0, 0)
        found = {each.client_id: seen(each) for each in kept.sessions}
        for name, session in self.committed.items():
            there = {each.payload for each in found[name].owed}
            written = [each for each in session.owed if each.payload in there]
            missing = [each for each in session.owed if each.payload not in there]
            latest = max((int(each.payload) for each in written if each.qos == 1), default=0)
            for each in missing:
                assert each.payload in self.perhaps, each
                assert int(each.payload) > latest, each  # nothing behind it is there
            session.owed = written
        assert found == self.committed
        for name, session in self.model.items():
            there = {each.payload for each in found[name].owed} if name in found else set()
            still = {each.payload for each in session.owed} & promised
            assert still <= there, (name, still - there)
        self.model = found
        self.committed = copy.deepcopy(found)
        self.journals = {each.client_id: each.journal for each in kept.sessions}  # type: ignore[misc]  # ours
        self.held = {
            each.client_id: [held(one.span) for one in each.spans] for each in kept.sessions
        }
        self.promises, self.perhaps, self.deferred = [], set(), set()
        for name in NAMES[:2]:
            self.keep(name, 60)

    def promised(self) -> set[bytes]:
        """Return the messages whose publishers were told that they are kept, until acknowledged."""
        return {
            payload
            for promise in self.promises
            if self.disk.committed >= promise.commit or not promise.barrier.outstanding
            for payload in promise.payloads
        }

    @rule(what=st.sampled_from(["commit", "commit", "commit twice", "crash"]))
    def commits_or_crashes(self, what: str) -> None:
        if what == "crash":
            self.restart()
            return
        for _ in range(1 + (what == "commit twice")):
            self.disk.commit()
            self.committed = copy.deepcopy(self.model)
            self.perhaps, self.deferred = self.deferred, set()

    @rule(
        name=st.sampled_from(NAMES),
        what=st.sampled_from(["keep", "keep", "leave", "leave", "leave", "leave", "end"]),
        expiry=st.sampled_from([60, 3600]),
    )
    def comes_or_goes(self, name: str, what: str, expiry: int) -> None:
        if what == "keep" or name not in self.model:
            self.keep(name, expiry)
        elif what == "leave":
            self.journals[name].leave(17)
            self.model[name].left_at = 17
        else:
            self.journals.pop(name).close([each.span for each in self.held.pop(name)])
            del self.model[name]

    def keep(self, name: str, expiry: int) -> None:
        if name not in self.model:
            self.journals[name] = self.store.open(name, 0.0)
            self.model[name] = Modelled(expiry, None)
            self.held[name] = []
        self.journals[name].keep(expiry, "u")
        self.model[name].expiry_interval = expiry
        self.model[name].username = "u"
        self.model[name].left_at = None

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        count=st.sampled_from([1, 2, 5, 5, 100]),
        qos=st.sampled_from([1, 1, 1, 2]),
        topic_filter=st.sampled_from(["", "$share/g/t"]),
        defer=st.sampled_from(["all", "some", "none"]),
        said=st.sampled_from([{}, {"content_type": "t"}, {"message_expiry_interval": 9}]),
        even=st.booleans(),
    )
    def publish(
        self,
        data: st.DataObject,
        count: int,
        qos: int,
        topic_filter: str,
        defer: str,
        said: dict[str, object],
        even: bool,
    ) -> None:
        count = min(count, 5) if qos == 2 else count
        numbers = range(self.sent + 1, self.sent + 1 + count)
        self.sent += count
        payloads = [b"%d" % number if not even else b"%09d" % number for number in numbers]
        publication = publish(payloads, qos, topic="t", properties=Properties(**said))  # type: ignore[arg-type]  # by name
        publication.received_at = 0
        publication.barrier = barrier = Barrier()
        deferred, changes = self.store.pending.deferred, self.store.pending.changes
        names = data.draw(st.sets(st.sampled_from(sorted(self.model)), min_size=1))
        for place, name in enumerate(sorted(names)):
            first = data.draw(st.sampled_from([0, 0, count // 2]))  # the window takes a part
            put_off = qos == 1 and (defer == "all" or (defer == "some" and not place))
            identifiers = data.draw(st.sampled_from([(), (1,), (3, 268_435_455)]))
            for begin, end in ((0, first), (first, count)):
                if begin < end:
                    span = Span(
                        publication, begin, end - begin, qos, False, identifiers, topic_filter
                    )
                    self._owe(name, span, put_off)
        publication.barrier = None
        commit = 0
        if self.store.pending.deferred != deferred:
            commit = self.store.deferred_commit
            self.deferred |= set(payloads)
        if self.store.pending.changes != changes:  # as the broker answers
            commit, barrier = max(commit, self.disk.batch), NEVER
        self.promises.append(Promise(set(payloads), barrier, commit))

    def _owe(self, name: str, span: Span, put_off: bool) -> None:
        pieces = [span]
        if span.qos == 2:
            pieces = [span.part(span.first + place, 1) for place in range(span.count)]
        for each in pieces:
            self.model[name].owed += [
                Owed(
                    each.publication.packets.one(each.first + place),
                    each.qos,
                    each.topic_filter,
                    each.subscription_identifiers,
                )
                for place in range(each.count)
            ]
            self.journals[name].owe(each, put_off)
            self.held[name].append(held(each))

    def one(self, data: st.DataObject) -> str:
        """Return a session that is owed something."""
        return data.draw(st.sampled_from([each for each in self.model if self.held[each]]))

    def of(self, name: str, each: Held) -> list[Owed]:
        """Return what the model has of a span."""
        wanted = {each.payload(place) for place in each.left}
        return [owed for owed in self.model[name].owed if owed.payload in wanted]

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data(), times=st.sampled_from([1, 1, 2, 5, 10, 1_000]))
    def done(self, data: st.DataObject, times: int) -> None:
        """Finish some messages one behind the other, mostly of the oldest span."""
        name = self.one(data)
        for _ in range(times):
            spans = self.held[name]
            if not spans:
                return
            if times == 1_000:  # all, in order, as they were sent
                self.finish(name, spans[0], spans[0].left[0], 1)
                continue
            each = spans[data.draw(st.sampled_from([0, 0, len(spans) // 2, len(spans) - 1]))]
            first = each.left[data.draw(st.sampled_from([0, 0, len(each.left) // 2]))]
            behind = [place for place in each.left if place >= first]
            together = [at for at, place in enumerate(behind) if place == first + at]
            most = len(together)
            self.finish(name, each, first, data.draw(st.sampled_from([1, -(-most // 2), most])))

    def finish(self, name: str, each: Held, first: int, count: int) -> None:
        gone = {each.payload(place) for place in range(first, first + count)}
        self.journals[name].done(each.span, each.span.first + first, count)
        each.left = [place for place in each.left if not first <= place < first + count]
        owed = self.model[name].owed
        self.model[name].owed = [one for one in owed if one.payload not in gone]
        if not each.left:
            self.held[name].remove(each)

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data(), room=st.sampled_from([1, 2, 4, 30, 1_000]), leaves=st.booleans())
    def sends(self, data: st.DataObject, room: int, leaves: bool) -> None:
        """Send so many messages; packet identifiers of QoS 1 are noted when the client leaves."""
        name = self.one(data)
        spans = self.held[name]
        for place in range(len(spans)):
            if room and not spans[place].span.packet_id:
                each = self._cut(spans, place, room)
                room = max(0, room - each.span.count)
                self._send(name, each)
        for each in spans if leaves else []:
            if each.span.packet_id and each.span.qos == 1:
                self.journals[name].identify(each.span)
                self._note(name, each)

    def _cut(self, spans: list[Held], place: int, room: int) -> Held:
        """Return what of a span there is room for; the rest stays behind it."""
        each = spans[place]
        if each.span.count > room and len(each.left) == each.span.count:
            parts = each.span.split(room)
            assert sum(part.kept for part in parts) == each.span.kept
            spans[place : place + 1] = [held(part) for part in parts]
        return spans[place]

    def _send(self, name: str, each: Held) -> None:
        span = each.span
        span.packet_id = self.packet_id
        self.packet_id = 1 + (self.packet_id + span.count) % 60_000
        if span.qos == 2:
            assert self.journals[name].sent(span) == self.disk.batch
            self._note(name, each)

    def _note(self, name: str, each: Held) -> None:
        for place, one in zip(each.left, self.of(name, each), strict=True):
            one.packet_id = each.span.packet_id + place

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data())
    def releases(self, data: st.DataObject) -> None:
        name = self.one(data)
        for each in self.held[name][:3]:
            if each.span.qos == 2 and each.span.packet_id:
                assert self.journals[name].released(each.span) == self.disk.batch
                self.of(name, each)[0].released = True

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        what=st.sampled_from(["take", "forget", "subscribe", "unsubscribe"]),
        packet_ids=st.sets(st.sampled_from(PACKET_IDS)),
        topic_filter=st.sampled_from(FILTERS),
        where=st.sampled_from([None, "value > 'ü'"]),
        flag=st.booleans(),
        identifier=st.sampled_from([None, 1]),
    )
    def says_something(
        self,
        data: st.DataObject,
        what: str,
        packet_ids: set[int],
        topic_filter: str,
        where: str | None,
        flag: bool,
        identifier: int | None,
    ) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        journal, session = self.journals[name], self.model[name]
        if what == "take":
            journal.keep_incoming(sorted(packet_ids))
            session.incoming |= packet_ids
        elif what == "forget":
            journal.forget_incoming(sorted(packet_ids))
            session.incoming -= packet_ids
        elif what == "subscribe":
            kept = KeptSubscription(
                topic_filter, 1, flag, not flag, identifier, where, flag, not flag
            )
            journal.subscribe(kept)
            session.subscriptions[topic_filter] = kept
        else:
            journal.unsubscribe(topic_filter)
            session.subscriptions.pop(topic_filter, None)

    @invariant()
    def what_is_written_is_what_is_owed(self) -> None:
        if self.disk.wanted is not None or self.perhaps or self.deferred:
            return  # not all is on disk
        owed = [each for session in self.committed.values() for each in session.owed]
        ask = self.disk.connection.execute
        messages, size = ask("SELECT total(messages), total(size) FROM delivery").fetchone()
        assert messages == len(owed) == self.store._sessions._deliveries
        assert size == sum(each.kept for spans in self.held.values() for each in spans)
        assert self.disk.count("session") == len(self.committed)
        if not owed:  # otherwise what is owed no more may stay
            assert (self.disk.count("message"), self.disk.count("delivery")) == (0, 0)


SessionStoreMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None
)
TestSessionsAgainstModel = SessionStoreMachine.TestCase
