"""Which consumer of a channel gets a message."""

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from gateway.broker.channels.deliveries import Deliveries, Delivery
from gateway.hashes import blake2b
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import topic_matches
from gateway.routing.filters.selection import Selection
from gateway.routing.router import RUN, Router
from gateway.routing.subscriptions.subscription import Group, Subscription
from gateway.session.session import Session
from gateway.settings.channel import Choice

if TYPE_CHECKING:
    from gateway.session.session import Session


class Moves:
    """Makes a moved topic wait until its previous consumer has acknowledged all of its messages.

    Otherwise two consumers would have messages of one topic, and one might overtake the other.
    """

    __slots__ = ("_before", "_connected", "_deliveries")

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._connected: set[Session] = set()
        # by topic, the deliveries in flight when consumers changed, and no later ones
        self._before: dict[str, list[Delivery]] = {}

    def note(self, connected: set[Session]) -> None:
        """Note which consumers are connected now."""
        if connected == self._connected:
            return
        self._connected = connected
        before: defaultdict[str, list[Delivery]] = defaultdict(list)
        for delivery in self._deliveries:
            sent = delivery.sent
            before[sent.publication.topic_of(sent.first)].append(delivery)
        self._before = dict(before)

    def waits(self, topic: str, consumer: Session) -> bool:
        """Return whether another consumer has messages of a topic in flight."""
        found = self._before.pop(topic, None)
        if found is None:
            return False
        remaining = [
            each for each in found if each.consumer is not consumer and self._deliveries.has(each)
        ]
        if remaining:
            self._before[topic] = remaining
        return bool(remaining)


_RUN = RUN  # compiled, a C name


class NobodyWantsIt(Exception):  # noqa: N818 - an answer, not a mistake of ours
    """There are consumers, but each one's filter or size limit forbids the message."""


class NobodyMayHaveItNow(Exception):  # noqa: N818 - likewise
    """None of the connected consumers may read the message, or has its topic, at present."""


class Window(NamedTuple):
    """A consumer, and the use of its window.

    `in_flight` are messages of the channel, `late` those that have timed out and occupy the window,
    which has `used` packet identifiers of `limit`: also for other subscriptions.
    """

    client: str
    connected: bool
    filter: str
    in_flight: int
    late: int
    used: int
    limit: int


class Consumers:
    """The `members` of a channel's group: chooses which of them gets a message.

    Their rights are checked if there are access rules, or if the topics are `guarded`. `randrange`
    returns a random number from 0 to below its argument. In a `durable` channel a consumer that an
    earlier version let subscribe with QoS 0 gets only messages of QoS 0.
    """

    __slots__ = (
        "_choose",
        "_deliveries",
        "_durable",
        "_guarded",
        "_in_turn",
        "_moves",
        "_randrange",
        "_router",
        "_sticky",
        "_turn",
        "every_level",
        "group",
        "members",
    )

    def __init__(
        self,
        router: Router,
        choice: Choice,
        deliveries: Deliveries,
        randrange: Callable[[int], int],
        *,
        guarded: bool,
        durable: bool = False,
    ) -> None:
        self._durable = durable
        self._router = router
        self._guarded = guarded
        self._randrange = randrange
        self._deliveries = deliveries
        self.every_level = [deliveries]  # of all levels that share the consumers
        self._moves = Moves(deliveries)
        self._turn = -1  # index of the member that got the last message
        self.choose_by(choice)
        self.serve(Group())

    def choose_by(self, choice: Choice) -> None:
        """Choose consumers in this way from now on."""
        self._in_turn = choice is Choice.ROUND_ROBIN
        self._sticky = choice is Choice.STICKY
        self._choose: Callable[[list[Subscription], Publication, int], Subscription | None] = {
            Choice.ROUND_ROBIN: _first,
            Choice.RANDOM: self._random,
            Choice.LEAST_INFLIGHT: _least_inflight,
            Choice.STICKY: self._stick,
        }[choice]

    def serve(self, group: Group) -> None:
        """Give messages to the members of this group, which may change."""
        self.group = group
        self.members = group.members

    def __len__(self) -> int:
        return len(self.members)

    def windows(self) -> list[Window]:
        """Return what each consumer has in flight of all it gets, and how much that may be."""
        late = self._deliveries.late.values()
        given = [each for level in self.every_level for each in level]
        return [
            Window(
                session.client_id,
                session.connection is not None,
                member.topic_filter,
                sum(each.remaining for each in given if each.consumer is session),
                sum(each.remaining for each in late if each.consumer is session),
                len(session.inflight),
                session.inflight.limit,
            )
            for member in self.members
            for session in (session_of(member),)
        ]

    @property
    def have_capacity(self) -> bool:
        """Whether one of them would be sent a message at once."""
        for each in self.members:
            if (each.qos or not self._durable) and session_of(each).ready(each.qos):
                return True
        return False

    def accept_any(self) -> bool:
        """Return whether every message may go to every member."""
        return not (self._sticky or self.ask())

    def ask(self) -> bool:
        """Return whether a consumer may refuse a message."""
        return self._guarded or self.group.conditional > 0 or self._router.restricts

    def share(self, count: int) -> int:
        """Return how many of `count` adjacent messages go to one consumer.

        Every idle consumer gets some. Otherwise a run has `RUN` messages, or a little less so that
        runs are equal: a run costs little more than one message.
        """
        if count == 1 or not self.accept_any():
            return 1
        connected, runs = 0, -(-count // _RUN)
        for each in self.members:
            session = session_of(each)
            if session.connection is not None:
                connected += 1
                runs = runs if len(session.inflight) else count
        return -(-count // min(runs, connected or 1))

    def choose(
        self, publication: Publication, number: int, avoid: "Session | None", above: int
    ) -> Subscription | None:
        """Return the consumer for a message now, None if none has capacity.

        `avoid` is chosen only if there is no other, and a consumer whose Maximum Packet Size is not
        `above` so many bytes never. Raises NobodyWantsIt and NobodyMayHaveItNow.
        """
        ask = self.ask()
        if self._in_turn and avoid is None and not ask:
            return self._next_ready(publication)
        connected = self._connected(publication)
        if not connected:
            return None
        wanting = connected
        if ask:
            wanting = self._wanting(connected, publication, number)
        if above:
            wanting = [each for each in wanting if _maximum_packet_size(each) > above]
        if not wanting:
            raise NobodyWantsIt
        prompt = self._prompt(connected, publication)
        if self._sticky:
            self._moves.note({session_of(each) for each in prompt})
        if len(prompt) < len(connected):
            wanting = [each for each in wanting if each in prompt] or wanting
        if avoid is not None:
            wanting = self._others(wanting, publication, number, avoid) or wanting
        chosen = self._choose(wanting, publication, number)
        if chosen is not None:
            self._turn = self.members.index(chosen)
        return chosen

    def _others(
        self, members: list[Subscription], publication: Publication, number: int, holder: "Session"
    ) -> list[Subscription]:
        """Return the members that do not have a message of the `holder` in their windows."""
        holders = self._deliveries.holders(publication, number) | {holder}
        return [each for each in members if session_of(each) not in holders]

    def others(self, publication: Publication, number: int, holder: "Session") -> bool:
        """Return whether another connected consumer may get a message of the `holder`."""
        prompt = self._prompt(self._connected(publication), publication)
        found = self._others(prompt, publication, number, holder)
        if not found or not self.ask():
            return bool(found)
        try:
            return bool(self._wanting(found, publication, number))
        except NobodyMayHaveItNow:
            return False

    def _connected(self, publication: Publication) -> list[Subscription]:
        """Return the connected members that acknowledge, beginning with the next in turn."""
        members = self.members
        turn = (self._turn + 1) % (len(members) or 1)
        return [
            each
            for each in (*members[turn:], *members[:turn])
            if session_of(each).connection is not None and self._suits(each, publication.qos)
        ]

    def _wanting(
        self, connected: list[Subscription], publication: Publication, number: int
    ) -> list[Subscription]:
        """Return the members that want a message and may be sent it."""
        topic = publication.topic_of(number)
        connected = [each for each in connected if not each.part or topic_matches(each.part, topic)]
        selection = self._router.selection(publication, number)
        wanting = [
            each
            for each in connected
            if selection.wants(each) and selection.may_send(session_of(each))
        ]
        selection.forget_parts()
        if not wanting:
            self._check_rights(selection, [session_of(each) for each in connected])
        return wanting

    def _check_rights(self, selection: Selection, connected: list["Session"]) -> None:
        """Raise NobodyMayHaveItNow if only rights, or the topic, exclude all consumers.

        The message is not dropped then: a consumer that may read it may connect later.
        """
        if not any(selection.may_read(each) and selection.may_send(each) for each in connected):
            raise NobodyMayHaveItNow

    def _prompt(self, members: list[Subscription], publication: Publication) -> list[Subscription]:
        """Return the members whose windows are not full of timed-out messages."""
        late = {each.consumer for each in self._deliveries.late.values()}
        if not late:
            return members
        return [
            each
            for each in members
            if session_of(each) not in late or _has_capacity(each, publication)
        ]

    def _next_ready(self, publication: Publication) -> Subscription | None:
        """Return the first member with capacity, after the one that got the last message."""
        members, turn, qos = self.members, self._turn, publication.qos
        for _ in range(len(members)):
            turn = turn + 1 if turn + 1 < len(members) else 0
            member: Subscription = members[turn]
            if self._suits(member, qos) and session_of(member).ready(min(member.qos, qos)):
                self._turn = turn
                return member
        return None

    def _suits(self, member: Subscription, qos: int) -> bool:
        """Return whether a consumer acknowledges messages of this QoS, if that is needed."""
        return member.qos > 0 or qos == 0 or not self._durable

    def _random(
        self, members: list[Subscription], publication: Publication, number: int
    ) -> Subscription | None:
        del number
        ready = [each for each in members if _has_capacity(each, publication)]
        return ready[self._randrange(len(ready))] if ready else None

    def _stick(
        self, members: list[Subscription], publication: Publication, number: int
    ) -> Subscription | None:
        """Return the topic's own consumer if it has capacity.

        A consumer that joins or leaves moves few topics.
        """
        topic = publication.topic_of(number)
        chosen = max(members, key=lambda each: _weight(topic, session_of(each).client_id))
        if not _has_capacity(chosen, publication) or self._moves.waits(topic, session_of(chosen)):
            return None
        return chosen


def _weight(topic: str, client_id: str) -> bytes:
    """Return the weight of a consumer for a topic; the greatest wins (rendezvous hashing).

    A cryptographic hash, since a CRC gives similar topics similar values.
    """
    return blake2b(f"{client_id}\0{topic}".encode(), digest_size=8).digest()


def _first(
    members: list[Subscription], publication: Publication, _number: int
) -> Subscription | None:
    return next((each for each in members if _has_capacity(each, publication)), None)


def _least_inflight(
    members: list[Subscription], publication: Publication, _number: int
) -> Subscription | None:
    ready = [each for each in members if _has_capacity(each, publication)]
    return min(ready, key=lambda each: len(session_of(each).inflight), default=None)


def session_of(member: Subscription) -> "Session":
    """Return the session of a consumer."""
    return member.subscriber  # type: ignore[return-value]  # shared subscriptions have only sessions


def _maximum_packet_size(member: Subscription) -> int:
    connection = session_of(member).connection
    return 0 if connection is None else connection.maximum_packet_size


def _has_capacity(member: Subscription, publication: Publication) -> bool:
    return session_of(member).ready(min(member.qos, publication.qos))
