"""A durable channel as its consumers see it: who is given what, and what comes back."""

from dataclasses import dataclass, field

from tests.judge.messages import Copy, Message, matches


@dataclass(eq=False, slots=True)
class NaiveChannel:
    """Messages that `wait` for a consumer, those that were `given` to one, and those at an end.

    What was acknowledged since the broker crashed last may come `again` after the next crash.
    """

    name: str
    waits: list[Message] = field(default_factory=list)
    given: list[tuple[str, Copy]] = field(default_factory=list)
    again: list[Message] = field(default_factory=list)
    _finished: list[Message] = field(default_factory=list)

    def take(self, message: Message) -> bool:
        """Keep a message if it is one of the channel's."""
        mine = matches(self.name.split("/", 2)[2], message.topic)
        if mine:
            self.waits.append(message)
        return mine

    def give(self, name: str, topic: bytes, payload: bytes, qos: int) -> Copy | None:
        """Return the copy that a consumer was sent, None if it is no message that waits."""
        for source in (self.waits, self.again):
            for message in source:
                if (message.topic.encode(), message.payload) == (topic, payload):
                    source.remove(message)
                    copy = Copy(message, qos, retain=False, identifiers=[], of_channel=True)
                    self.given.append((name, copy))
                    return copy
        return None

    def settle(self) -> None:
        """Forget what was acknowledged."""
        self._finished += [copy.message for _, copy in self.given if copy.done]
        self.given = [each for each in self.given if not each[1].done]

    def leave(self, name: str) -> None:
        """Take back what a consumer had when its connection ended."""
        self.settle()
        self.waits += [copy.message for who, copy in self.given if who == name]
        self.given = [each for each in self.given if each[0] != name]

    def crash(self) -> None:
        """Take everything back; what was acknowledged last may come once more."""
        self.settle()
        self.waits += [copy.message for _, copy in self.given]
        self.given = []
        self.again, self._finished = self._finished, []
