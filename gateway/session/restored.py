"""State that an earlier run of the gateway stored, as it is read."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gateway.access.listeners import UNKNOWN, Origin
from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.session.journal import Journal


CLOCK_SET = 1_577_836_800_000
"""Wall milliseconds of 2020: a clock before that was never set."""


def seconds_since(then: int, now: int) -> float:
    """Return how long ago `then` was, both in milliseconds since 1970.

    0 if the clock is unreliable: it was set back meanwhile, or had not been set then.
    """
    return 0.0 if then < CLOCK_SET else max(0, now - then) / 1000


class StoredSubscription(NamedTuple):
    """A subscription as its SUBSCRIBE requested it.

    `where` is its filter's text, `identity` whether that may use the publisher's identity,
    `deliver` the text of its delivery policy, `every` that of its `$every`. Configured filters are
    not stored, since the configuration may change. `awaits_retained` is True until all requested
    retained messages are queued.
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


class RestoredSpan(NamedTuple):
    """What a session must still deliver; its packet identifier is 0 unless it was sent."""

    span: Span
    released: bool = False


class StoredTail(NamedTuple):
    """What stays on disk after what was read: sequence numbers above `after`, up to `up_to`."""

    after: int
    up_to: int
    messages: int
    bytes: int


@dataclass(slots=True)
class RestoredSession:
    """A persistent session, with the origin of its owner as `home`.

    Its spans are the first of its messages, in order; `tail` says how many more there are.

    `disconnected_at` is when its connection ended, in milliseconds since 1970; None if it was
    connected to the very end. `attempts` are how often a channel dispatched messages, by sequence
    number.
    """

    journal: "Journal"
    client_id: str
    expiry_interval: int
    username: str | None = None
    disconnected_at: int | None = None
    home: Origin = UNKNOWN
    attempts: dict[int, int] = field(default_factory=dict)
    subscriptions: list[StoredSubscription] = field(default_factory=list)
    spans: list[RestoredSpan] = field(default_factory=list)
    incoming: list[int] = field(default_factory=list)
    tail: StoredTail | None = None


class RestoredWill(NamedTuple):
    """A will that was not published, and the origin of its client.

    `due` is when it is to be published (ms since 1970), if known.
    """

    client_id: str
    username: str | None
    will: Will
    due: int | None = None
    origin: Origin = UNKNOWN


@dataclass(slots=True)
class Restored:
    """Everything that the broker restores."""

    sessions: list[RestoredSession] = field(default_factory=list)
    wills: list[RestoredWill] = field(default_factory=list)
    retained: list[Publication] = field(default_factory=list)
