"""Delivers a publication to all its destinations."""

from collections.abc import Sequence

from gateway.access.rule import READ
from gateway.broker.instant import Instant
from gateway.broker.publishing.expiry import bounded
from gateway.broker.publishing.inline import InlineClient
from gateway.broker.publishing.refusals import Outcome
from gateway.broker.publishing.topic_admissions import TopicAdmission
from gateway.broker.publishing.topic_memory import MAXIMUM_HELD, TopicMemory
from gateway.broker.state import State
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import publication_of
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.budget import PIECES
from gateway.routing.route import Destination, Route
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscriber
from gateway.session.durability_class import DurabilityClass
from gateway.session.session import Session
from gateway.session.span import Span
from gateway.session.traffic import RECEIVER_BYTES, Traffic

_MAXIMUM_HELD = MAXIMUM_HELD  # compiled, C names
_RECEIVER_BYTES = RECEIVER_BYTES
_SUCCESS = ReasonCode.SUCCESS  # CPython 3.11 takes 50 ns to find a member of an enumeration
_NO_MATCHING_SUBSCRIBERS = ReasonCode.NO_MATCHING_SUBSCRIBERS
_QUOTA_EXCEEDED = ReasonCode.QUOTA_EXCEEDED

Selected = list[tuple[int, list[Destination]]]
"""Runs of messages, each with the sessions that get it beside those that get all."""


def publish(
    state: State,
    message: Message,
    instant: Instant,
    of_client: DurabilityClass | None = None,
    *,
    only_once: bool = False,
) -> ReasonCode:
    """Route a message from a part of the gateway, as if a client had published it.

    The configured topics, or the class of the client `of_client`, say how soon it must be on disk,
    unless it is in memory only (`Message.commit_within`). A code of 0x80 or above means that nobody
    got it. With `only_once` the message goes to every destination that can accept it, even if
    another refuses.
    """
    budget = state.budget
    budget.now = instant.monotonic
    # a message that is published here cannot be postponed
    pieces, budget.pieces = budget.pieces, PIECES
    publication = publication_of(message)
    admission = state.admissions.find(publication.topic_name)
    if message.commit_within is not None:
        of_client = of_client or state.durability_classes.default
        message.commit_within = admission.commit_within(of_client)
        publication.commit_within = message.commit_within
    reserved = message.qos > 0 and not only_once
    _, code, refusal = forward(state, publication, 0, admission, instant, reserved)
    publication.forms = publication.messages = None
    budget.pieces = pieces
    return code if refusal is None else refusal


def forward(
    state: State,
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
    reserved: bool,
) -> Outcome:
    """Store, route and deliver messages from number `first` on, as many as have one result.

    If evaluating filters takes more than a turn, nobody gets the message and `Budget.unfinished` is
    set: it is to be forwarded again in a later turn.

    Parts of the gateway come first. If one refuses (a full outbox), the message is refused as a
    whole, so that the publisher can send it again without doubling it for others. That applies to
    `reserved` messages, which must be stored before their acknowledgement; others go to every
    destination that can accept them.
    """
    # not split: every message comes here, and tests/test_ways.py bounds the calls on its way
    count = publication.packets.count - first
    if admission.special:
        return _forward_special(state, publication, first, admission, instant)
    # a waiting replay must not send an older retained message after this one
    if state.replays.count:
        state.replays.send_first(admission.topic, instant)
    route = admission.route
    # all receivers are asked before any gets the message: a refusal then holds for all of them
    if reserved:
        count = _capacity(state, publication, first, count, route)
        if not count:
            return 0, _SUCCESS, _QUOTA_EXCEEDED
    selected, refusal, unfinished = None, None, False
    if route.selective or route.inline:
        budget = state.budget
        budget.begin(publication.packets.payloads)
        count, refusal, selected = _offer(state, publication, first, count, admission, reserved)
        budget.pieces = PIECES
        if not count:
            return 0, _SUCCESS, refusal
        # receivers may route messages of their own, which use the same budget
        unfinished, budget.unfinished = budget.unfinished, False
    if state.topic_memory is not None:
        # a call for each message would cost more than what it does
        topic, packets = admission.remembered, publication.packets
        if topic is not None and packets.count == 1 and packets.size <= _MAXIMUM_HELD:
            topic.last = publication
            topic.count += 1
            topic.bytes += packets.payloads
        else:
            _note(state, state.topic_memory, publication, first, count, admission)
    if publication.retain or state.watch is not None:
        _remember(state, publication, first, count)
    _deliver(state.traffic, publication, first, count, route, selected, instant.monotonic, reserved)
    if unfinished:
        state.budget.unfinished = True
    if route.always or (selected is not None and selected[0][1]):
        return count, _SUCCESS, refusal
    return count, _NO_MATCHING_SUBSCRIBERS, None


def _forward_special(
    state: State,
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
) -> Outcome:
    """Store delayed messages, deliver peer to peer messages, or refuse those to a crowded topic.

    Peer to peer messages need no subscription and match none. No part of the gateway sees them, and
    they are not retained. A client that may not read the topic does not get them.
    """
    if admission.delayed:
        return state.delays.forward(publication, first)
    count, qos = publication.packets.count - first, publication.qos
    if admission.addressee is None:
        state.counters.add("tidegate/refused/crowded_topics")
        state.refusals.reason = "too many subscriptions match its topic"
        return count, _QUOTA_EXCEEDED, None
    session = state.sessions.get(admission.addressee)
    if session is None or not state.admissions.rights(admission, session.access) & READ:
        return count, _NO_MATCHING_SUBSCRIBERS, None
    count = session.capacity(publication, first, count, qos)
    if not count:
        state.refusals.for_queue(session)
        return 0, _SUCCESS, _QUOTA_EXCEEDED
    size = len(publication.packets.data)
    if qos and session.persistent and not state.store.accepts(size):
        state.refusals.for_disk()
        return 0, _SUCCESS, _QUOTA_EXCEEDED
    session.accept(publication, first, count, qos, now=instant.monotonic)
    return count, _SUCCESS, None


def _retained_capacity(state: State, publication: Publication, first: int, most: int) -> int:
    """Return how many of the messages will surely be retained; count it if none will."""
    retained, shares = state.retained, state.shares
    if retained.has_capacity(publication, first, most) and shares.may_retain(
        publication, first, most
    ):
        return most
    state.refusals.reason = "there is no space for another retained message"
    if shares.refuse_retained(publication.one(first)):
        state.refusals.reason = shares.refusal
    elif retained.accepts(publication.one(first)):
        return 1
    state.counters.add("tidegate/retained/rejected")
    return 0


def _capacity(state: State, publication: Publication, first: int, count: int, route: Route) -> int:
    """Return how many of the messages every unconditional destination can store.

    0, which is counted, if none. Messages to be retained must have space there, too.
    """
    is_retained = publication.retain
    for destination in route.sessions:
        session: Session = destination.subscriber
        if destination.qos and session.expiry_interval:
            is_retained = True
            qos = min(destination.qos, publication.qos)
            if session.connection is None and not session.comes_soon:
                # a disconnected receiver cannot acknowledge before the commit
                publication.barrier = None
            count = session.capacity(publication, first, count, qos)
            if not count:
                state.refusals.for_queue(session)
                return 0
    if is_retained and not _disk_has_space(state, publication):
        return 0
    return _retained_capacity(state, publication, first, count) if publication.retain else count


def _disk_has_space(state: State, publication: Publication) -> bool:
    """Return False, and count it, if nothing more can be stored durably."""
    if publication.commit_within is None or state.store.accepts(len(publication.packets.data)):
        return True
    state.refusals.for_disk()
    return False


def _note(
    state: State,
    memory: TopicMemory,
    publication: Publication,
    first: int,
    count: int,
    admission: TopicAdmission,
) -> None:
    """Store messages in their topics, which are those of the admissions that joined, if known."""
    packets = publication.packets
    if not publication.mixed:
        admission.remembered = memory.note(publication, first, count)
        return
    joined = state.admissions.joined
    # a topic joined where it differs from the one before: here each one; QoS 1 may be cut
    aligned = joined is not None and len(joined) == packets.count and not publication.qos
    if joined is None or not aligned or len(packets.data) > _MAXIMUM_HELD:
        memory.note_mixed(publication, first, count)
        return
    last = first + count
    chosen = joined[first:last]
    topics = [one.remembered for one in chosen if one.remembered is not None]
    if len(topics) < count:
        # a new topic may evict one of these: their topics are known only once all are stored
        memory.note_mixed(publication, first, count)
        for one in chosen:
            one.remembered = memory.find(one.topic)
        return
    ends = [*packets.starts[first + 1 : last + 1], len(packets.data)]  # perhaps one too many
    place = first
    for topic, offset, end in zip(topics, packets.offsets[first:last], ends, strict=False):
        topic.last = publication
        topic.place = place
        topic.count += 1
        topic.bytes += end - offset
        place += 1


def _remember(state: State, publication: Publication, first: int, count: int) -> None:
    """Store messages that are to be retained, and report all to who watches."""
    if state.watch is not None:
        state.watch(publication, first, count)
    if publication.retain:
        _retain(state, publication, first, count)


def _retain(state: State, publication: Publication, first: int, count: int) -> None:
    """Store each message in place of its topic's last one; count those that exceed a limit."""
    state.traffic.cost += count
    retained, shares, bounds = state.retained, state.shares, state.settings.retained_expiry
    for number in range(first, first + count):
        one = publication.one(number)
        if bounds:
            one = bounded(one, bounds)
        before = retained.get(one.topic)
        if not shares.refuse_retained(one) and retained.set(one):
            shares.count_retained(before, retained.get(one.topic))
            state.store.store_retained(one)
        else:
            state.counters.add("tidegate/retained/rejected")


def _offer(
    state: State,
    publication: Publication,
    first: int,
    count: int,
    admission: TopicAdmission,
    reserved: bool,
) -> tuple[int, ReasonCode | None, Selected]:
    """Evaluate filters, and give the messages to parts of the gateway, until one refuses.

    Returns how many messages nobody refused, the refusal of the next one, if any, and the sessions
    that get them beside those that get all.
    """
    route, rights = admission.route, state.admissions.reader(admission)
    budget = state.budget
    found: Selected = []
    given: dict[Subscriber, int] = {}
    run = 1
    if count > 1 and rights is None and not state.router.evaluates(route):
        run = 1 if route.inline else state.router.run(route, publication.qos, count)
    elif not route.always:
        count = 1  # each has a result of its own
    number, end = first, first + count
    while number < end:
        run = min(run, end - number)
        selected: list[Destination] = []
        # at least one message is finished in each piece, so that it advances
        if found and budget.spent:
            break
        if route.selective:
            selected = state.router.select(route, publication, number, given, rights, run)
            # no member has capacity for the whole run: try message by message
            if run > 1 and not selected:
                run = 1
                selected = state.router.select(route, publication, number, given, rights)
            if budget.unfinished:
                break
        if reserved and not _has_capacity(state, publication, first, selected, given):
            return number - first, _QUOTA_EXCEEDED, found
        for destination in route.inline:
            client: InlineClient = destination.subscriber
            message = publication.message(number)
            if budget.pieces:  # the message object may be from an earlier turn
                message.commit_within = publication.commit_within
                message.barrier = publication.barrier
            code = client.receive(message, list(destination.topic_filters))
            if code >= FAILURE and reserved:
                state.refusals.reason = client.refusal
                return number - first, code, found
        found.append((run, selected))
        number += run
    return number - first, None, found


def _has_capacity(
    state: State,
    publication: Publication,
    first: int,
    selected: list[Destination],
    given: dict[Subscriber, int],
) -> bool:
    """Return False, and count it, if a session that is to get a message cannot store it.

    Each was `given` so many messages of those from number `first` on, including this one. At QoS 0
    nothing is stored for a disconnected session, so no capacity is needed.
    """
    is_retained = False
    for destination in selected:
        session: Session = destination.subscriber
        if not min(destination.qos, publication.qos) and session.connection is None:
            given[session] -= 1
    for destination in selected:
        session = destination.subscriber
        qos = min(destination.qos, publication.qos)
        if qos and session.expiry_interval:
            is_retained = True
            more = given[session]
            if session.capacity(publication, first, more, qos) < more:
                state.refusals.for_queue(session)
                return False
    return not is_retained or _disk_has_space(state, publication)


def _deliver(
    traffic: Traffic,
    publication: Publication,
    first: int,
    count: int,
    route: Route,
    selected: Selected | None,
    now: float,
    reserved: bool,
) -> None:
    """Give the messages to the sessions: all of them, and then the selected runs."""
    always = route.sessions
    runs: list[tuple[int, Sequence[Destination]]] = [(count, always)]
    receivers = len(always)
    if selected is not None:
        runs += selected
        receivers += sum([len(destinations) for _, destinations in selected])
    if receivers > 1:
        # each form of packet is encoded once and shared by its receivers
        publication.share_forms()
        publication.receivers = max(1, len(always))
        traffic.full_at -= _RECEIVER_BYTES * len(always)
    qos, retain = publication.qos, publication.retain
    for run, destinations in runs:
        for destination in destinations:
            session: Session = destination.subscriber
            session.accept(
                publication,
                first,
                run,
                qos and min(destination.qos, qos),
                retain and destination.retain_as_published,
                tuple(destination.identifiers),
                now,
                reserved,
                destination.topic_filters[0] if destination.shared else "",
                destination.delivery,
            )
        if destinations is not always:  # these get all messages
            first += run


def deliver(
    destination: Destination,
    publication: Publication,
    first: int,
    count: int,
    now: float,
    reserved: bool,
) -> None:
    """Give messages, from number `first` on, to a destination that is a session."""
    session: Session = destination.subscriber
    session.accept(
        publication,
        first,
        count,
        min(destination.qos, publication.qos),
        publication.retain and destination.retain_as_published,
        tuple(destination.identifiers),
        now,
        reserved,
        destination.topic_filters[0] if destination.shared else "",
        destination.delivery,
    )


def share_out(router: Router, counters: Counters, spans: list[Span], now: float) -> None:
    """Give undelivered messages of an ended session to other members of its shared subscriptions.

    They SHOULD get what was sent to it at QoS 1 and not acknowledged (section 4.8.2).
    """
    for span in spans:
        publication = span.publication
        if publication.expired(now):
            counters.add("publish/messages/expired", span.count)
            continue
        for number in range(span.first, span.first + span.count):
            member = router.member(span.topic_filter, publication, number)
            if member is not None:
                deliver(member, publication, number, 1, now, reserved=False)
