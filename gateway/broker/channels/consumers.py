"""Which consumer of a channel gets a message."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from gateway.broker.channels.settings import Choice
from gateway.mqtt.publication import Publication
from gateway.routing.router import Router
from gateway.routing.subscriptions.shared import Group
from gateway.routing.subscriptions.subscription import Subscription

if TYPE_CHECKING:
    from gateway.session.session import Session


RUN = 32
"""Messages of one publisher, read together, that a consumer gets which has others already."""


class NobodyWantsIt(Exception):  # noqa: N818 - an answer, not a mistake of ours
    """There are consumers, and no one's filter and rights let a message through."""


class Consumers:
    """The members of a channel's group: who of them gets a message.

    Their rights are asked where there are access rules, or if the topics are `guarded`.
    `randrange` returns a random number from 0 to below another.
    """

    __slots__ = (
        "_choice",
        "_choose",
        "_group",
        "_guarded",
        "_picky",
        "_randrange",
        "_router",
    )

    def __init__(
        self,
        router: Router,
        group: Group[Subscription],
        choice: Choice,
        randrange: Callable[[int], int],
        *,
        guarded: bool,
    ) -> None:
        self._router = router
        self._guarded = guarded
        self._group = group
        self._randrange = randrange
        self._picky = False  # some may have a `$where`, or want nothing of their own
        self._choice = choice
        self._choose: Callable[[list[Subscription], Publication, int], Subscription | None] = {
            Choice.ROUND_ROBIN: _first,
            Choice.RANDOM: self._random,
            Choice.LEAST_INFLIGHT: _least_inflight,
            Choice.STICKY: _sticky,
        }[choice]

    def __len__(self) -> int:
        return len(self._group.members)

    def joined(self, member: Subscription) -> None:
        """Note a member that came."""
        self._picky = any(map(_is_picky, (*self._group.members, member)))

    @property
    def have_room(self) -> bool:
        """Whether one of them would be sent a message at once."""
        return any(session_of(each).ready(each.qos) for each in self._group.members)

    @property
    def ask(self) -> bool:
        """Whether a consumer may not want every message."""
        return self._guarded or self._picky or self._router.restricts

    def share(self, count: int) -> int:
        """Return how many of so many messages, which came together, go to one consumer.

        All that have nothing to do get some. Others get `RUN` together, which cost little more
        than one, or a little less, so that runs are as long.
        """
        if count == 1 or self._choice is Choice.STICKY or self.ask:
            return 1
        connected, runs = 0, -(-count // RUN)
        for each in self._group.members:
            session = session_of(each)
            if session.connection is not None:
                connected += 1
                runs = runs if len(session.inflight) else count
        return -(-count // min(runs, connected or 1))

    def choose(
        self, publication: Publication, number: int, avoid: "Session | None"
    ) -> Subscription | None:
        """Return who gets a message now, None if nobody has room for it.

        `avoid` gets it only if there is nobody else. Raises NobodyWantsIt.
        """
        if not self._group.members:
            return None
        turns = map(self._group.members.__getitem__, self._group.take_turns())
        ask = self.ask
        if avoid is None and not ask and self._choice is Choice.ROUND_ROBIN:
            return _first(turns, publication, number)
        connected = [each for each in turns if session_of(each).connection is not None]
        if not connected:
            return None
        wanting = connected
        if ask:
            selection = self._router.selection(publication, number)
            wanting = [each for each in connected if selection.wants(each)]
            selection.forget_parts()
            if not wanting:
                raise NobodyWantsIt
        others = [each for each in wanting if session_of(each) is not avoid]
        return self._choose(others or wanting, publication, number)

    def _random(
        self, members: list[Subscription], publication: Publication, number: int
    ) -> Subscription | None:
        del number
        ready = [each for each in members if _has_room(each, publication)]
        return ready[self._randrange(len(ready))] if ready else None


def _is_picky(member: Subscription) -> bool:
    return member.where is not None or member.no_local


def _first(
    members: Iterable[Subscription], publication: Publication, _number: int
) -> Subscription | None:
    for each in members:
        session = session_of(each)
        if session.ready(min(each.qos, publication.qos)):
            return each
    return None


def _least_inflight(
    members: list[Subscription], publication: Publication, _number: int
) -> Subscription | None:
    ready = [each for each in members if _has_room(each, publication)]
    return min(ready, key=lambda each: len(session_of(each).inflight), default=None)


def _sticky(
    members: list[Subscription], publication: Publication, number: int
) -> Subscription | None:
    """Return the topic's consumer if it has room; one that comes or goes moves few topics."""
    topic = publication.topic_of(number).encode()
    chosen = max(members, key=lambda each: crc32(topic, crc32(each.subscriber.client_id.encode())))
    return chosen if _has_room(chosen, publication) else None


def session_of(member: Subscription) -> "Session":
    """Return the session of a consumer."""
    return member.subscriber  # type: ignore[return-value]  # shared subscriptions have sessions alone


def _has_room(member: Subscription, publication: Publication) -> bool:
    return session_of(member).ready(min(member.qos, publication.qos))
