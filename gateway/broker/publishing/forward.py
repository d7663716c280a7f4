"""A publication to everyone who gets it: each destination takes it for itself."""

from typing import TYPE_CHECKING

from gateway.broker.instant import Instant
from gateway.broker.publishing import peer_to_peer
from gateway.broker.publishing.inline import InlineClient
from gateway.broker.publishing.refusals import refuse_for, refuse_for_disk
from gateway.broker.publishing.topic_admissions import TopicAdmission
from gateway.mqtt.publication import Publication
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.budget import PIECES
from gateway.routing.destination import Destination
from gateway.routing.route import Route
from gateway.routing.subscriptions.subscription import Subscriber
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.session.traffic import RECEIVER_BYTES, Traffic

if TYPE_CHECKING:
    from gateway.broker.broker import Broker


_RECEIVER_BYTES = RECEIVER_BYTES  # compiled, a C name
_SUCCESS = ReasonCode.SUCCESS  # CPython 3.11 takes 50 ns to find a member of an enumeration
_NO_MATCHING_SUBSCRIBERS = ReasonCode.NO_MATCHING_SUBSCRIBERS
_QUOTA_EXCEEDED = ReasonCode.QUOTA_EXCEEDED

Outcome = tuple[int, ReasonCode, ReasonCode | None]
"""How many messages were taken, with which reason code, and why the one behind them was not.

None for that one if it was not looked at.
"""

Selected = list[tuple[int, list[Destination]]]
"""Runs of so many messages, with the sessions that get them beside those who always do."""


def forward(
    broker: "Broker",
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
    promised: bool,
) -> Outcome:
    """Keep, route and deliver messages from number `first` on, as many as end alike.

    Nobody gets, and `Budget.unfinished` says of, what takes more than a turn to ask about: it is to
    be forwarded again in a later one.

    Parts of the gateway come first: what they refuse (a full outbox) is refused as a whole, so
    that the publisher can send it again without doubling it for anyone else. That is for what is
    `promised` to be kept once it is acknowledged; the rest goes to everyone who can take it.
    """
    count = publication.packets.count - first
    if admission.delayed or admission.addressee is not None:
        return _forward_elsewhere(broker, publication, first, admission, instant)
    if broker.replays.count:
        broker.replays.send_first(admission.topic, instant)
    route = admission.route
    if route.crowded:
        broker.counters.add("tidegate/refused/crowded_topics")
        broker.refusal = "too many subscriptions match its topic"
        return count, _QUOTA_EXCEEDED, None
    if promised:
        count = _room(broker, publication, first, count, route)
        if count and publication.retain:
            count = _retained_room(broker, publication, first, count)
        if not count:
            return 0, _SUCCESS, _QUOTA_EXCEEDED
    selected, refusal, unfinished = None, None, False
    if route.asks or route.inline:
        budget = broker.budget
        budget.begin(publication.packets.payloads)
        count, refusal, selected = _offer(broker, publication, first, count, admission, promised)
        budget.pieces = PIECES
        if not count:
            return 0, _SUCCESS, refusal
        # who takes the messages now may have members to ask, or messages of its own
        unfinished, budget.unfinished = budget.unfinished, False
    if publication.retain:
        _retain(broker, publication, first, count)
    _deliver(
        broker.traffic, publication, first, count, route, selected, instant.monotonic, promised
    )
    if unfinished:
        broker.budget.unfinished = True
    if route.always or (selected is not None and selected[0][1]):
        return count, _SUCCESS, refusal
    return count, _NO_MATCHING_SUBSCRIBERS, None


def _forward_elsewhere(
    broker: "Broker",
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
) -> Outcome:
    """Keep messages that are put off, or deliver those that are for one client alone."""
    if admission.delayed:
        return broker.delays.forward(publication, first)
    return peer_to_peer.forward(broker, publication, first, admission, instant)


def _retained_room(broker: "Broker", publication: Publication, first: int, most: int) -> int:
    """Return how many of the messages are surely retained: 0, which is counted, for none."""
    retained, shares = broker.retained, broker.shares
    if retained.has_room(publication, first, most) and shares.may_retain(publication, first, most):
        return most
    broker.refusal = "there is no room for another retained message"
    if shares.refuse_retained(publication.one(first)):
        broker.refusal = shares.refusal
    elif retained.accepts(publication.one(first)):
        return 1
    broker.counters.add("tidegate/retained/rejected")
    return 0


def _room(broker: "Broker", publication: Publication, first: int, count: int, route: Route) -> int:
    """Return how many of the messages no session would lose that always gets them.

    0, which is counted, for none.
    """
    kept = publication.retain
    for destination in route.sessions:
        session: Session = destination.subscriber
        if destination.qos and session.expiry_interval:
            kept = True
            qos = min(destination.qos, publication.qos)
            if session.connection is None and not session.comes_soon:
                publication.barrier = None  # who is away cannot spare the disk what others could
            count = session.room(publication, first, count, qos)
            if not count:
                refuse_for(broker, session)
                return 0
    return count if not kept or _disk_has_room(broker, publication) else 0


def _disk_has_room(broker: "Broker", publication: Publication) -> bool:
    """Return False, and count it, if nothing more can be promised to be kept."""
    if publication.commit_within is None or not broker.store.full:
        return True
    refuse_for_disk(broker)
    return False


def _retain(broker: "Broker", publication: Publication, first: int, count: int) -> None:
    """Keep each message in place of its topic's last one; count it where there is no room."""
    broker.traffic.dear += count
    retained, shares = broker.retained, broker.shares
    for number in range(first, first + count):
        one = publication.one(number)
        before = retained.get(one.topic)
        if not shares.refuse_retained(one) and retained.set(one):
            shares.count_retained(before, retained.get(one.topic))
            broker.store.keep_retained(one)
        else:
            broker.counters.add("tidegate/retained/rejected")


def _offer(
    broker: "Broker",
    publication: Publication,
    first: int,
    count: int,
    admission: TopicAdmission,
    promised: bool,
) -> tuple[int, ReasonCode | None, Selected]:
    """Let the messages be looked at, and give them to the parts of the gateway, until one refuses.

    Returns how many messages nobody refused and have one answer, why the next one was refused, if
    it was, and the sessions that are to get them beside those who always do.
    """
    route, rights = admission.route, broker.admissions.reader(admission)
    budget = broker.budget
    found: Selected = []
    given: dict[Subscriber, int] = {}
    run = 1
    if rights is None and not broker.router.looks(route):
        run = 1 if route.inline else broker.router.run(route, publication.qos, count)
    elif not route.always:
        count = 1  # each has an answer of its own
    number, end = first, first + count
    while number < end:
        run = min(run, end - number)
        selected: list[Destination] = []
        if found and budget.spent:
            break
        if route.asks:
            selected = broker.router.select(route, publication, number, given, rights, run)
            if run > 1 and not selected:
                run = 1
                selected = broker.router.select(route, publication, number, given, rights)
            if budget.unfinished:
                break
        if promised and not _has_room(broker, publication, first, selected, given):
            return number - first, _QUOTA_EXCEEDED, found
        for destination in route.inline:
            client: InlineClient = destination.subscriber
            message = publication.message(number)
            if budget.pieces:  # it may have been made in an earlier turn
                message.commit_within = publication.commit_within
                message.barrier = publication.barrier
            code = client.receive(message, list(destination.topic_filters))
            if code >= FAILURE and promised:
                broker.refusal = client.refusal
                return number - first, code, found
        found.append((run, selected))
        number += run
    return number - first, None, found


def _has_room(
    broker: "Broker",
    publication: Publication,
    first: int,
    selected: list[Destination],
    given: dict[Subscriber, int],
) -> bool:
    """Return False, and count it, if a session that is to get a message would lose it.

    Each was `given` so many messages of those from number `first` on, this one among them.
    At QoS 0 nothing is kept for a session that is away, which needs no room.
    """
    kept = False
    for destination in selected:
        session: Session = destination.subscriber
        if not min(destination.qos, publication.qos) and session.connection is None:
            given[session] -= 1
    for destination in selected:
        session = destination.subscriber
        qos = min(destination.qos, publication.qos)
        if qos and session.expiry_interval:
            kept = True
            more = given[session]
            if session.room(publication, first, more, qos) < more:
                refuse_for(broker, session)
                return False
    return not kept or _disk_has_room(broker, publication)


def _deliver(
    traffic: Traffic,
    publication: Publication,
    first: int,
    count: int,
    route: Route,
    selected: Selected | None,
    now: float,
    promised: bool,
) -> None:
    """Hand the messages to the sessions, each as it needs them: all of them, or those selected."""
    if len(route.sessions) > 1 or selected is not None:
        publication.share_forms()
        publication.receivers = max(1, len(route.sessions))
        traffic.full_at -= _RECEIVER_BYTES * len(route.sessions)
    qos, retain = publication.qos, publication.retain
    for destination in route.sessions:
        session: Session = destination.subscriber
        session.accept(
            publication,
            first,
            count,
            qos and min(destination.qos, qos),
            retain and destination.retain_as_published,
            tuple(destination.identifiers),
            now,
            promised,
            "",
            destination.delivery,
        )
    if selected is not None:
        for run, destinations in selected:
            for destination in destinations:
                deliver(destination, publication, first, run, now, promised)
            first += run


def deliver(
    destination: Destination,
    publication: Publication,
    first: int,
    count: int,
    now: float,
    promised: bool,
) -> None:
    """Hand messages, from number `first` on, to a destination that is a session."""
    session: Session = destination.subscriber
    session.accept(
        publication,
        first,
        count,
        min(destination.qos, publication.qos),
        publication.retain and destination.retain_as_published,
        tuple(destination.identifiers),
        now,
        promised,
        destination.topic_filters[0] if destination.shared else "",
        destination.delivery,
    )


def share_out(broker: "Broker", spans: list[Span], instant: Instant) -> None:
    """Give what a session leaves over to other members of its shared subscriptions, if any.

    They SHOULD get what was sent to it at QoS 1 and not acknowledged (section 4.8.2).
    """
    for span in spans:
        publication = span.publication
        if publication.expired(instant.monotonic):
            broker.counters.add("publish/messages/expired", span.count)
            continue
        for number in range(span.first, span.first + span.count):
            member = broker.router.member(span.topic_filter, publication, number)
            if member is not None:
                deliver(member, publication, number, 1, instant.monotonic, promised=False)
