"""Makes random programs in which changes of state meet what remembers: each from a seed."""

from collections.abc import Callable
from dataclasses import replace

from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from tests.conformance.support import wire
from tests.judge.items import Item
from tests.judge.judge import Request
from tests.judge.maker import Maker
from tests.judge.player import Profile
from tests.judge.programs import Program
from tests.judge.rights import ANYBODY, MAIN, SECOND, Login
from tests.judge.steps import (
    Connect,
    Crash,
    Do,
    FillUplink,
    Pass,
    PowerCut,
    Publish,
    PublishInVain,
    RefuseCommits,
    Reload,
    Step,
    Subscribe,
)

USERS = None, "anna", "bob"
WORDS = "read", "write", "readwrite"
JOBS = "$share/jobs/jobs/#"
CHANNELS = (ChannelSettings("jobs", "jobs/#", inflight_timeout=86_400),)
LEFT_OUT = "limits", "shared"
"""Likings that are judged by themselves."""


class PairsMaker(Maker):
    """Makes programs with delayed messages, wills, a channel, and an uplink that may be full."""

    def __init__(self, seed: int, *, length: int = 25) -> None:
        super().__init__(seed, crashes=True, length=length)
        self._bounded = False
        self._likes |= dict.fromkeys(LEFT_OUT, False)
        self._uplink = self._random.random() < 0.5
        self._rights = self._random.random() < 0.6

    def make(self) -> Program:
        program = super().make()
        settings = BrokerSettings(
            maximum_inflight=program.settings.maximum_inflight, channels=CHANNELS
        )
        steps = program.steps
        if self._uplink:  # of what has no answer nobody knows whether it went up
            steps = tuple(each for each in steps if not isinstance(each, PowerCut | PublishInVain))
        profiles = tuple(map(self._fitting, program.profiles))
        return replace(
            program, profiles=profiles, steps=steps, settings=settings, uplink=self._uplink
        )

    def _fitting(self, profile: Profile) -> Profile:
        version = wire.MQTT_5 if self._uplink else profile.version  # others are thrown out
        login = Login(self._random.choice(USERS)) if self._rights else ANYBODY
        return replace(profile, maximum_packet_size=0, version=version, login=login)

    def _step(self) -> Step:
        any_of = self._random
        name = any_of.choice(self._names)
        makers: list[tuple[int, Callable[[], Step]]] = [
            (40, super()._step),
            (6, lambda: self._delayed(name)),
            (6, lambda: self._job(name)),
            (3, lambda: Subscribe(name, (Request(JOBS, 1),))),
            (5, lambda: Connect(name, any_of.random() < 0.2, self._will(name), self._delay())),
            (3, lambda: Do(name, "drop")),
            (3, lambda: Pass(any_of.choice([3, 11, 50]))),
            (4, lambda: RefuseCommits(tuple(self._publish(each) for each in self._names))),
            (2, Crash),
        ]
        if self._uplink:
            makers.append((5, lambda: FillUplink(any_of.random() < 0.4)))
        if self._rights:
            makers += [(5, self._reload), (5, lambda: self._log_in(name))]
        weights = [weight for weight, _ in makers]
        return any_of.choices([make for _, make in makers], weights)[0]()

    def _reload(self) -> Reload:
        any_of = self._random
        listeners = any_of.choice([(MAIN,), (SECOND,), (MAIN, SECOND)])
        return Reload(tuple((each, self._rules()) for each in listeners))

    def _rules(self) -> str | None:
        """Return rules that leave most open, none now and then."""
        any_of = self._random
        if any_of.random() < 0.2:
            return None
        lines = []
        for user in USERS:
            lines += [] if user is None else [f"user {user}"]
            lines.append("topic readwrite #")
            for _ in range(any_of.choice([0, 0, 1, 2])):
                lines.append(f"topic deny {any_of.choice(self._topics())}")
            if any_of.random() < 0.2:
                lines.remove("topic readwrite #")
                lines.append(f"topic {any_of.choice(WORDS)} {any_of.choice(self._topics())}")
        return "".join(f"{line}\n" for line in lines)

    def _topics(self) -> list[str]:
        return [*(f"{name}/#" for name in self._names), "+/quantity-0", "jobs/#", "all/x"]

    def _log_in(self, name: str) -> Connect:
        login = Login(self._random.choice(USERS), self._random.choice([MAIN, SECOND]))
        return Connect(name, self._random.random() < 0.2, self._will(name), login=login)

    def _delay(self) -> int:
        return self._random.choice([0, 0, 4, 20])

    def _delayed(self, name: str) -> Publish:
        seconds = self._random.choice([2, 9, 60])
        topic = f"$delay/{seconds}/{name}/quantity-0"
        return self._alike(name, topic, self._random.choice([1, 1, 2]))

    def _job(self, name: str) -> Publish:
        return self._alike(name, "jobs/x", 1)

    def _alike(self, name: str, topic: str, qos: int) -> Publish:
        count = self._random.choice([1, 2, 5, 30])
        items = [Item(self._next(), topic, qos, size=40, value=3) for _ in range(count)]
        return Publish(name, tuple(items), n=100)

    def _will(self, name: str) -> Item | None:
        if self._random.random() < 0.5:
            return None
        return Item(self._next(), f"{name}/will", self._random.randint(0, 2), size=40, value=3)
