"""What an earlier run of the gateway left, as it is read from wherever it was kept."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.access.listeners import UNKNOWN, Origin
from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.session.journal import Journal


CLOCK_SET = 1_577_836_800_000
"""Wall milliseconds of 2020: a clock that showed less had never been set."""


def seconds_since(then: int, now: int) -> float:
    """Return how long ago `then` was, both in milliseconds since 1970.

    0 where the clock says nothing of it: it was set back meanwhile, or had not been set then.
    """
    return 0.0 if then < CLOCK_SET else max(0, now - then) / 1000


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """A subscription as its SUBSCRIBE asked for it.

    `where` is the text that came with it, `identity` whether that may ask who published,
    `deliver` the text of its delivery policy, `every` that of its `$every`. What the
    configuration attaches is not kept: another configuration may attach something else.
    It `awaits_retained` while it is not owed all retained messages yet that it asked for.
    """

    topic_filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int | None = None
    where: str | None = None
    identity: bool = True
    awaits_retained: bool = False
    deliver: str | None = None
    every: str | None = None


@dataclass(frozen=True, slots=True)
class RestoredSpan:
    """What a session must still deliver; its packet identifier is 0 unless it was sent."""

    span: Span
    released: bool = False


@dataclass(frozen=True, slots=True)
class StoredTail:
    """What stays on disk behind what was read: sequence numbers above `after`, up to `up_to`."""

    after: int
    up_to: int
    messages: int
    bytes: int


@dataclass(slots=True)
class RestoredSession:
    """A persistent session, whose owner is at `home` where it began.

    Its spans are in the order in which they are owed.

    They are the first of them, and `tail` says how many more there are.

    `left_at` is when its connection ended, in milliseconds since 1970; None if it had one until
    the very end. `attempts` are how often a channel gave out messages, by sequence number.
    """

    journal: "Journal"
    client_id: str
    expiry_interval: int
    username: str | None = None
    left_at: int | None = None
    home: Origin = UNKNOWN
    attempts: dict[int, int] = field(default_factory=dict)
    subscriptions: list[StoredSubscription] = field(default_factory=list)
    spans: list[RestoredSpan] = field(default_factory=list)
    incoming: list[int] = field(default_factory=list)
    tail: StoredTail | None = None


@dataclass(frozen=True, slots=True)
class RestoredWill:
    """A will that was not published, and how its client came.

    `due` is when that is to happen (ms since 1970), if known.
    """

    client_id: str
    username: str | None
    will: Will
    due: int | None = None
    origin: Origin = UNKNOWN


@dataclass(slots=True)
class Restored:
    """Everything that the broker takes up again."""

    sessions: list[RestoredSession] = field(default_factory=list)
    wills: list[RestoredWill] = field(default_factory=list)
    retained: list[Publication] = field(default_factory=list)
