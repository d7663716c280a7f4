"""Retained messages for new subscriptions, as many in one turn as others can wait for.

What a turn has no room for is sent in later ones, in which subscribers take turns. Whoever gets a
message that was published meanwhile was sent its topic's retained message before
(`Replays.send_first`): so nothing older follows something newer, unless a crash comes in between.
"""

import math
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from gateway.access.rule import READ
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.counters import Counters
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import topic_matches
from gateway.routing.budget import EVALUATION, PARSED, Budget
from gateway.routing.retained.retained import Cursor, RetainedMessages
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.restored import StoredSubscription
from gateway.session.session import Session
from gateway.where.language.work import ORDINARY

SINGLE = 4
"""As how many of them one counts that is not written together with others, or is filtered."""

MAXIMUM_UNSENT = 64 * 1024
"""Bytes that wait for a client to read them from which on its replays wait, too."""

MAXIMUM_QUEUED = 1_000
"""Messages that wait for a client, of whatever kind, from which on its replays wait, too."""


class Replay:
    """What is known of it; how far it has come, `cursor` says."""

    __slots__ = ("cursor", "noted", "scans", "session", "stored", "subscription")

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        stored: StoredSubscription,
        cursor: Cursor,
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.stored = replace(stored, awaits_retained=False)  # as it is when all is done
        self.cursor = cursor
        self.scans = False  # the cursor moves; otherwise it is all done in one turn
        self.noted = stored.awaits_retained  # the session's journal knows of it

    @property
    def survives(self) -> bool:
        """Whether the session is owed these messages also without a connection."""
        return self.subscription.qos > 0 and self.session.persistent

    @property
    def cost(self) -> int:
        """As how many messages each of its messages counts."""
        subscription = self.subscription
        return SINGLE if subscription.qos or subscription.where is not None else 1

    def can_accept(self) -> bool:
        """Return whether the session takes messages now.

        What it is owed also without a connection goes to its queue in any case, and so to disk.
        """
        session = self.session
        connection = session.connection
        return (
            connection is not None
            and connection.output.size < MAXIMUM_UNSENT
            and session.queue.messages - session.queue.held_back < MAXIMUM_QUEUED
        ) or self.survives


TURN_MESSAGES = 2_000
"""Retained messages that are replayed in one turn, of all subscribers together: some 2 ms."""

TURN_BYTES = 512 * 1024
"""Bytes of their payloads; the last may exceed it."""

TURN_WORK = 4_000_000
"""Work of the filters that are asked about them; the last may exceed it, as in a piece of a
message's (`routing/budget.py`)."""

SCANNED_AS_ONE = 8
"""How many count as one of those that are merely looked at."""

PROBED = 16
"""Names that are looked at to see whether there is anything to send, when a turn has no room."""

MAXIMUM_OF_ONE = 100
"""Replays of a session that wait for later turns: each may be asked about each message that is
published meanwhile. What a SUBSCRIBE asks for beyond that begins when one of them is done."""

_KEY: Final = "replays"


class Replays:
    """All replays that wait for later turns, by session.

    Sessions that can take messages stand in a ring; the others come back to it when they say that
    they have room (`Session.on_capacity`).
    """

    __slots__ = (
        "_budget",
        "_bytes",
        "_counters",
        "_deadlines",
        "_messages",
        "_retained",
        "_ring",
        "_turn",
        "_waiting",
        "_work",
        "count",
        "maximum_of_one",
        "turn_messages",
    )

    def __init__(
        self,
        retained: RetainedMessages,
        budget: Budget,
        deadlines: Deadlines,
        counters: Counters,
    ) -> None:
        self._retained = retained
        self._budget = budget
        self._deadlines = deadlines
        self._counters = counters
        self.turn_messages = TURN_MESSAGES
        self.maximum_of_one = MAXIMUM_OF_ONE
        self._waiting: dict[Session, dict[str, Replay]] = {}  # by topic filter
        self._ring: OrderedDict[Session, None] = OrderedDict()
        self._turn = -math.inf  # monotonic second
        self._messages = 0  # that this turn has room for
        self._bytes = 0
        self._work = 0
        self.count = 0  # of those that wait

    def begin(
        self,
        session: Session,
        subscription: Subscription,
        stored: StoredSubscription,
        instant: Instant,
    ) -> None:
        """Send a new subscription its retained messages, in this turn as far as there is room.

        `stored` is what the session's journal knows of the subscription. It learns that retained
        messages are awaited, too, if they are owed by more than this turn: after a crash all of
        them are resent.
        """
        self.discard(session, subscription.topic_filter)
        one = Replay(session, subscription, stored, self._retained.log.open())
        self._begin_turn(instant)
        if self._ring:
            self._messages = 0  # others have waited for longer
        if not (one.can_accept() and self._advance(one, instant)):
            self._wait(one, instant)
            return
        self._retained.log.close(one.cursor)
        if one.noted:
            session.journal.subscribe(one.stored.topic_filter, one.stored)

    def crowded(self, session: Session) -> bool:
        """Return whether as many replays of the session wait as may."""
        return len(self._waiting.get(session, ())) >= self.maximum_of_one

    def follow(
        self, session: Session, subscription: Subscription, stored: StoredSubscription
    ) -> None:
        """Go on with a subscription that has taken another's place and asks for no replay."""
        one = self._waiting.get(session, {}).get(subscription.topic_filter)
        if one is not None:
            one.subscription, one.stored = subscription, stored
            self._note(one)

    def discard(self, session: Session, topic_filter: str) -> None:
        """Send nothing more for a subscription that is given up, or replayed again."""
        one = self._waiting.get(session, {}).get(topic_filter)
        if one is not None:
            self._remove(one)

    def discard_all(self, session: Session) -> None:
        """Send nothing more to a session that ends."""
        for one in [*self._waiting.get(session, {}).values()]:
            self._remove(one)

    def disconnect(self, session: Session, instant: Instant) -> None:
        """Give up what a session that lost its connection is owed no more."""
        for one in [*self._waiting.get(session, {}).values()]:
            if not one.survives:
                self._remove(one)
        if session in self._waiting:
            self.ready(session, instant.monotonic)

    def ready(self, session: Session, now: float) -> None:
        """Go on with what waits for a session, if that has room; `now` is monotonic seconds."""
        if session not in self._ring and self._first(session).can_accept():
            self._ring[session] = None
            self._deadlines.set(_KEY, now, self._go_on)

    def send_first(self, topic: str, instant: Instant) -> None:
        """Send the retained message of a topic to all whose replays have not come to it yet.

        That is before another message of the topic is: neither may follow the other in the wrong
        order, and the retained one may be there no longer afterwards.
        """
        log = self._retained.log
        if not log.is_ahead(topic):
            return
        index = log.index(topic)
        for waiting in self._waiting.values():
            for topic_filter, one in waiting.items():
                ahead = one.cursor.index <= index < one.cursor.end
                if ahead and topic_matches(topic_filter, topic):
                    found = self._retained.find(topic, instant.monotonic)
                    self._begin_turn(instant)
                    _, size, wanted = self._wanted(one, found, at_once=True)
                    self._send(one, found, wanted, size, instant)
        log.renew(topic)

    def _go_on(self, _: str, instant: Instant) -> None:
        """Let the sessions of the ring take turns."""
        self._begin_turn(instant)
        ring = self._ring
        while ring and self._messages > 0:
            session = next(iter(ring))
            one = self._first(session)
            if not one.can_accept():
                del ring[session]
                continue
            done = self._advance(one, instant)
            if done:
                self._remove(one)
                if one.noted:
                    session.journal.subscribe(one.stored.topic_filter, one.stored)
            if session in ring and (done or one.scans):
                ring.move_to_end(session)
        if ring:
            self._deadlines.set_next(_KEY, instant, self._go_on)

    def _begin_turn(self, instant: Instant) -> None:
        if instant.monotonic != self._turn:
            self._turn = instant.monotonic
            self._messages, self._bytes = self.turn_messages, TURN_BYTES
            self._work = TURN_WORK

    def _advance(self, one: Replay, instant: Instant) -> bool:
        """Send as much as the turn has room for; return whether that is all.

        What can be found in less than a turn is sent in one, and costs no look at other topics.
        """
        retained, cursor = self._retained, one.cursor
        if not one.scans:
            most = self.turn_messages // one.cost if self._messages > 0 else PROBED
            found = retained.few(one.subscription.topic_filter, cursor, most, instant.monotonic)
            if found is not None:
                if not found:  # as for most subscriptions
                    return True
                fitting, size, wanted = self._fitting(one, found)
                if fitting == len(found):
                    self._send(one, found, wanted, size, instant)
                    return True
                if self._work <= 0:
                    one.scans = True  # its filter needs several turns, from the first message on
                    self._messages = 0
            if self._messages <= 0 or (found is not None and self._messages < self.turn_messages):
                self._messages = 0  # the next turn has room for it
                return False
            one.scans = True
        while self._messages > 0 and not cursor.done:
            self._send_some(one, instant)
        return cursor.done

    def _send_some(self, one: Replay, instant: Instant) -> None:
        """Send what the cursor comes to next."""
        retained, cursor, cost = self._retained, one.cursor, one.cost
        before = cursor.index
        most = max(1, self._messages // cost)
        found = retained.read(one.subscription.topic_filter, cursor, most, instant.monotonic)
        fitting, size, wanted = self._fitting(one, found)
        if fitting < len(found):
            cursor.index = retained.log.index(found[fitting].topic)
            del found[fitting:]
        self._send(one, found, wanted, size, instant)
        if self._work <= 0:
            self._messages = 0
        self._messages -= (cursor.index - before - fitting) // SCANNED_AS_ONE + 1

    def _fitting(
        self, one: Replay, messages: list[Publication]
    ) -> tuple[int, int, list[Publication]]:
        """Return how many of the messages this turn has room for, their bytes, and the wanted ones.

        Those are all of them, unless the subscription has a filter.
        """
        free, size = self._bytes, 0
        most = min(len(messages), max(0, -(-self._messages // one.cost)))
        for number in range(most):
            if size >= free:
                most = number
                break
            size += payload_bytes(messages[number])
        if one.subscription.where is not None:
            return self._wanted(one, messages[:most])
        return most, size, messages[:most]

    def _wanted(
        self, one: Replay, messages: list[Publication], *, at_once: bool = False
    ) -> tuple[int, int, list[Publication]]:
        """Return how many of the messages were looked at, their bytes, and which are wanted.

        It is all of them if that has to be `at_once`: the filter is NULL for what is too much then.
        """
        where, session = one.subscription.where, one.session
        evaluate = self._budget.replayed
        size = 0
        wanted: list[Publication] = []
        for number, each in enumerate(messages):
            if self._work <= 0 and not at_once:
                return number, size, wanted
            bytes_of_one = payload_bytes(each)
            size += bytes_of_one
            if self._withholds(one, each):
                continue
            passed = True
            if where is not None:
                most = max(self._work, ORDINARY) if at_once else EVALUATION
                passed, work = evaluate(where, each.new_message(0), session.client_id, most)
                self._work -= work + PARSED * bytes_of_one
            if passed:
                wanted.append(each)
        return len(messages), size, wanted

    def _withholds(self, one: Replay, message: Publication) -> bool:
        """Return whether the subscriber may not get a message, whatever it says."""
        subscription, access = one.subscription, one.session.access
        if subscription.no_local and message.client_id == one.session.client_id:
            return True  # [MQTT-3.8.3-3]
        restricted = access.restricted or subscription.topic_filter.startswith("$")
        return bool(restricted and not access.rights(message.topic) & READ)

    def _send(
        self,
        one: Replay,
        messages: list[Publication],
        wanted: list[Publication],
        size: int,
        instant: Instant,
    ) -> None:
        """Send, queue or drop what is `wanted` of the messages, which have so many bytes."""
        session, subscription = one.session, one.subscription
        self._messages -= len(messages) * one.cost
        self._bytes -= size
        if self._bytes <= 0:
            self._messages = 0
        if subscription.where is None:
            wanted = [each for each in wanted if not self._withholds(one, each)]
        identifier = subscription.identifier
        identifiers = () if identifier is None else (identifier,)
        qos, now = subscription.qos, instant.monotonic
        for each in wanted:
            # RETAIN is set on what is sent because of a SUBSCRIBE [MQTT-3.3.1-8]
            session.accept(
                each,
                0,
                1,
                min(qos, each.qos),
                retain=True,
                subscription_identifiers=identifiers,
                now=now,
            )

    def _first(self, session: Session) -> Replay:
        """Return the replay of a session that comes next."""
        return next(iter(self._waiting[session].values()))

    def _wait(self, one: Replay, instant: Instant) -> None:
        """Go on with a replay in later turns."""
        session = one.session
        self._waiting.setdefault(session, {})[one.subscription.topic_filter] = one
        self.count += 1
        self._counters.add("tidegate/replays/deferred")
        session.on_capacity = self.ready
        self._note(one)
        self.ready(session, math.nextafter(instant.monotonic, math.inf))

    def _remove(self, one: Replay) -> None:
        """Wait no longer with a replay."""
        session = one.session
        waiting = self._waiting[session]
        del waiting[one.subscription.topic_filter]
        self.count -= 1
        self._retained.log.close(one.cursor)
        if not waiting:
            del self._waiting[session]
            session.on_capacity = None
            self._ring.pop(session, None)

    def _note(self, one: Replay) -> None:
        """Let the replay begin again after a crash, if anything is owed then."""
        if one.survives:
            one.noted = True
            stored = replace(one.stored, awaits_retained=True)
            one.session.journal.subscribe(stored.topic_filter, stored)


def payload_bytes(publication: Publication) -> int:
    """Return the bytes of a retained message's payload."""
    return publication.packets.payload_bytes(0, 1)
