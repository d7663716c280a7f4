"""A plan of traffic for the load generator: who publishes what, and who subscribes to what."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

SAMPLES = 512
LEAST, MOST = 10, 147
"""Bytes of a sample; the generator puts 30 to 45 bytes before it."""

QUANTITIES = (
    *("temperature", "humidity", "pressure", "co2", "battery"),
    *("rssi", "power", "light", "motion", "state"),
)
UNITS = ("C", "F", "K")

Reading = dict[str, float | str]
Condition = Callable[[Reading], bool]


def topic(publisher: int, index: int, sites: int = 5) -> str:
    """Return the topic of a publisher, which has ten of each of its devices."""
    device, quantity = divmod(index, len(QUANTITIES))
    room = f"site{publisher % sites}/room{publisher % 12}"
    return f"{room}/device{publisher}-{device}/{QUANTITIES[quantity]}"


def readings(count: int = SAMPLES, least: int = LEAST, most: int = MOST) -> list[Reading]:
    """Return members of JSON objects whose text has any number of bytes between these."""
    chosen = random.Random(14)  # the same each time
    return [_reading(chosen, chosen.randint(least, most)) for _ in range(count)]


def _reading(chosen: random.Random, size: int) -> Reading:
    """Return a reading with as many members as fit, the last one filled up."""
    members: Reading = {"value": round(chosen.uniform(0, 100), 2)}
    if size < len(text(members)):
        return {"value": chosen.randint(0, 9)}
    more: Reading = {
        "rack": f"r{chosen.randint(0, 99)}",
        "unit": chosen.choice(UNITS),
        "status": chosen.choice(("ok", "late", "low battery")),
    }
    for name, value in more.items():
        longer = members | {name: value}
        if len(text(longer)) <= size:
            members = longer
    left = size - len(text(members | {"note": ""}))
    if left > 0:
        members["note"] = chosen.randbytes(left // 2 + 1).hex()[:left]
    return members


def text(reading: Reading) -> str:
    """Return the JSON text behind the opening bracket."""
    return json.dumps(reading, separators=(",", ":"))[1:]


@dataclass(frozen=True)
class Subscriber:
    """What one subscriber subscribes to."""

    filters: Sequence[str] = ("#",)
    words: str = ""
    """`persistent`, `away`, `group`, see bench/load/plan.c."""

    where: str | None = None
    condition: Condition | None = None
    """The same in Python."""


@dataclass(frozen=True)
class Plan:
    """So many publishers with so many topics each, and the subscribers."""

    publishers: int
    topics: int
    subscribers: Sequence[Subscriber]
    sites: int = 5
    fresh: bool = False
    """Whether each message has a topic of its own."""

    readings: Sequence[Reading] = field(default_factory=readings)

    def write(self) -> str:
        """Return the lines that the generator reads."""
        return "\n".join([*self._samples, *self._publishers(), *self._subscribers(), ""])

    @cached_property
    def _samples(self) -> list[str]:
        return [f"sample {text(reading)}" for reading in self.readings]

    def _publishers(self) -> list[str]:
        lines = []
        for publisher in range(self.publishers):
            words = ["", "type", "expiry", ""][publisher % 4]
            words += " random" * (publisher // 4 % 2) + " fresh" * self.fresh
            lines.append(f"publisher {words}")
            names = (topic(publisher, index, self.sites) for index in range(self.topics))
            lines += [f"topic {name}" for name in names]
        return lines

    def _subscribers(self) -> list[str]:
        lines = []
        for subscriber in self.subscribers:
            lines.append(f"subscriber {subscriber.words}")
            lines += [f"filter {name}" for name in subscriber.filters]
            if subscriber.where and subscriber.condition:
                taken = map(subscriber.condition, self.readings)
                numbers = [str(number) for number, takes in enumerate(taken) if takes]
                lines += [f"where {subscriber.where}", f"takes {' '.join(numbers)}"]
        return lines
