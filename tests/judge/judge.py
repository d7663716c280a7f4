"""Compares the broker with the naive one, after every step, by what is allowed.

Messages of one publisher, topic and QoS have an order; others do not. Of a shared subscription
exactly one member gets each message, whoever that is. A client that reads and answers has all that
it is owed; one that does not has as much as its window holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.broker.settings import BrokerSettings
from gateway.session.inflight import MAXIMUM_BYTES
from tests.conformance import wire
from tests.conformance.answers import Properties, Publish, Value, body, read_connack, read_publish
from tests.judge.driver import Driver, Link
from tests.judge.messages import Choice, Copy, Message, Subscription
from tests.judge.naive_broker import NaiveBroker, Session
from tests.judge.player import Player, Profile
from tests.judge.queue_bounds import QueueBounds

OVERHEAD = 2_000
"""Bytes that a message may count in a window beside its payload."""

ANSWERS = (wire.PUBACK, wire.PUBREC, wire.PUBCOMP)
MATCHED, UNMATCHED, REFUSED = 0x00, 0x10, 0x97


class DisagreementError(AssertionError):
    """The broker does what it must not, or does not do what it must."""


def check(condition: object, text: str) -> None:
    if not condition:
        raise DisagreementError(text)


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
    """Both brokers and all clients; `exceeded` names bounds that were, `unrouted` is a figure."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        settings: BrokerSettings | None = None,
        *,
        durable: bool = False,
        at_once: bool = False,
    ) -> None:
        self.driver = Driver(settings, durable=durable, at_once=at_once)
        self.naive = NaiveBroker()
        self.naive.now = self.driver.now
        self.players = {each.name: Player(each) for each in profiles}
        self.exceeded: list[str] = []
        self.refused = 0
        self.bounds = QueueBounds(self)
        self.crashes = 0
        self._last: dict[tuple[str, str, str, str, int], int] = {}  # of choices that arrived
        self._choices: dict[tuple[bytes, bytes], list[Choice]] = {}  # by topic and payload
        self._indexed = 0  # of the naive broker's choices

    @property
    def routed(self) -> int:
        """How many messages had a route, those included that were refused for a full queue."""
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
        if again and player.link is not None:
            self._publishes_again(player)
            player.link.say(again)
            self.exchange()

    def _publishes_again(self, player: Player) -> None:
        """Take what is published a second time for what was not taken the first time."""
        for outgoing in player.outgoing.values():
            check(outgoing.released, f"{player.name}: {outgoing.message.number} has no answer")

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
        identifier: int | None,
        where: str | None,
        passes: Subscription,
    ) -> None:
        """Subscribe; `passes` has the `where` that the text is judged by."""
        player, session = self.players[name], self.naive.sessions[name]
        link = player.link
        assert link is not None
        for request in requests:
            share, topic_filter = "", request.topic_filter
            if topic_filter.startswith("$share/"):
                share, topic_filter = topic_filter, topic_filter.split("/", 2)[2]
            self._replays_no_more(session, request.topic_filter, request.handling)
            one = replace(
                passes,
                topic_filter=topic_filter,
                qos=request.qos,
                share=share,
                no_local=request.no_local,
                retain_as_published=request.retain_as_published,
                identifier=identifier,
            )
            full = self.bounds.may_be_full(session)
            before = len(session.owed)
            self.naive.subscribe(name, request.topic_filter, one, request.handling)
            for copy in session.owed[before:]:
                copy.optional = full or self.bounds.may_be_full(session)
        properties = b""
        if identifier is not None:
            properties += wire.subscription_identifier(identifier)
        if where is not None:
            properties += wire.user_property("$where", where)
        asked = [(request.topic_filter, request.options) for request in requests]
        link.say(wire.subscribe(player.version, 9, *asked, properties=properties))
        answer = self._pick(link, wire.SUBACK)
        expected = wire.suback(player.version, 9, *[request.qos for request in requests])
        check(answer == expected, f"{name}: SUBACK {answer!r}")
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
        link.say(wire.unsubscribe(player.version, 9, *topic_filters))
        answer = self._pick(link, wire.UNSUBACK)
        expected = wire.unsuback(player.version, 9, *codes)
        check(answer == expected, f"{name}: UNSUBACK {answer!r}, not {expected!r}")
        self.exchange()

    def publish(self, name: str, messages: Sequence[tuple[Message, int]], cut: int = 0) -> None:
        """Publish messages in one read, each with a topic alias, or 0."""
        accepted = self.hand_over(name, messages, cut)
        self.driver.settle()
        self.taken(name, accepted)
        self.exchange()

    def hand_over(
        self, name: str, messages: Sequence[tuple[Message, int]], cut: int = 0
    ) -> list[Message]:
        """Publish them, and return them as they were accepted; `taken` compares the answers.

        With `cut` the bytes come in two reads, of which the first has so many, or all but one.
        """
        player = self.players[name]
        assert player.link is not None
        accepted = [replace(message, accepted=self.driver.now) for message, _ in messages]
        aliases = [alias for _, alias in messages]
        data = b"".join(map(player.publish, accepted, aliases))
        if cut:
            place = min(cut, len(data) - 1)
            player.link.hand_over(data[:place])
            self.driver.settle()
            data = data[place:]
        player.link.hand_over(data)
        return accepted

    def taken(self, name: str, messages: Sequence[Message], *, all_of_them: bool = True) -> None:
        """Let the naive broker take what the broker took, and compare the answers."""
        player = self.players[name]
        link = player.link
        assert link is not None
        codes: dict[int, int] = {}
        for packet in [each for each in link.inbox if each[0] & 0xF0 in ANSWERS[:2]]:
            link.inbox.remove(packet)
            packet_id, code = _answer(packet)
            message = player.heard(packet[0], packet_id, code)
            if message is not None:
                codes[message.number] = code
        for qos in (1, 2):
            asked = [message.number for message in messages if message.qos == qos]
            order = [number for number in codes if number in asked]
            text = f"{name}: {asked} were answered as {order}"
            check(order == asked[: len(order)] if not all_of_them else order == asked, text)
        for message in messages:
            self._compare(player, message, codes.get(message.number))

    def _compare(self, player: Player, message: Message, code: int | None) -> None:
        """Take a message as it was answered; None if it was not."""
        newest = player.version == wire.MQTT_5
        text = f"{player.name}: {message.number} to {message.topic} was answered {code}"
        if message.topic.startswith("$"):
            expected = 0x87 if newest else MATCHED
            check(code is None or code == expected, text)
            return
        may, must = self.bounds.refuses(message)
        if code == REFUSED:
            check(may, f"{text}, and nobody is full")
            self.refused += 1
            return
        check(code is None or not must, f"{text}, and somebody is full")
        expected = MATCHED if self.bounds.publish(message) else UNMATCHED
        if code is not None and newest:
            check(code == expected, f"{text}, not {expected}")
        elif code is None and message.qos:
            self._unanswered(message)

    def _unanswered(self, message: Message) -> None:
        """Note that nobody is promised this message."""
        for session in self.naive.sessions.values():
            for copy in session.owed:
                copy.optional = copy.optional or copy.message is message
        for choice in self.naive.choices:
            choice.loose = choice.loose or choice.message is message

    # What clients hear.

    def exchange(self) -> None:
        """Let all clients read and answer until nothing more comes."""
        self._tell_time()
        busy = True
        while busy:
            busy = False
            for player in self.players.values():
                busy = self._hear(player) or busy
            for player in self.players.values():
                if player.idle and player.due:
                    self.answer(player, len(player.due))
                    busy = True

    def answer(self, player: Player, most: int, code: int = 0) -> None:
        """Send the answers that are due first."""
        packets = player.answer(most, code)
        reads = packets if player.profile.one_by_one else [b"".join(packets)]
        for data in reads:
            assert player.link is not None
            player.link.say(data)

    def _hear(self, player: Player) -> bool:
        link = player.link
        if link is None or not link.inbox:
            return False
        packets, link.inbox = link.inbox, []
        for packet in packets:
            kind = packet[0] & 0xF0
            if kind == wire.PUBLISH:
                self._hear_publish(player, read_publish(packet, player.version), len(packet))
            elif kind in ANSWERS:
                player.heard(kind, *_answer(packet))
            elif kind == wire.PUBREL & 0xF0:
                packet_id = int.from_bytes(body(packet)[:2], "big")
                player.open.setdefault(packet_id, 0)
                if packet_id in player.held:  # since a crash nobody knew
                    player.released[packet_id] = player.held.pop(packet_id)
                player.due.append((wire.PUBCOMP, packet_id))
            else:
                raise DisagreementError(f"{player.name}: {packet!r}")
        check(not link.closed, f"{player.name}: closed")
        return True

    @staticmethod
    def _pick(link: Link, kind: int) -> bytes:
        """Take the only packet of a kind out of what came."""
        found = [packet for packet in link.inbox if packet[0] & 0xF0 == kind]
        check(len(found) == 1, f"{len(found)} answers of kind 0x{kind:02X}")
        link.inbox.remove(found[0])
        return found[0]

    def _hear_publish(self, player: Player, publish: Publish, size: int) -> None:
        profile = player.profile
        limit = profile.maximum_packet_size
        check(not limit or size <= limit, f"{player.name}: a packet of {size} bytes")
        publish = self._resolve(player, publish)
        packet_id = publish.packet_id
        if packet_id in player.held or packet_id in player.released:
            copy = (player.held if packet_id in player.held else player.released)[packet_id]
            check(publish.dup, f"{player.name}: {packet_id} again without DUP")
            check(packet_id not in player.open, f"{player.name}: {packet_id} twice")
            check(self._same(player, copy, publish), f"{player.name}: {packet_id} is another")
            check(packet_id in player.held, f"{player.name}: {packet_id} after its PUBREC")
        else:
            copy = self._take(player, publish)
        if publish.qos:
            player.held[packet_id] = copy
            player.open[packet_id] = len(publish.payload)
            kind = wire.PUBACK if publish.qos == 1 else wire.PUBREC
            player.due.append((kind, packet_id))
            limit = self.limit(player)
            check(len(player.open) <= limit, f"{player.name}: {len(player.open)} unacknowledged")
            total = sum(player.open.values())
            if total > MAXIMUM_BYTES + max(player.open.values()):
                self.exceeded.append(f"{player.name}: {total} bytes unacknowledged")

    def limit(self, player: Player) -> int:
        theirs = player.profile.receive_maximum or 65_535
        return min(theirs, self.driver.settings.maximum_inflight)

    @staticmethod
    def _resolve(player: Player, publish: Publish) -> Publish:
        alias = next((value for key, value in publish.properties if key == wire.TOPIC_ALIAS), None)
        if alias is None:
            check(publish.topic, f"{player.name}: no topic")
            return publish
        assert isinstance(alias, int)
        check(0 < alias <= player.profile.alias_maximum, f"{player.name}: alias {alias}")
        check(not publish.dup, f"{player.name}: alias in a repeated PUBLISH")
        if publish.topic:
            player.aliases[alias] = publish.topic.decode()
        check(alias in player.aliases, f"{player.name}: unknown alias {alias}")
        rest = [pair for pair in publish.properties if pair[0] != wire.TOPIC_ALIAS]
        return publish._replace(topic=player.aliases[alias].encode(), properties=rest)

    def _take(self, player: Player, publish: Publish) -> Copy:
        """Return the copy that came, which is owed no more."""
        if publish.dup or player.unmarked:
            for copy in player.again:
                if self._same(player, copy, publish):
                    player.again.remove(copy)
                    return copy
        found = self._take_own(player, publish, skip=bool(publish.payload))
        found = found or self._take_shared(player, publish)
        found = found or self._take_own(player, publish, skip=True)
        if found is None:
            shown = publish._replace(payload=publish.payload[:60])
            raise DisagreementError(f"{player.name}: not owed, or before others: {shown}")
        return found

    def _take_own(self, player: Player, publish: Publish, *, skip: bool) -> Copy | None:
        """Return a copy that is owed, also one behind optional ones if these are to be skipped.

        One without a payload may be any, and so is better looked for among all that come next.
        """
        session = self.naive.sessions[player.name]
        before: dict[tuple[str, str, int], list[Copy]] = {}
        for copy in session.owed:
            passed = before.setdefault(copy.key, [])
            may_come = all(
                (skip or not each.optional) and self.may_stay_out(player, each) for each in passed
            )
            if may_come and self._same(player, copy, publish):
                gone = [*passed, copy]
                session.owed = [each for each in session.owed if each not in gone]
                return copy
            passed.append(copy)
        return None

    def may_stay_out(self, player: Player, copy: Copy) -> bool:
        limit = player.profile.maximum_packet_size
        return (
            copy.optional
            or copy.message.expires <= self.naive.now
            or (limit > 0 and copy.size(player.version) > limit)
        )

    def _take_shared(self, player: Player, publish: Publish) -> Copy | None:
        name = player.name
        for choice in self.naive.choices[self._indexed :]:
            content = choice.message.topic.encode(), choice.message.payload
            self._choices.setdefault(content, []).append(choice)
        self._indexed = len(self.naive.choices)
        found = self._choices.get((publish.topic, publish.payload), [])
        for choice in sorted(found, key=self._rank):
            copy = self._copy_of(choice, name)
            if copy is None or not self._same(player, copy, publish):
                continue
            if self._may_be_had(choice, []):
                self._check_order(choice, copy, name)
                choice.taken, choice.copies[name] = name, copy
                copy.done = not copy.qos
                return copy
        return None

    def may_be_lost(self, choice: Choice) -> bool:
        """Return whether a choice may come to nobody."""
        return choice.loose or any(
            self.may_stay_out(self.players[name], copy) for name, copy in choice.copies.items()
        )

    def _rank(self, choice: Choice) -> tuple[bool, bool]:
        """Return what sorts what is still open first, and of that what must arrive."""
        return not choice.open, self.may_be_lost(choice)

    def _may_be_had(self, choice: Choice, tried: list[Choice]) -> bool:
        """Return whether a choice is open, perhaps since who had it had another that is alike."""
        if choice.open:
            return True
        tried.append(choice)
        assert choice.taken is not None
        copy = choice.copies[choice.taken]
        others = self._choices[choice.message.topic.encode(), choice.message.payload]
        for other in sorted(others, key=self._rank):
            its = other.copies.get(choice.taken)
            if other in tried or its is None or not its.like(copy):
                continue
            if self._may_be_had(other, tried):
                other.taken, other.copies[choice.taken] = choice.taken, copy
                return True
        return False

    def _check_order(self, choice: Choice, copy: Copy, name: str) -> None:
        message = choice.message
        if choice.loose or not message.payload:
            return
        key = name, choice.share, *copy.key
        last = self._last.get(key, -1)
        check(last <= message.number, f"{name}: {message.number} behind {last} of {choice.share}")
        self._last[key] = message.number

    def _copy_of(self, choice: Choice, name: str) -> Copy | None:
        copy = choice.copies.get(name)
        session = self.naive.sessions.get(name)
        if copy is None and choice.loose and session is not None:
            one = session.subscriptions.get(choice.share)
            if one is not None and session.wants(one, choice.message):
                return session.copy(
                    choice.message, [one], choice.message.retain and one.retain_as_published
                )
        return copy

    def _same(self, player: Player, copy: Copy, publish: Publish) -> bool:
        """Return whether this is what a client sees of a copy."""
        message = copy.message
        expired = message.expires <= self.naive.now and not (publish.dup or player.stale)
        if (
            expired
            or message.payload != publish.payload
            or message.topic.encode() != publish.topic
            or (copy.qos, copy.retain) != (publish.qos, publish.retain)
        ):
            return False
        if player.version < wire.MQTT_5:
            return True
        expected: list[tuple[int, Value]] = [*message.properties]
        expected += [(wire.SUBSCRIPTION_IDENTIFIER, each) for each in copy.identifiers]
        interval = None
        found: list[tuple[int, Value]] = []
        for key, value in publish.properties:
            if key == wire.MESSAGE_EXPIRY_INTERVAL:
                interval = value
            else:
                found.append((key, value))
        if _sorted(expected) != _sorted(found):
            return False
        if message.interval is None or interval is None:
            return message.interval is interval
        assert isinstance(interval, int)
        left = max(0, message.interval - int(self.driver.now - message.accepted))
        most = message.interval if player.stale or publish.dup else left + 1
        return left <= interval <= most

    # What time and trouble do.

    def pass_time(self, seconds: float) -> None:
        self.driver.pass_time(seconds)
        self._tell_time()
        self.exchange()

    def _tell_time(self) -> None:
        before = set(self.naive.sessions)
        self.naive.pass_time(self.driver.now)
        for name in before - set(self.naive.sessions):
            self._ends(name)

    def power_cut(self, publishes: Sequence[tuple[str, Sequence[tuple[Message, int]]]]) -> None:
        """Crash while what is published is not on disk."""
        self.driver.commits = False
        accepted = [(name, self.hand_over(name, messages)) for name, messages in publishes]
        self.driver.settle()
        for name, messages in accepted:
            self.taken(name, messages, all_of_them=False)
        self.exchange()
        for name, messages in accepted:
            self.players[name].give_up(messages)
        self.driver.commits = True
        self.crash()

    def crash(self) -> None:
        """Let the broker lose what is not on disk, and start again."""
        self.crashes += 1
        for name, player in self.players.items():
            session = self.naive.sessions.get(name)
            if session is not None and session.connected:
                session.will = None
                self._leaves(name)
                self.naive.leave(name)
            player.crashed()
        self.driver.crash()
        self._tell_time()
        self.exchange()


def _answer(packet: bytes) -> tuple[int, int]:
    """Return packet identifier and code of an answer to PUBLISH or PUBREL."""
    fields = body(packet)
    return int.from_bytes(fields[:2], "big"), fields[2] if len(fields) > 2 else 0


def _sorted(properties: Properties) -> Properties:
    """Return properties by identifier, those of users in their order, other numbers by size."""
    users = [pair for pair in properties if pair[0] == wire.USER_PROPERTY]
    return sorted((pair for pair in properties if pair not in users), key=repr) + users
