"""When should a full table of topic aliases give one to another topic? A simulation.

    .venv/bin/python -m bench.alias_policies

Prints the bytes of topic names and alias properties that are left of 100, for each policy and
mix of topics; `patience` is the one that gateway/mqtt/aliases/outbound_aliases.py has.
"""

from collections import OrderedDict
from collections.abc import Callable

from bench.topic_mixes import MIXES
from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import ALIAS_PROPERTY, AliasBudget
from gateway.mqtt.codec.fields import write_string

MESSAGES = 40_000
MAXIMA = (10, 16, 64)


class Policy:
    """Gives every topic a free alias; replaces the least recently used mapping at each miss."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.table: OrderedDict[str, None] = OrderedDict()

    def send(self, topic: str) -> int:
        """Return the bytes of the topic name and of the alias in the next packet."""
        if topic in self.table:
            self.table.move_to_end(topic)
            return ALIAS_PROPERTY
        if len(self.table) == self.maximum:
            if not self.replaces(topic):
                return len(topic)
            self.table.popitem(last=False)
        self.table[topic] = None
        return len(topic) + ALIAS_PROPERTY

    def replaces(self, topic: str) -> bool:  # noqa: ARG002 - others look at it
        """Say whether this topic takes the place of another."""
        return True


class SecondSight(Policy):
    """Replaces for a topic that passed by not long ago, which it remembers."""

    def __init__(self, maximum: int) -> None:
        super().__init__(maximum)
        self.passed: OrderedDict[str, None] = OrderedDict()

    def replaces(self, topic: str) -> bool:
        if topic in self.passed:
            del self.passed[topic]
            return True
        self.passed[topic] = None
        if len(self.passed) > 4 * self.maximum:
            self.passed.popitem(last=False)
        return False


class EveryNth(Policy):
    """Replaces at every nth miss."""

    def __init__(self, maximum: int, n: int) -> None:
        super().__init__(maximum)
        self.n = n
        self.misses = 0

    def replaces(self, topic: str) -> bool:  # noqa: ARG002 - the same
        self.misses += 1
        return self.misses % self.n == 0


class Patience:
    """What the gateway does."""

    def __init__(self, maximum: int) -> None:
        budget = AliasBudget(client_bytes=1 << 30)
        self.aliases = OutboundAliases(maximum, budget)

    def send(self, topic: str) -> int:
        """Return the bytes of the topic name and of the alias in the next packet."""
        alias, known = self.aliases.choose(write_string(topic))
        return ALIAS_PROPERTY * (alias > 0) + len(topic) * (not known)


POLICIES: dict[str, Callable[[int], Policy | Patience]] = {
    "always": Policy,
    "2nd sight": SecondSight,
    "every 8th": lambda maximum: EveryNth(maximum, 8),
    "every 16th": lambda maximum: EveryNth(maximum, 16),
    "patience": Patience,
}


def main() -> None:
    for maximum in MAXIMA:
        print(f"\n{maximum} aliases\n")
        print("| topics |", " | ".join(POLICIES), "|")
        print("| --- |", " | ".join("--:" for _ in POLICIES), "|")
        for name, mix in MIXES.items():
            topics = mix(MESSAGES)
            plain = sum(map(len, topics))
            left = []
            for policy in POLICIES.values():
                table = policy(maximum)
                left.append(100 * sum(map(table.send, topics)) / plain)
            print(f"| {name} |", " | ".join(f"{percent:.1f}" for percent in left), "|")


if __name__ == "__main__":
    main()
