"""Every change of state crossed with everything that remembers: where two right features may err.

A change and a holder are a few steps each. Their pair is a program: fill the holder, change the
state, ask the holder. The judge compares after each step; at the end all rights are back and
everybody fetches what is left, so that nothing which was acknowledged may be missing.
"""

from dataclasses import dataclass

from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from tests.judge.items import Item
from tests.judge.judge import Request
from tests.judge.player import Profile
from tests.judge.programs import Program
from tests.judge.rights import MAIN, SECOND, Login
from tests.judge.steps import (
    Connect,
    Crash,
    Do,
    FillUplink,
    Pass,
    Publish,
    RefuseCommits,
    Reload,
    Step,
    Subscribe,
)

ALL = "topic readwrite #\nuser anna\ntopic readwrite #\nuser mallory\ntopic readwrite #\n"
LESS = "topic readwrite #\nuser anna\ntopic read b/#\nuser mallory\ntopic readwrite #\n"
"""What the listeners allow: everything, and to anna nothing of what the pairs are about."""

ANNA = Login("anna")
JOBS = "$share/jobs/jobs/#"
SETTINGS = BrokerSettings(channels=(ChannelSettings("jobs", "jobs/#", inflight_timeout=86_400),))
PROFILES = (
    Profile("a", expiry=3_600),  # publishes
    Profile("b", expiry=3_600, receive_maximum=3, login=ANNA),  # whose state changes
    Profile("c", expiry=3_600),  # looks on
)


class Numbers:
    """Gives each message of a program a number of its own."""

    def __init__(self) -> None:
        self._last = 0

    def publish(self, topic: str, *qos: int, retain: bool = False, by: str = "a") -> Publish:
        """Return a step that publishes a message of each of these QoS."""
        items = []
        for each in qos:
            self._last += 1
            items.append(Item(self._last, topic, each, retain, size=30, value=self._last % 10))
        return Publish(by, tuple(items), n=100)


CHANGES: dict[str, tuple[Step, ...]] = {
    "a take-over by the same user": (Connect("b"),),
    "a take-over by another user": (Connect("b", login=Login("mallory")),),
    "a take-over that another user begins anew": (
        Connect("b", clean=True, login=Login("mallory")),
    ),
    "a take-over by a stricter listener": (Connect("b", login=Login("anna", SECOND)),),
    "rights taken": (Reload(((MAIN, LESS),)),),
    "rights taken and given back": (Reload(((MAIN, LESS),)), Reload(((MAIN, ALL),))),
    "the same rules read again": (Reload(((MAIN, ALL), (SECOND, LESS))),),
    "a restart": (Crash(),),
    "session expiry": (Do("b", "drop"), Pass(3_700)),
    "a disk that refuses": (),  # beside what is published for the holder
    "a link lost": (Do("b", "drop"), Connect("b")),
    "an uplink paused": (FillUplink(full=True),),  # until its outbox is full
}
"""What happens to client b or to the broker. `Reload` is what a reload of the ACL file does."""


@dataclass(frozen=True)
class Holder:
    """How something that remembers is filled, and how it is asked afterwards."""

    fill: tuple[Step, ...]
    ask: tuple[Step, ...]


def _holders() -> dict[str, Holder]:
    new = Numbers()
    everything = Subscribe("b", (Request("a/#", 2), Request("all/#", 1)))
    jobs = Subscribe("b", (Request(JOBS, 1),))
    will = Item(900, "a/will", 1, size=40, value=3)
    return {
        "cached routes": Holder(
            (everything, new.publish("a/x", 0, 1, 2), new.publish("all/x", 0, 1)),
            (new.publish("a/x", 0, 1, 2), new.publish("all/x", 0, 1)),
        ),
        "topic admissions": Holder(
            (Subscribe("c", (Request("a/#", 1),)), new.publish("a/x", 0, 1, 2, by="b")),
            (new.publish("a/x", 0, 1, 2, by="b"), new.publish("a/x", 1, by="c")),
        ),
        "access": Holder(
            (Subscribe("b", (Request("a/x", 1),)), new.publish("a/x", 1)),
            (
                Subscribe("b", (Request("a/quantity-0", 1), Request("b/#", 1))),
                new.publish("a/quantity-0", 0, 1),
                new.publish("b/x", 0, 1),
            ),
        ),
        "in-flight windows": Holder(
            (everything, Do("b", "slow"), new.publish("a/x", 1, 2, 1)),
            (Do("b", "quick"), new.publish("a/x", 1)),
        ),
        "session queues": Holder(
            (everything, Do("b", "slow"), new.publish("a/x", 1, 2, 1, 1, 2, 1, 1)),
            (Do("b", "quick"), new.publish("a/x", 2)),
        ),
        "the retained store": Holder(
            (new.publish("a/x", 1, retain=True), new.publish("b/x", 1, retain=True)),
            (Subscribe("b", (Request("a/#", 1), Request("b/#", 1))), new.publish("a/x", 1)),
        ),
        "delayed messages": Holder(
            (
                everything,
                new.publish("$delay/40/a/x", 1, 1),
                new.publish("$delay/40/all/x", 1, by="b"),
            ),
            (Pass(45), new.publish("a/x", 1)),
        ),
        "wills": Holder(
            (Connect("b", will=will, will_delay=20), Subscribe("c", (Request("a/will", 1),))),
            (Do("b", "drop"), Pass(30)),
        ),
        "channels": Holder(
            (
                Subscribe("c", (Request(JOBS, 1),)),
                jobs,
                Do("b", "slow"),
                Do("c", "slow"),
                new.publish("jobs/x", 1, 1, 1, 1, 1, 1),
            ),
            (Do("b", "quick"), Do("c", "drop"), new.publish("jobs/x", 1, 1), Connect("c")),
        ),
    }


HOLDERS = _holders()
"""By what is said of them."""


def pair(change: str, holder: str, *, away: bool) -> Program:
    """Return the program of a pair; with `away` client b is not there while the state changes."""
    held, changed = HOLDERS[holder], CHANGES[change]
    steps: list[Step] = [Reload(((MAIN, ALL), (SECOND, LESS)))]
    steps += [Connect("a"), Connect("b"), Connect("c"), *held.fill]
    if away:
        steps.append(Do("b", "drop"))
    steps += changed
    if change == "a restart":
        steps += [Connect("a"), Connect("c")]
    ask = held.ask
    if change == "a disk that refuses":
        ask = tuple(RefuseCommits((each,)) if isinstance(each, Publish) else each for each in ask)
    steps += [*ask, Reload(((MAIN, ALL),)), Connect("b")]
    return Program(PROFILES, tuple(steps), SETTINGS, durable=True, uplink=True)
