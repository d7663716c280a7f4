"""Compares the broker with the naive one, after every step, by what is allowed.

Messages of one publisher, topic and QoS have an order; others do not. Of a shared subscription
exactly one member gets each message, whoever that is. A client that reads and answers has all that
it is owed; one that does not has as much as its window holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from gateway.settings.broker import BrokerSettings
from tests.conformance.support import wire
from tests.conformance.support.answers import body, read_connack
from tests.judge.disagreement import check
from tests.judge.driver import Driver
from tests.judge.inline_uplink import InlineUplink
from tests.judge.items import WHERE
from tests.judge.listener import Listener
from tests.judge.messages import Copy, Subscription, always, matches
from tests.judge.naive_broker import NaiveBroker, Session, Will
from tests.judge.naive_channel import NaiveChannel
from tests.judge.player import Player, Profile
from tests.judge.publishing import Publishing
from tests.judge.queue_bounds import QueueBounds
from tests.judge.rights import Login
from tests.judge.shared_copies import SharedCopies

TOPICS = [
    "/".join(levels)
    for levels in product(
        [*"abcdef", "all", "jobs"], ["quantity-0", "quantity-1", "will", "x", "answers"]
    )
]
"""Topics that rules and subscriptions of programs are about."""


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
        uplink: bool = False,
    ) -> None:
        self.uplink = InlineUplink() if uplink else None
        self.driver = Driver(settings, durable=durable, uplink=self.uplink)
        channels = self.driver.settings.channels
        self.naive = NaiveBroker(
            tuple(
                NaiveChannel(f"$share/{each.share_name}/{each.topic_filter}") for each in channels
            )
        )
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

    def connect(
        self, name: str, clean: bool, will: Will | None, login: Login | None = None
    ) -> None:
        """Connect as whom the client always is, or with another `login`."""
        player, profile = self.players[name], self.players[name].profile
        login = login or profile.login
        if self.naive.refuses(name, will, login):
            self._connect_in_vain(player, clean, will, login)
            return
        old = player.link
        if old is not None and not old.reads:
            player.lose()
        before = self.naive.sessions.get(name)
        if before is not None and before.connected:
            self.leaves(name)
        if clean and before is not None:
            self._ends(name)
        if will is not None:
            will = replace(will, login=login)
        self.tell_time()
        present = self.naive.connect(name, clean, profile.keeps(clean), will, login)
        link = self.driver.open(player.version, login.listener)
        link.say(profile.connect(clean, encode_will(will, player.version), login.user))
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
            self.publishing.again(name, player.unanswered)
            link.say(again)
            self.exchange()

    def _connect_in_vain(
        self, player: Player, clean: bool, will: Will | None, login: Login
    ) -> None:
        """Be refused; whose session it is notices nothing."""
        link = self.driver.open(player.version, login.listener)
        link.say(player.profile.connect(clean, encode_will(will, player.version), login.user))
        text = f"{player.name} as {login.user}: {link.inbox!r}, not a refusal"
        check(link.inbox and link.inbox[0][:1] == b"\x20", text)
        connack = read_connack(link.inbox[0], player.version)
        codes = (0x85, 0x87) if player.version == wire.MQTT_5 else (2, 5)
        check(connack.code in codes and len(link.inbox) == 1, text)
        check(link.closed, f"{player.name} as {login.user}: refused, and open")
        self.exchange()

    def drop(self, name: str) -> None:
        """Lose a connection."""
        player = self.players[name]
        assert player.link is not None
        link = player.link
        player.lose()
        self.leaves(name)
        self.naive.leave(name)
        link.drop()
        self.exchange()

    def say_goodbye(self, name: str, *, leaves_will: bool = False) -> None:
        player = self.players[name]
        assert player.link is not None
        link = player.link
        player.lose()
        self.leaves(name)
        leaves_will = leaves_will and player.version == wire.MQTT_5
        self.naive.leave(name, says_goodbye=not leaves_will)
        link.say(wire.disconnect(0x04 if leaves_will else None))
        check(link.closed or not link.reads, f"{name}: open after DISCONNECT")
        link.drop()
        self.exchange()

    def leaves(self, name: str) -> None:
        """Note that what a client was given at QoS 0 and has not read may be lost."""
        for choice in self.naive.choices:
            copy = choice.copies.get(name)
            if copy is not None and copy.qos == 0:
                choice.loose = True
        for channel in self.naive.channels:
            channel.leave(name)
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
        granted = []
        for request in requests:
            if not self._may_subscribe(session, request.topic_filter):
                granted.append(0x87 if player.version == wire.MQTT_5 else 0x80)
                continue
            granted.append(request.qos)
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
        player.awaited.append(wire.suback(player.version, 9, *granted))
        link.say(wire.subscribe(player.version, 9, *asked, properties=properties))
        self.exchange()

    def _may_subscribe(self, session: Session, name: str) -> bool:
        """Return whether there is a topic that the filter matches and the client may read."""
        topic_filter = name.split("/", 2)[2] if name.startswith("$share/") else name
        topics = [topic for topic in TOPICS if matches(topic_filter, topic)]
        return all(
            any(
                self.naive.rights.may("read", login, session.client_id, topic)
                for topic in topics or [topic_filter]
            )
            for login in (session.owner, session.login)
        )

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
            or not self.may_be_sent(player, copy)
            or (copy.first is not None and copy.first.came)
            or copy.message.expires <= self.naive.now
            or (limit > 0 and copy.size(player.version) > limit)
        )

    def may_be_sent(self, player: Player, copy: Copy) -> bool:
        """Return whether the rules as they are now let a client have a copy."""
        session = self.naive.sessions.get(player.name)
        return session is None or self.naive.may_send(session, copy.message.topic)

    # What time does; `troubles` has what else may happen.

    def pass_time(self, seconds: float) -> None:
        self.driver.pass_time(seconds)
        self.tell_time()
        self.exchange()

    def tell_time(self) -> None:
        before = set(self.naive.sessions)
        self.naive.pass_time(self.driver.now)
        for name in before - set(self.naive.sessions):
            self._ends(name)


def encode_will(will: Will | None, version: int) -> wire.Will | None:
    if will is None:
        return None
    message = will.message
    delayed = version == wire.MQTT_5 and will.delay
    properties = wire.will_delay(int(will.delay)) if delayed else b""
    return wire.Will(message.topic, message.payload, message.qos, message.retain, properties)
