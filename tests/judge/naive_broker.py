"""What clients see of a broker, worked out one message at a time, with nothing remembered.

It says who is owed what, and leaves open when that is sent: whoever compares takes each copy out of
`Session.owed` as it arrives. Which member of a shared subscription gets a message it leaves open,
too: that is a `Choice`.
"""

import math
from dataclasses import dataclass, field

from tests.judge.messages import Choice, Copy, Message, Subscription, matches


@dataclass(eq=False, slots=True)
class Session:
    """A session; it `ends` at a monotonic second, or with its connection if `expiry` is 0."""

    client_id: str
    expiry: float = 0
    connected: bool = True
    ends: float = math.inf
    will: Message | None = None
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
    """All sessions, retained messages and choices; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Message] = {}
        self.choices: list[Choice] = []
        self.published = 0

    def connect(self, client_id: str, clean: bool, expiry: float, will: Message | None) -> bool:
        """Return whether there was a session, which goes on."""
        if client_id in self.sessions and self.sessions[client_id].connected:
            self.leave(client_id)
        if clean and client_id in self.sessions:
            self.end(client_id)
        present = client_id in self.sessions
        session = self.sessions.setdefault(client_id, Session(client_id))
        session.connected, session.expiry, session.ends = True, expiry, math.inf
        session.will = will
        return present

    def leave(self, client_id: str, *, says_goodbye: bool = False) -> None:
        session = self.sessions[client_id]
        session.connected, session.ends = False, self.now + session.expiry
        session.owed = [each for each in session.owed if each.qos]
        will, session.will = session.will, None
        if not session.expiry:
            self.end(client_id)
        if will is not None and not says_goodbye:
            self.publish(will)

    def end(self, client_id: str) -> None:
        del self.sessions[client_id]
        for choice in self.choices:
            choice.loose = choice.loose or client_id in choice.copies

    def pass_time(self, now: float) -> None:
        self.now = now
        for session in [*self.sessions.values()]:
            if not session.connected and session.ends <= now:
                self.end(session.client_id)

    def subscribe(self, client_id: str, name: str, one: Subscription, handling: int) -> None:
        session = self.sessions[client_id]
        new = name not in session.subscriptions
        session.subscriptions[name] = one
        if one.share or handling == 2 or (handling == 1 and not new):
            return
        for message in self.retained.values():
            if message.expires > self.now and session.wants(one, message):
                session.owed.append(session.copy(message, [one], retain=True))
                session.owed[-1].replay = name

    def unsubscribe(self, client_id: str, name: str) -> bool:
        return self.sessions[client_id].subscriptions.pop(name, None) is not None

    def publish(self, message: Message) -> bool:
        """Return whether anybody wants the message."""
        self.published += 1
        if message.retain:
            self.retained.pop(message.topic, None)
        if message.retain and message.payload:
            self.retained[message.topic] = message
        choices: dict[str, Choice] = {}
        found = False
        for session in self.sessions.values():
            wanted = [one for one in session.subscriptions.values() if session.wants(one, message)]
            own = [one for one in wanted if not one.share]
            for group in [[one] for one in wanted if one.share] + ([own] if own else []):
                found = True
                retain = message.retain and any(one.retain_as_published for one in group)
                copy = session.copy(message, group, retain)
                if session.takes(copy) and group is own:
                    session.owed.append(copy)
                elif session.takes(copy):
                    choice = Choice(group[0].share, message, {})
                    choices.setdefault(group[0].share, choice).copies[session.client_id] = copy
        self.choices += choices.values()
        return found
