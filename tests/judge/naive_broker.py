"""What clients see of a broker, worked out one message at a time, with nothing remembered.

It says who is owed what, and leaves open when that is sent: whoever compares takes each copy out of
`Session.owed` as it arrives. Which member of a shared subscription gets a message it leaves open,
too: that is a `Choice`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from tests.judge.messages import Choice, Copy, Message, Subscription, matches
from tests.judge.naive_channel import NaiveChannel
from tests.judge.rights import ANYBODY, Login, Rights

DELAY_AGAIN = 1.0
"""Seconds after which a delayed message is tried again that was refused."""

WILL_GRACE = 5.0
"""Seconds that clients have after a crash before their wills are published."""


@dataclass(frozen=True, slots=True)
class Will:
    """What is published `delay` seconds after a connection ends badly, with a login's rights."""

    message: Message
    delay: float = 0
    login: Login = ANYBODY


@dataclass(eq=False, slots=True)
class Session:
    """A session; it `ends` at a monotonic second, or with its connection if `expiry` is 0.

    It belongs to the user of its `owner`, who made it; `login` is that of the last connection.
    """

    client_id: str
    expiry: float = 0
    connected: bool = True
    ends: float = math.inf
    owner: Login = ANYBODY
    login: Login = ANYBODY
    will: Will | None = None
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    owed: list[Copy] = field(default_factory=list)

    def wants(self, one: Subscription, message: Message) -> bool:
        own = one.no_local and message.publisher == self.client_id
        return matches(one.topic_filter, message.topic) and not own and one.where(message)

    def copy(self, message: Message, group: list[Subscription], retain: bool) -> Copy:
        """Return the one copy that all these subscriptions come to."""
        qos = min(message.qos, max(each.qos for each in group))
        identifiers = sorted(each.identifier for each in group if each.identifier is not None)
        return Copy(message, qos, retain, identifiers)

    def takes(self, copy: Copy) -> bool:
        return self.connected or (copy.qos > 0 and self.expiry > 0)


class NaiveBroker:
    """All sessions, retained messages and choices; `now` is monotonic seconds.

    `wills` and `delayed` are what is published at a monotonic second, unless that is prevented.
    """

    def __init__(self, channels: tuple[NaiveChannel, ...] = ()) -> None:
        self.now = 0.0
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Message] = {}
        self.choices: list[Choice] = []
        self.published = 0
        self.rights = Rights()
        self.wills: dict[str, tuple[float, Will]] = {}  # by client identifier
        self.delayed: list[tuple[float, Message]] = []
        self.channels = channels
        self.uplink_is_full = False
        self.went_up: list[Message] = []

    def may_send(self, session: Session, topic: str) -> bool:
        """Return whether a session may be sent messages of a topic by the connection it has."""
        return self.may_queue(session, topic) and self._may("read", session.login, session, topic)

    def may_queue(self, session: Session, topic: str) -> bool:
        """Return whether messages of a topic are kept for a session: its owner may read them."""
        return self._may("read", session.owner, session, topic)

    def may_write(self, client_id: str, topic: str) -> bool:
        session = self.sessions[client_id]
        return self._may("write", session.login, session, topic)

    def _may(self, wanted: str, login: Login, session: Session, topic: str) -> bool:
        return self.rights.may(wanted, login, session.client_id, topic)

    def refuses(self, client_id: str, will: Will | None, login: Login) -> bool:
        """Return whether nobody may connect so: to another user's session, or with such a will."""
        session = self.sessions.get(client_id)
        if session is not None and session.owner.user != login.user:
            return True
        if client_id in self.wills and self.wills[client_id][1].login.user != login.user:
            return True
        return will is not None and not self.rights.may(
            "write", login, client_id, will.message.topic
        )

    def connect(
        self, client_id: str, clean: bool, expiry: float, will: Will | None, login: Login = ANYBODY
    ) -> bool:
        """Return whether there was a session, which goes on."""
        if client_id in self.sessions and self.sessions[client_id].connected:
            self.leave(client_id)
        if clean and client_id in self.sessions:
            self.end(client_id)
        self.wills.pop(client_id, None)
        present = client_id in self.sessions
        session = self.sessions.setdefault(client_id, Session(client_id, owner=login))
        session.login = login
        session.connected, session.expiry, session.ends = True, expiry, math.inf
        session.will = will
        return present

    def leave(self, client_id: str, *, says_goodbye: bool = False) -> None:
        session = self.sessions[client_id]
        session.connected, session.ends = False, self.now + session.expiry
        session.owed = [each for each in session.owed if each.qos]
        will, session.will = session.will, None
        if will is not None and not says_goodbye and session.expiry and will.delay:
            self.wills[client_id] = self.now + will.delay, will
            return
        if not session.expiry:
            self.end(client_id)
        if will is not None and not says_goodbye:
            self._publish_will(client_id, will)

    def _publish_will(self, client_id: str, will: Will) -> None:
        if self.rights.may("write", will.login, client_id, will.message.topic):
            self.publish(will.message)

    def crash(self, started: float) -> None:
        """Start again, with nobody connected: clients have a moment before their wills are due."""
        self.now = started
        self.delayed = [(due, message) for due, message in self.delayed if message.qos]
        for client_id, (due, delayed) in self.wills.items():
            self.wills[client_id] = max(due, started + WILL_GRACE), delayed
        for session in [*self.sessions.values()]:
            if session.connected:
                will, session.will = session.will, None
                self.leave(session.client_id)
                session.ends = started + session.expiry  # it was there until then, for all we know
                if will is not None:
                    delay = max(will.delay if session.expiry else 0, WILL_GRACE)
                    self.wills[session.client_id] = started + delay, will

    def end(self, client_id: str) -> None:
        del self.sessions[client_id]
        if client_id in self.wills:
            self._publish_will(client_id, self.wills.pop(client_id)[1])
        for choice in self.choices:
            choice.loose = choice.loose or client_id in choice.copies

    def pass_time(self, now: float) -> None:
        """Do what is due until then, in its order."""
        self.now = now
        while due := [each for each in self._deadlines() if each[0] <= now]:
            min(due, key=lambda each: each[0])[1]()

    def _deadlines(self) -> list[tuple[float, Callable[[], None]]]:
        """Return what is going to happen, by the monotonic second."""
        found: list[tuple[float, Callable[[], None]]] = []
        for client_id, session in self.sessions.items():
            if not session.connected:
                found.append((session.ends, partial(self.end, client_id)))
        for client_id, (due, _) in self.wills.items():
            found.append((due, partial(self._will_is_due, client_id)))
        found += [(each[0], partial(self._delay_is_over, each)) for each in self.delayed]
        return found

    def _will_is_due(self, client_id: str) -> None:
        self._publish_will(client_id, self.wills.pop(client_id)[1])

    def _delay_is_over(self, one: tuple[float, Message]) -> None:
        due, message = one
        self.delayed.remove(one)
        if self.uplink_is_full and message.qos:
            self.published += 1  # in vain: its topic is looked up all the same
            self.delayed.append((max(due, self.now) + DELAY_AGAIN, message))
        else:
            self.publish(message)

    def delay(self, message: Message) -> None:
        """Keep a message of `$delay/<seconds>/<topic>` until it is published."""
        self.published += 1
        _, seconds, topic = message.topic.split("/", 2)
        self.delayed.append((self.now + int(seconds), replace(message, topic=topic)))

    def subscribe(self, client_id: str, name: str, one: Subscription, handling: int) -> None:
        session = self.sessions[client_id]
        new = name not in session.subscriptions
        session.subscriptions[name] = one
        if one.share or handling == 2 or (handling == 1 and not new):
            return
        for message in self.retained.values():
            readable = self.may_send(session, message.topic)
            if message.expires > self.now and readable and session.wants(one, message):
                session.owed.append(session.copy(message, [one], retain=True))
                session.owed[-1].replay = name

    def unsubscribe(self, client_id: str, name: str) -> bool:
        return self.sessions[client_id].subscriptions.pop(name, None) is not None

    def is_kept(self, client_id: str, message: Message) -> bool:
        """Return whether a message is put on disk for somebody, if its publisher may publish it."""
        delayed = message.topic.startswith("$delay/")
        if message.topic.startswith("$") and not delayed:
            return False
        if not self.may_write(client_id, message.topic):
            return False
        return delayed or any(
            session.expiry
            and not session.connected
            and self.may_queue(session, message.topic)
            and any(
                one.qos and session.wants(one, message) for one in session.subscriptions.values()
            )
            for session in self.sessions.values()
        )

    def publish(self, message: Message) -> bool:
        """Return whether anybody wants the message."""
        self.published += 1
        if not self.uplink_is_full:
            self.went_up.append(message)
        if message.retain:
            self.retained.pop(message.topic, None)
        if message.retain and message.payload:
            self.retained[message.topic] = message
        taken = [channel for channel in self.channels if channel.take(message)]
        choices: dict[str, Choice] = {}
        found = bool(taken)
        names = [channel.name for channel in self.channels]
        for session in self.sessions.values():
            wanted = [
                one
                for one in session.subscriptions.values()
                if session.wants(one, message) and one.share not in names
            ]
            if not self.may_queue(session, message.topic):
                continue
            own = [one for one in wanted if not one.share]
            for group in [[one] for one in wanted if one.share] + ([own] if own else []):
                found = True
                retain = message.retain and any(one.retain_as_published for one in group)
                copy = session.copy(message, group, retain)
                lost = not copy.qos and not self.may_send(session, message.topic)
                if session.takes(copy) and group is own and not lost:
                    session.owed.append(copy)
                elif session.takes(copy):
                    choice = Choice(group[0].share, message, {})
                    choices.setdefault(group[0].share, choice).copies[session.client_id] = copy
        self.choices += choices.values()
        return found
