"""Handles SUBSCRIBE and UNSUBSCRIBE (MQTT 5, sections 3.8.4 and 3.10.4).

Also $where language, section 12.
"""

import logging
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gateway.broker.client import Client, Piece, Pieces, session_of
from gateway.broker.instant import Instant
from gateway.broker.notices import Denial
from gateway.broker.shares import Shares, filter_levels
from gateway.broker.state import State
from gateway.broker.subscribing.expressions import TooManyExpressions
from gateway.mqtt.delivery_policy import PolicyError, read_policy
from gateway.mqtt.packets import SubAck, Subscribe, SubscriptionRequest, UnsubAck, Unsubscribe
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import QUEUE_PREFIX, SHARED_PREFIX, split_shared
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.restored import StoredSubscription
from gateway.session.session import Session
from gateway.where.language.errors import WhereError

if TYPE_CHECKING:
    from gateway.where.compile import Where

logger = logging.getLogger(__name__)

REASON_BYTES = 200
"""The longest Reason String about an expression ($where language, section 12.1)."""


READ_ONCE = 100
"""Topic filters up to which a SUBSCRIBE is parsed once. A larger one may have 700,000: it is
checked without storing any, and then parsed again."""

COMPARED = 8
"""Topic filters of a SUBSCRIBE up to which each is compared with channels' names: some 2 ms each
where a hundred channels have its topics."""

NEEDS_QOS_1 = "consumers of a durable channel subscribe with QoS 1 or 2"

NOT_SHARED = "$every: of a shared subscription each member gets its own messages already"

PAUSE = 0.02
"""Seconds after which a SUBSCRIBE checks again whether more of its replays may wait."""


class _Refused(Exception):  # noqa: N818 - an answer, not a mistake of ours
    """No filter of the SUBSCRIBE is granted."""

    def __init__(self, code: ReasonCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class _Options(NamedTuple):
    """What the user properties of a SUBSCRIBE request, each None without one."""

    where: "Where | None"
    deliver: str | None
    every: str | None


def handle_subscribe(state: State, client: Client, packet: Subscribe, instant: Instant) -> Pieces:
    """Grant or refuse each topic filter, then send the retained messages that match.

    Nothing is granted if one of the filters is malformed.
    """
    # not split: it continues where it yielded, with all that the filters before have found
    session = session_of(client)
    piece = Piece()
    limit = state.settings.maximum_filtered_subscriptions
    requests, count, topic_filters = yield from _read_requests(packet, limit, piece)
    try:
        options = yield from _read_properties(state, client, session, packet, topic_filters)
    except _Refused as refused:
        logger.warning("client %.80r: %s", session.client_id, refused.reason)
        codes = [refused.code] * count
        client.send(SubAck(packet.packet_id, codes, _explain(client, refused.reason)))
        return
    identifiers = packet.properties.subscription_identifiers
    identifier = identifiers[0] if identifiers else None
    codes, reason = [], ""
    if session.conflated is not None:
        released = (request.topic_filter for request in requests)
        instant = yield from state.conflation.release(session, released, instant)
    replayed: dict[str, tuple[Subscription, StoredSubscription]] = {}
    channels, unknown = state.channels, ""
    commit, before = 0, state.pending.changes
    for request in requests:
        if piece.ends_with(request.topic_filter):
            commit = max(commit, state.commit_since(before))
            yield None
            before = state.pending.changes
        if request.topic_filter.startswith(QUEUE_PREFIX):
            topic_filter = channels.filter_of_queue(request.topic_filter)
            if topic_filter is None:
                unknown = unknown or _note_unknown(session, request.topic_filter)
                codes.append(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
                continue
            request = replace(request, topic_filter=topic_filter)  # noqa: PLW2901 - the same
        again = request.retain_handling == 1 and _exists(state.router, session, request)
        stored = _stored(client, request, identifier, options)
        state.shares.refusal = ""  # another client's SUBSCRIBE may have set it between two pieces
        code, granted = _subscribe(state, session, stored, options.where)
        codes.append(code)
        reason = state.shares.refusal or reason
        if granted is None:
            continue
        if count <= COMPARED and not reason and stored.topic_filter.startswith(SHARED_PREFIX):
            reason = channels.near_miss(session, stored.topic_filter)
        if _wants_retained(request, again=again):
            replayed[request.topic_filter] = granted
        else:
            state.replays.follow(session, *granted)
    # [MQTT-3.8.4-1], [MQTT-3.8.4-6]
    commit = max(commit, state.commit_since(before))
    if ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR in codes:
        reason = unknown or (NEEDS_QOS_1 if options.every is None else NOT_SHARED)
    properties = _explain(client, reason) if reason else NO_PROPERTIES
    client.send(SubAck(packet.packet_id, codes, properties), commit)
    yield from _replay(state, session, replayed, piece, instant)


def _note_unknown(session: Session, topic_filter: str) -> str:
    """Log and return why `$queue/<name>` is refused."""
    reason = f"{topic_filter[:80]}: there is no channel of this name with such topics"
    logger.warning("client %.80r: %s", session.client_id, reason)
    return reason


def _replay(
    state: State,
    session: Session,
    replayed: dict[str, tuple[Subscription, StoredSubscription]],
    piece: Piece,
    instant: Instant,
) -> Pieces:
    """Replay the retained messages of new subscriptions, one subscription at a time."""
    for topic_filter, (subscription, stored) in replayed.items():
        if piece.ends_with(topic_filter):
            instant = yield None
        while state.replays.crowded(session):
            instant = yield PAUSE
        state.replays.begin(session, subscription, stored, instant)


def _read_requests(
    packet: Subscribe, limit: int, piece: Piece
) -> Generator[None, Instant, tuple[Iterable[SubscriptionRequest], int, set[str]]]:
    """Return the requests, their number, and up to `limit` + 1 different topic filters.

    Raises MalformedPacket or ProtocolError at the first invalid one.
    """
    count = 0
    topic_filters: set[str] = set()
    few: list[SubscriptionRequest] = []
    for request in packet.requests:
        count += 1
        if count <= READ_ONCE:
            few.append(request)
        if len(topic_filters) <= limit:
            topic_filters.add(request.topic_filter)
        if piece.ends_with(request.topic_filter):
            yield None
    return few if count <= READ_ONCE else packet.requests, count, topic_filters


def _read_properties(
    state: State,
    client: Client,
    session: Session,
    packet: Subscribe,
    topic_filters: set[str],
) -> Generator[float | None, Instant, _Options]:
    """Return the compiled `$where`, the `$deliver` and the `$every`; raise _Refused."""
    given = packet.properties.user_properties
    properties = dict(reversed(given))  # the first of a name counts
    text, deliver = properties.get("$where"), properties.get("$deliver")
    every = properties.get("$every")
    if every is not None and [name for name, _ in given].count("$every") > 1:
        reason = "$every: it is given more than once"
        raise _Refused(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, reason)
    where = None
    try:
        if text is not None:
            where = yield from state.expressions.get_in_pieces(
                text, session, identity=client.info.where_identity
            )
            _check_capacity(state, session, where, topic_filters)
        read_policy(deliver, every)
    except WhereError as error:
        syntax = error.kind == "syntax"
        code = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR if syntax else ReasonCode.QUOTA_EXCEEDED
        raise _Refused(code, f"$where:{error.position}: {error.message}") from error
    except TooManyExpressions as error:
        raise _Refused(ReasonCode.QUOTA_EXCEEDED, f"$where:0: {error}") from error
    except PolicyError as error:
        code = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        raise _Refused(code, str(error)) from error
    return _Options(where, deliver, every)


def _check_capacity(
    state: State, session: Session, where: "Where", topic_filters: set[str]
) -> None:
    """Raise _Refused if the limits exclude these filtered subscriptions."""
    router, limit = state.router, state.settings.maximum_filtered_subscriptions
    filtered = router.filtered(session) + len(topic_filters)
    if filtered > limit:
        filtered -= sum(_is_filtered(router, session, each) for each in topic_filters)
    if filtered > limit:
        raise _Refused(
            ReasonCode.QUOTA_EXCEEDED,
            f"$where:0: a client has at most {limit} filtered subscriptions",
        )
    if router.full and not router.uses(where):
        raise _Refused(
            ReasonCode.QUOTA_EXCEEDED, "$where:0: subscriptions hold all the memory they may"
        )
    if where.never_true:
        logger.warning("client %.80r: filter can never be true: %s", session.client_id, where.text)


def _is_filtered(router: Router, session: Session, topic_filter: str) -> bool:
    number = router.find(session, topic_filter)
    return number is not None and router.subscription(number).where is not None


def _explain(client: Client, reason: str) -> Properties:
    """Return a Reason String, cut to REASON_BYTES."""
    return client.explain(reason.encode()[:REASON_BYTES].decode(errors="ignore"))


def _subscribe(
    state: State, session: Session, stored: StoredSubscription, where: "Where | None"
) -> tuple[ReasonCode, tuple[Subscription, StoredSubscription] | None]:
    """Add or replace one subscription [MQTT-3.8.4-3]; return its code, and it if granted."""
    if state.topic_limits.fault(stored.topic_filter):
        state.counters.add("tidegate/refused/topic_filters")
        return ReasonCode.TOPIC_FILTER_INVALID, None
    if not _may_subscribe(session, split_shared(stored.topic_filter)[1]):
        state.counters.add("tidegate/access/subscriptions")
        state.notices.give(Denial(session.client_id, session.username, "read", stored.topic_filter))
        return ReasonCode.NOT_AUTHORIZED, None
    if (
        _is_full(state, session, stored.topic_filter)
        and state.router.find(session, stored.topic_filter) is None
    ):
        _note_share(state.shares, session, stored.topic_filter)
        state.counters.add("tidegate/refused/subscriptions")
        return ReasonCode.QUOTA_EXCEEDED, None
    if state.channels.full(session, stored.topic_filter):
        state.counters.add("tidegate/refused/consumers")
        return ReasonCode.QUOTA_EXCEEDED, None
    if stored.every is not None and stored.topic_filter.startswith(SHARED_PREFIX):
        return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, None
    if not stored.qos and state.channels.requires_acknowledgements(stored.topic_filter):
        state.counters.add("tidegate/refused/unacknowledging_consumers")
        line = "client %.80r: %.200r refused at QoS 0: %s"
        logger.warning(line, session.client_id, stored.topic_filter, NEEDS_QOS_1)
        return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, None
    session.journal.subscribe(stored.topic_filter, stored)
    return ReasonCode(stored.qos), (route(state, session, stored, where), stored)


def _may_subscribe(session: Session, topic_filter: str) -> bool:
    """Return whether its owner may read any of it at home, and by this connection, too."""
    access, granted = session.access, session.granted
    if not access.may_subscribe(topic_filter):
        return False
    return granted is access or granted.may_subscribe(topic_filter)


def _is_full(state: State, session: Session, topic_filter: str) -> bool:
    router, settings = state.router, state.settings
    if router.full or router.count(session) >= settings.maximum_subscriptions:
        return True
    if not state.shares.may_subscribe(session, topic_filter):
        return True
    shared = topic_filter.startswith(SHARED_PREFIX)
    return shared and router.sharing(session) >= settings.maximum_shared_subscriptions


def _note_share(shares: Shares, session: Session, topic_filter: str) -> None:
    """Note that a session has used up its share, if it has."""
    shares.refuse(
        shares.subscriptions, session.client_id, session.holder, filter_levels(topic_filter)
    )


def route(
    state: State, session: Session, stored: StoredSubscription, where: "Where | None"
) -> Subscription:
    """Route matching messages to the session; return the subscription that does so.

    `where` is the subscription's filter; without one the configured filter applies.
    """
    if where is None:
        where = state.subscription_filters.find(session.client_id, stored.topic_filter)
    if stored.every is not None and session.conflated is None:
        state.conflation.conflate(session)
        state.router.forget_destinations(session)
    subscription = Subscription(
        session,
        stored.topic_filter,
        stored.qos,
        no_local=stored.no_local,
        retain_as_published=stored.retain_as_published,
        identifier=stored.identifier,
        where=where,
        delivery=read_policy(stored.deliver, stored.every),
    )
    state.router.add(subscription)
    return subscription


def _stored(
    client: Client,
    request: SubscriptionRequest,
    identifier: int | None,
    options: _Options,
) -> StoredSubscription:
    """Return what the session's journal stores of a subscription."""
    bridge = client.connection.bridge  # before MQTT 5 a bridge cannot request these two
    return StoredSubscription(
        request.topic_filter,
        request.qos,
        request.no_local or (bridge and not request.topic_filter.startswith(SHARED_PREFIX)),
        request.retain_as_published or bridge,
        identifier,
        None if options.where is None else options.where.text,
        client.info.where_identity,
        deliver=options.deliver,
        every=options.every,
    )


def _exists(router: Router, session: Session, request: SubscriptionRequest) -> bool:
    return router.find(session, request.topic_filter) is not None


def _wants_retained(request: SubscriptionRequest, *, again: bool) -> bool:
    """Retain Handling [MQTT-3.3.1-9] to -11; a shared subscription gets none (section 4.8.2)."""
    if request.topic_filter.startswith(SHARED_PREFIX):
        return False
    return request.retain_handling == 0 or (request.retain_handling == 1 and not again)


def handle_unsubscribe(
    state: State, client: Client, packet: Unsubscribe, instant: Instant
) -> Pieces:
    """Remove each topic filter, compared character by character [MQTT-3.10.4-1].

    If one of them is malformed, none is removed.
    """
    session = session_of(client)
    piece = Piece()
    for topic_filter in packet.topic_filters:
        if piece.ends_with(topic_filter):
            instant = yield None
    if session.conflated is not None:
        yield from state.conflation.release(session, packet.topic_filters, instant)
    codes = []
    commit, before = 0, state.pending.changes
    for topic_filter in packet.topic_filters:
        if piece.ends_with(topic_filter):
            commit = max(commit, state.commit_since(before))
            yield None
            before = state.pending.changes
        if topic_filter.startswith(QUEUE_PREFIX):
            topic_filter = state.channels.filter_of_queue(topic_filter) or topic_filter  # noqa: PLW2901 - the same
        number = state.router.find(session, topic_filter)
        if number is None:
            codes.append(ReasonCode.NO_SUBSCRIPTION_EXISTED)
        else:
            state.router.discard(number)
            state.replays.discard(session, topic_filter)
            session.journal.subscribe(topic_filter, None)
            codes.append(ReasonCode.SUCCESS)
    # [MQTT-3.10.4-4], [MQTT-3.10.4-6]
    commit = max(commit, state.commit_since(before))
    client.send(UnsubAck(packet.packet_id, codes), commit)
