"""Makes random programs, each from a seed."""

import random
from collections.abc import Callable, Sequence

from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.conformance.support import wire
from tests.judge.items import PROPERTIES, WHERE, Item
from tests.judge.judge import Request
from tests.judge.player import Profile
from tests.judge.programs import Program
from tests.judge.steps import (
    Answer,
    Connect,
    Crash,
    Do,
    Goodbye,
    Pass,
    PowerCut,
    Publish,
    PublishInVain,
    Step,
    Subscribe,
    Together,
    Unsubscribe,
)

SIZES: list[Sequence[int]] = [
    (30,),
    (30,),
    (60, 20),
    (0, 30),
    (0, 60, 1_000),
    (20_000, 30),
    (0, 200_000),
    (0, 20, 30, 60, 1_000, 20_000, 200_000),
]
"""Bytes of the payloads of one batch, of which each has any."""

LIKINGS = (
    "aliases",
    "expiry",
    "identifiers",
    "limits",
    "no local",
    "properties",
    "retain",
    "shared",
    "where",
)
"""What a program has or does without."""


class Maker:
    """Makes a program from a seed.

    Each program leaves some of what clients may do out, so that what is left meets itself.
    """

    def __init__(self, seed: int, *, crashes: bool, length: int = 30) -> None:
        self._random = any_of = random.Random(seed)
        self._number = 0
        self._crashes = crashes
        self._length = length
        self._names = "abcdef"[: any_of.randint(2, 6)]
        self._bounded = any_of.random() < 0.25
        self._everything = any_of.random() < 0.5  # is subscribed to by somebody
        self._likes = {each: any_of.random() < 0.5 for each in LIKINGS}

    def make(self) -> Program:
        any_of = self._random
        profiles = tuple(self._profile(name) for name in self._names)
        steps: list[Step] = [Connect(name) for name in self._names]
        steps += [self._subscribe(name) for name in self._names if any_of.random() < 0.8]
        for _ in range(self._length):
            steps += self._replay() if any_of.random() < 0.03 else [self._step()]
        settings = BrokerSettings(
            maximum_inflight=any_of.choice([1_000, 1_000, 3]),
            maximum_queued_messages=any_of.choice([3, 20, 90]) if self._bounded else 1_000_000,
            queue_when_full=any_of.choice(
                [WhenFull.REJECT, WhenFull.DROP_NEWEST, WhenFull.DROP_NEWEST, WhenFull.DROP_OLDEST]
            ),
        )
        durable = self._crashes or any_of.random() < 0.4
        return Program(profiles, tuple(steps), settings, durable)

    def _profile(self, name: str) -> Profile:
        any_of = self._random
        expiry = any_of.choice([0, 60, 3_600, 3_600])
        one_by_one = any_of.random() < 0.3
        if any_of.random() < 0.4 and not self._bounded:
            version = any_of.choice([wire.MQTT_3_1, *[wire.MQTT_3_1_1] * 4])
            return Profile(name, version, expiry, one_by_one=one_by_one)
        limited, aliases = self._likes["limits"], self._likes["aliases"]
        return Profile(
            name,
            wire.MQTT_5,
            expiry,
            any_of.choice([0, 0, 1, 3, 20]),
            any_of.choice([0, 0, 1, 3]) if aliases else 0,
            any_of.choice([0, 0, 200, 5_000]) if limited else 0,
            one_by_one,
        )

    def _step(self) -> Step:
        any_of = self._random
        name = any_of.choice(self._names)
        makers: list[tuple[int, Callable[[], Step]]] = [
            (40, lambda: self._publish(name)),
            (6, lambda: Together(tuple(self._publish(each) for each in self._names))),
            (10, lambda: self._subscribe(name)),
            (3, lambda: Unsubscribe(name, tuple({self._filter() for _ in range(2)}))),
            (6, lambda: Connect(name, any_of.random() < 0.2, self._will(name))),
            (5, lambda: Do(name, "drop")),
            (2, lambda: Goodbye(name, any_of.random() < 0.3)),
            (6, lambda: Do(name, "slow")),
            (4, lambda: Answer(name, any_of.choice([1, 2, 10]), any_of.choice([0, 0, 0x10, 0x83]))),
            (4, lambda: Do(name, "quick")),
            (3, lambda: Do(name, "stall")),
            (4, lambda: Do(name, "read")),
            (2, lambda: Do(name, "withhold")),
            (2, lambda: Do(name, "release")),
            (3, lambda: Pass(any_of.choice([7, 7, 33, 130]))),
        ]
        if not self._bounded:
            makers.append((4, lambda: PublishInVain(name, self._publish(name))))
        if self._crashes:
            makers += [(4, Crash), (3, self._power_cut)]
        weights = [weight for weight, _ in makers]
        return any_of.choices([make for _, make in makers], weights)[0]()

    def _replay(self) -> list[Step]:
        """Return steps in which retained messages wait for a client that reads nothing."""
        any_of = self._random
        name, other = any_of.sample(self._names, 2)
        subscribe = Subscribe(name, (Request(f"{other}/#", any_of.randint(0, 1)),))
        meanwhile: list[Step] = [
            subscribe,
            Unsubscribe(name, (f"{other}/#",)),
            Publish(other, self._retained(other, 3, 30), 100),
            Do(name, "drop"),
            Pass(7),
        ]
        return [
            Publish(other, self._retained(other, 4, 200_000), 100),
            Do(name, "stall"),
            subscribe,
            *any_of.sample(meanwhile, 2),
            Do(name, "read"),
        ]

    def _retained(self, name: str, topics: int, size: int) -> tuple[Item, ...]:
        return tuple(
            Item(self._next(), f"{name}/quantity-{place}", 1, retain=True, size=size, value=place)
            for place in range(topics)
        )

    def _power_cut(self) -> Step:
        retains, self._likes["retain"] = self._likes["retain"], False
        publishes = tuple(self._publish(name) for name in self._names)
        self._likes["retain"] = retains
        return PowerCut(publishes)

    def _will(self, name: str) -> Item | None:
        if self._crashes or self._bounded or self._random.random() < 0.6:
            return None
        return Item(self._next(), f"{name}/will", self._random.randint(0, 2), size=40, value=3)

    def _filter(self) -> str:
        any_of = self._random
        name = any_of.choice(self._names)
        ours = [f"{name}/#", f"{name}/quantity-0", f"{name}/quantity-1"]
        filters = ["+/quantity-0", "+/+", *ours, "all/+", "all/x", "all/#"]
        plain = any_of.choice([*filters, "#", "#"] if self._everything else filters[3:])
        if self._likes["shared"] and any_of.random() < 0.3:
            return f"$share/{any_of.choice('gh')}/{plain}"
        return plain

    def _subscribe(self, name: str) -> Step:
        any_of = self._random
        requests = []
        for _ in range(any_of.choice([1, 1, 2, 3])):
            shared = (topic_filter := self._filter()).startswith("$share/")
            no_local = self._likes["no local"] and not shared and any_of.random() < 0.3
            requests.append(
                Request(
                    topic_filter,
                    any_of.randint(0, 2),
                    no_local,
                    any_of.random() < 0.3,
                    any_of.choice([0, 0, 1, 2]),
                )
            )
        unique = tuple({each.topic_filter: each for each in requests}.values())
        identifier = where = None
        if self._likes["identifiers"]:
            identifier = any_of.choice([None, any_of.randint(1, 300)])
        if self._likes["where"] and any_of.random() < 0.4:
            where = any_of.choice([*WHERE])
        return Subscribe(name, unique, identifier, where)

    def _publish(self, name: str) -> Publish:
        any_of = self._random
        n = any_of.choice([1, 2, 100])
        count = any_of.choice([1, 2, 5, 30, 100]) if n > 1 else any_of.choice([1, 3, 10])
        qos = any_of.choice([0, 1, 1, 2, -1])
        topics = any_of.choice([1, 1, 2, 3, 60])
        in_turn = any_of.random() < 0.5
        common = any_of.random() < 0.1
        forbidden = any_of.random() < 0.03
        retain = any_of.choice([0, 0, 0.1, 1]) if self._likes["retain"] else 0
        sizes = any_of.choice(SIZES)
        if self._likes["limits"] and any_of.random() < 0.3:
            sizes = range(140, 200)  # as large as some clients take
        interval = any_of.choice([None, 5, 100]) if self._likes["expiry"] else None
        alias = any_of.choice([0, 1, 9]) if self._likes["aliases"] else 0
        properties = [0]
        if self._likes["properties"]:
            properties = any_of.choice([[0], [1], [0, 1], [*range(len(PROPERTIES))]])
        items = []
        large = 0
        for index in range(count):
            place = index % topics if in_turn else any_of.randrange(topics)
            size = any_of.choice(sizes)
            large += size > 100_000
            if size > 100_000 and large > 4:
                size = 0
            if not size and (self._crashes or common or self._likes["shared"]):
                size = 20  # what is empty says nothing of itself where it could be another's
            items.append(
                Item(
                    self._next(),
                    "$SYS/x" if forbidden else "all/x" if common else f"{name}/quantity-{place}",
                    any_of.randint(0, 2) if qos < 0 else qos,
                    any_of.random() < retain,
                    size,
                    any_of.randint(0, 9),
                    any_of.choice(properties),
                    interval,
                    alias and alias + place % 4,
                )
            )
        return Publish(name, tuple(items), n, any_of.choice([0, 0, 0, 1, 3, 17, 1_000_000]))

    def _next(self) -> int:
        self._number += 1
        return self._number
