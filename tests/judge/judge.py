"""Compares the broker with the naive one, after every step, by what is allowed.

Messages of one publisher, topic and QoS have an order; others do not. Of a shared subscription
exactly one member gets each message, whoever that is. A client that reads and answers has all that
it is owed; one that does not has as much as its window holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.broker.settings import BrokerSettings
from tests.conformance.support import wire
from tests.conformance.support.answers import body, read_connack
from tests.judge.disagreement import check
from tests.judge.driver import Driver
from tests.judge.items import WHERE
from tests.judge.listener import Listener
from tests.judge.messages import Copy, Message, Subscription, always
from tests.judge.naive_broker import NaiveBroker, Session
from tests.judge.player import Player, Profile
from tests.judge.publishing import Publishing
from tests.judge.queue_bounds import QueueBounds
from tests.judge.shared_copies import SharedCopies


@dataclass(frozen=True, slots=True)
class Request:
    """One topic filter of a SUBSCRIBE with its options."""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    handling: int = 0

    @property
    def options(self) -> int:
        flags = self.no_local * wire.NO_LOCAL | self.retain_as_published * wire.RETAIN_AS_PUBLISHED
        return self.qos | flags | self.handling << 4


class Judge:
    """Both brokers and all clients."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        settings: BrokerSettings | None = None,
        *,
        durable: bool = False,
    ) -> None:
        self.driver = Driver(settings, durable=durable)
        self.naive = NaiveBroker()
        self.naive.now = self.driver.now
        self.players = {each.name: Player(each) for each in profiles}
        self.refused = 0
        self.unrouted = 0  # that came again
        self.crashed = False
        self.bounds = QueueBounds(self)
        self.shared = SharedCopies(self)
        self._listener = Listener(self)
        self.exchange = self._listener.exchange
        self.answer = self._listener.answer
        self.publishing = Publishing(self)

    @property
    def routed(self) -> int:
        """How many messages asked for the admission of their topic, those refused included."""
        return self.naive.published + self.refused

    # What clients do.

    def connect(self, name: str, clean: bool, will: Message | None) -> None:
        player, profile = self.players[name], self.players[name].profile
        old = player.link
        if old is not None and not old.reads:
            player.lose()
        before = self.naive.sessions.get(name)
        if before is not None and before.connected:
            self._leaves(name)
        if clean and before is not None:
            self._ends(name)
        present = self.naive.connect(name, clean, profile.keeps(clean), will)
        link = self.driver.open(player.version)
        goodbye = will and wire.Will(will.topic, will.payload, will.qos, will.retain)
        link.say(profile.connect(clean, goodbye or None))
        if old is not None:
            check(old.closed or not old.reads, f"{name}: the old connection is still open")
            if old.reads and player.version == wire.MQTT_5:
                last = old.inbox[-1] if old.inbox else b""
                check(last[:1] == b"\xe0" and body(last)[0] == 0x8E, f"{name}: {last!r} at the end")
            old.drop()
        connack = read_connack(link.inbox.pop(0), player.version)
        check(connack.code == 0, f"{name}: refused with 0x{connack.code:02X}")
        flags = present and player.version > wire.MQTT_3_1  # which knows of no such flag
        check(connack.flags == flags, f"{name}: Session Present {connack.flags}, not {flags}")
        player.begin(link, present)
        self.exchange()
        again = player.begin_again()
        if again:
            self.publishing.again(player.unanswered)
            link.say(again)
            self.exchange()

    def drop(self, name: str) -> None:
        """Lose a connection."""
        player = self.players[name]
        assert player.link is not None
        link = player.link
        player.lose()
        self._leaves(name)
        self.naive.leave(name)
        link.drop()
        self.exchange()

    def say_goodbye(self, name: str, *, leaves_will: bool = False) -> None:
        player = self.players[name]
        assert player.link is not None
        link = player.link
        player.lose()
        self._leaves(name)
        leaves_will = leaves_will and player.version == wire.MQTT_5
        self.naive.leave(name, says_goodbye=not leaves_will)
        link.say(wire.disconnect(0x04 if leaves_will else None))
        check(link.closed or not link.reads, f"{name}: open after DISCONNECT")
        link.drop()
        self.exchange()

    def _leaves(self, name: str) -> None:
        """Note that what a client was given at QoS 0 and has not read may be lost."""
        for choice in self.naive.choices:
            copy = choice.copies.get(name)
            if copy is not None and copy.qos == 0:
                choice.loose = True
        session = self.naive.sessions[name]
        if not session.expiry:
            self._ends(name)

    def _ends(self, name: str) -> None:
        self.players[name].forget()

    def subscribe(
        self,
        name: str,
        requests: Sequence[Request],
        identifier: int | None = None,
        where: str | None = None,
    ) -> None:
        player, session = self.players[name], self.naive.sessions[name]
        link = player.link
        assert link is not None
        for request in requests:
            share, topic_filter = "", request.topic_filter
            if topic_filter.startswith("$share/"):
                share, topic_filter = topic_filter, topic_filter.split("/", 2)[2]
            self._replays_no_more(session, request.topic_filter, request.handling)
            one = Subscription(
                topic_filter,
                request.qos,
                share,
                request.no_local,
                request.retain_as_published,
                identifier,
                WHERE[where] if where else always,
            )
            full = self.bounds.may_be_full(session)
            before = len(session.owed)
            self.naive.subscribe(name, request.topic_filter, one, request.handling)
            waiting = {
                copy.message.number: copy
                for copy in session.owed[:before]
                if copy.replay == request.topic_filter
            }
            for copy in session.owed[before:]:
                copy.optional = full or self.bounds.may_be_full(session)
                copy.first = waiting.get(copy.message.number)
        properties = b""
        if identifier is not None:
            properties += wire.subscription_identifier(identifier)
        if where is not None:
            properties += wire.user_property("$where", where)
        asked = [(request.topic_filter, request.options) for request in requests]
        player.awaited.append(wire.suback(player.version, 9, *[each.qos for each in requests]))
        link.say(wire.subscribe(player.version, 9, *asked, properties=properties))
        self.exchange()

    @staticmethod
    def _replays_no_more(session: Session, name: str, handling: int) -> None:
        """Note that a replay which has not ended yet ends where another begins."""
        for copy in session.owed:
            if copy.replay == name and handling != 2:
                copy.optional = True

    def unsubscribe(self, name: str, topic_filters: Sequence[str]) -> None:
        player, session = self.players[name], self.naive.sessions[name]
        link = player.link
        assert link is not None
        codes = []
        for topic_filter in topic_filters:
            self._replays_no_more(session, topic_filter, 0)
            codes.append(0 if self.naive.unsubscribe(name, topic_filter) else 0x11)
        player.awaited.append(wire.unsuback(player.version, 9, *codes))
        link.say(wire.unsubscribe(player.version, 9, *topic_filters))
        self.exchange()

    def limit(self, player: Player) -> int:
        theirs = player.profile.receive_maximum or 65_535
        return min(theirs, self.driver.settings.maximum_inflight)

    def may_stay_out(self, player: Player, copy: Copy) -> bool:
        """Return whether a copy need not come: it is optional, has expired or is too large."""
        limit = player.profile.maximum_packet_size
        return (
            copy.optional
            or (copy.first is not None and copy.first.came)
            or copy.message.expires <= self.naive.now
            or (limit > 0 and copy.size(player.version) > limit)
        )

    # What time and trouble do.

    def pass_time(self, seconds: float) -> None:
        self.driver.pass_time(seconds)
        self.tell_time()
        self.exchange()

    def tell_time(self) -> None:
        before = set(self.naive.sessions)
        self.naive.pass_time(self.driver.now)
        for name in before - set(self.naive.sessions):
            self._ends(name)

    def power_cut(self, publishes: Sequence[tuple[str, Sequence[tuple[Message, int]]]]) -> None:
        """Crash while what is published is not on disk."""
        self.driver.commits = False
        accepted = [
            (name, self.publishing.hand_over(name, messages)) for name, messages in publishes
        ]
        self.driver.settle()
        for name, messages in accepted:
            self.publishing.taken(name, messages, all_of_them=False)
        self.exchange()
        self.driver.commits = True
        self.crash()

    def crash(self) -> None:
        """Let the broker lose what is not on disk, and start again."""
        self.crashed = True
        gone = []
        for name, player in self.players.items():
            session = self.naive.sessions.get(name)
            if session is not None and session.connected:
                session.will = None
                self._leaves(name)
                self.naive.leave(name)
                gone.append(session)
            player.crashed()
        self.driver.crash()
        for session in gone:  # nobody knows when they left but that it was before the new start
            session.ends = self.driver.started + session.expiry
        self.tell_time()
        self.exchange()
