"""Message exchange with a client: its PUBLISH packets and its acknowledgements.

MQTT 5, sections 3.3.4, 4.3 and 4.4.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast

from gateway.access.topics import is_state_of
from gateway.broker.client import Client, Pieces
from gateway.broker.instant import Instant
from gateway.broker.notices import Denial
from gateway.broker.publishing.forward import forward
from gateway.broker.publishing.refusals import Outcome
from gateway.broker.publishing.topic_admissions import TopicAdmission, read_topic
from gateway.broker.state import State
from gateway.mqtt.acknowledgement_batch import template
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.output import Barrier
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, PubComp, PubRec, PubRel, Will
from gateway.mqtt.publication import Publication
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.budget import PIECES
from gateway.session.durability_class import DurabilityClass
from gateway.session.journal import NO_JOURNAL
from gateway.session.session import Session

MAXIMUM_BATCH = 4_096
"""Messages of one publication at QoS 0."""

MAXIMUM_NUMBERED = 256
"""Messages of one publication at QoS 1 and 2: a quarter of a window, and the size of a queue's
item."""

MAXIMUM_FILTERED = 64
"""Messages of one publication if filters are evaluated for each, at some microseconds."""

MAXIMUM_EVALUATIONS = 1_280
"""Evaluations of group members for one publication: a message evaluates all of them if none has
capacity or the right to read. Likewise checks of rights to topics that would join it."""

MAXIMUM_SKIPPED = 15
"""The most publications of a client for which no join is tried after failed attempts."""

PROPERTY_BYTES = 64
"""Bytes of user properties that cost as much as one costly message: some twelve of the shortest."""

COMMAND_COST = 8
"""What one command, or question to the gateway itself, counts for in `Traffic.cost`."""

WHOLE_TURN = 1_000
"""A cost above MAXIMUM_COST, which ends the client's turn."""

RETRY = (ReasonCode.QUOTA_EXCEEDED, ReasonCode.MESSAGE_RATE_TOO_HIGH)
"""Refusals that may be over when the message is sent again."""

SHORT = 128
"""Bytes of a packet whose Remaining Length takes one byte, for which identifiers are inserted
fast."""

REASON_BYTES = 112
"""Bytes of a Reason String that keep the acknowledgement below that size."""

BY_THEMSELVES = 4
"""Acknowledgements, handled one by one, that cost as much as one costly message."""

UTF_8 = 1
"""The Payload Format Indicator of text (MQTT 5, section 3.3.2.3.2)."""

# Compiled, these are C names.
_MAXIMUM_BATCH = MAXIMUM_BATCH
_MAXIMUM_NUMBERED = MAXIMUM_NUMBERED
_MAXIMUM_FILTERED = MAXIMUM_FILTERED
_MAXIMUM_SKIPPED = MAXIMUM_SKIPPED
_PROPERTY_BYTES = PROPERTY_BYTES
_FAILURE = int(FAILURE)

_SUCCESS = ReasonCode.SUCCESS  # CPython 3.11 takes 50 ns to find a member of an enumeration
# the same in every protocol version
_PUBACK = template(PubAck, _SUCCESS, MQTT_3_1_1)
_PUBREL = template(PubRel, _SUCCESS, MQTT_3_1_1)


def handle_publish(state: State, client: Client, session: Session, instant: Instant) -> None:
    """Forward the next PUBLISH packets that can be handled together, and answer them."""
    connection = client.connection
    publication = connection.publication()
    qos = publication.qos
    if qos == 2 and publication.identifiers()[0] in session.incoming:
        _answer_repeated(state, client, session, publication)
        return
    admissions = state.admissions
    admission = admissions.find(publication.topic_name)
    if connection.next_is_publish:
        if client.skipping and not connection.next_has_same_topic:
            client.skipping -= 1
        else:
            _try_to_extend(state, client, session, publication, admission)
    count = publication.packets.count
    traffic = state.traffic
    traffic.messages_received += count
    traffic.bytes_received += publication.packets.payloads
    admissions.hits += count - 1
    if qos:
        connection.publishes += count
        if connection.version == MQTT_5:
            connection.check_receive_maximum()
    if publication.properties.data:
        traffic.cost += len(publication.properties.data) // _PROPERTY_BYTES
    if admission.guarded:
        traffic.cost += COMMAND_COST
    publication.topic = admission.topic
    publication.client_id = session.client_id
    publication.username = session.username
    publication.received_at = instant.wall
    publication.arrived = instant.monotonic
    first, budget = 0, state.budget
    while first < count and not client.closing:
        budget.pieces = 0
        first += _publish(state, client, session, publication, first, admission, instant)
        if budget.unfinished:
            budget.unfinished = False
            client.pieces = _rest(state, client, session, publication, first)
            next(client.pieces)
            traffic.cost += WHOLE_TURN
            return
    budget.pieces = PIECES
    # decoded forms are needed only while the message is forwarded
    publication.forms = publication.messages = None


def _rest(
    state: State, client: Client, session: Session, publication: Publication, first: int
) -> Pieces:
    """Forward messages from number `first` on, each in as many turns as its filters need.

    Results of finished filters are stored with the message. Routes may change between two turns, so
    each message is routed separately.
    """
    budget = state.budget
    for number in range(first, publication.packets.count):
        one, pieces, done = publication.one(number), 0, 0
        if publication.messages is not None and one is not publication:
            one.messages = [publication.messages[number]]
        while not done:  # ends with the client: nobody continues a closed client's pieces
            instant = yield None
            pieces += 1
            admission = state.admissions.find_again(one.topic_name)
            budget.pieces = pieces
            done = _publish(state, client, session, one, 0, admission, instant)
            budget.pieces, budget.unfinished = PIECES, False
        one.forms = one.messages = None
    publication.forms = publication.messages = None


def _try_to_extend(
    state: State,
    client: Client,
    session: Session,
    publication: Publication,
    admission: TopicAdmission,
) -> None:
    """Add following messages that have the same route.

    If a client's consecutive topics rarely share a route, a join is tried less and less often.
    """
    admissions, connection = state.admissions, client.connection
    misses = admissions.misses
    lookups = admissions.hits + misses
    joining = connection.next_has_same_topic
    admissions.maximum_evaluations = state.router.evaluations + MAXIMUM_EVALUATIONS
    if not joining:
        name = connection.next_topic_name()
        joining = name != b"" and admissions.same_route(admission, session.granted, name)
        client.skips = 0 if joining else min(2 * client.skips + 1, _MAXIMUM_SKIPPED)
        client.skipping = client.skips
    if joining:
        _extend(state, client, session, publication, admission)
    state.traffic.cost += admissions.misses - misses
    admissions.hits += lookups - admissions.hits - admissions.misses  # each message counts once


def _extend(
    state: State,
    client: Client,
    session: Session,
    publication: Publication,
    admission: TopicAdmission,
) -> None:
    """Add following messages with the same route, as far as limits allow.

    Each receiver gets a copy of the bytes; together they must not exceed the output of a turn.
    """
    if admission.guarded or (state.settings.check_payload_format and publication.mqtt5):
        return  # each is a command, or checked by itself
    connection, traffic, qos = client.connection, state.traffic, publication.qos
    route = admission.route
    most = _MAXIMUM_NUMBERED if qos else _MAXIMUM_BATCH
    if publication.retain or not connection.next_has_same_topic:
        most = _MAXIMUM_NUMBERED  # all of them may have new topics
    if route.selective or route.inline:
        most = _MAXIMUM_FILTERED
        if route.groups:
            members = sum([len(group.members) for group in route.groups])
            most = max(1, min(most, MAXIMUM_EVALUATIONS // max(1, members)))
    if qos:
        most = min(most, connection.publish_capacity)
        if qos == 2:
            most = min(most, session.incoming.capacity)
    if most > 1:
        bytes_free = traffic.full_at - traffic.bytes_sent
        same_route = None
        if not state.replays.count:  # replays need them topic by topic
            admissions = state.admissions  # an object: a C method cannot be an argument
            same_route = partial(admissions.same_route, admission, session.granted)
            if state.topic_memory is not None:
                admissions.joined = [admission]
        connection.extend(publication, most, bytes_free // max(1, len(route.sessions)), same_route)
        if qos == 2 and publication.packets.count > 1:
            fresh = session.incoming.fresh(publication.identifiers())
            connection.shorten(publication, fresh)  # repeated messages are answered separately


def _publish(
    state: State,
    client: Client,
    session: Session,
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
) -> int:
    """Forward and answer messages from number `first` on that have one result; return how many.

    The answer is sent after the commit of their rows (ARCHITECTURE.md, "The turn"), or once no row
    is needed, unless their durability class promises nothing.
    """
    # not split, for the same reason as `forward`
    qos = publication.qos
    refusal, access = admission.refusal, session.granted
    # without another call for each message of a topic's only publisher
    unknown = refusal is None and admission.writer is not access
    if unknown and not state.admissions.may_write(admission, access):
        refusal = ReasonCode.NOT_AUTHORIZED
    has_format = publication.properties.data and state.settings.check_payload_format
    if refusal is not None or has_format:
        refusal = _refusal(state, publication, admission, refusal)
    if refusal is not None:
        count = publication.packets.count - first
        if qos:
            _answer(state, client, session, publication, first, count, refusal, 0, None)
        return count
    if qos == 2 and session.incoming.full:
        state.counters.add("tidegate/refused/incoming")
        state.refusals.reason = "too many of its QoS 2 messages are not complete"
        code = ReasonCode.QUOTA_EXCEEDED
        _answer(state, client, session, publication, first, 1, code, 0, None)
        return 1
    durability: DurabilityClass = session.durability_class
    publication.commit_within = (
        durability.commit_within
        if admission.durability is None
        else admission.commit_within(durability)
    )
    if not qos:
        count, _, refusal = forward(state, publication, first, admission, instant, reserved=False)
        # a refused message of QoS 0 gets no answer
        return count + (refusal is not None)
    connection = client.connection
    # PUBREC precedes the client's copy of its own message, or is queued if output is congested
    aside = connection.set_output_aside() if qos == 2 and not connection.congested else None
    outcome, commit, barrier = _forward(
        state, client, session, publication, first, admission, instant
    )
    following = None if aside is None else connection.resume_output(aside)
    count, code, refusal = outcome
    if count:
        _answer(state, client, session, publication, first, count, code, commit, barrier)
    if refusal is not None:
        _answer(state, client, session, publication, first + count, 1, refusal, 0, None)
        count += 1
    if following is not None and following.size:
        connection.output.append_all(following)
    return count


def _forward(
    state: State,
    client: Client,
    session: Session,
    publication: Publication,
    first: int,
    admission: TopicAdmission,
    instant: Instant,
) -> tuple[Outcome, int, Barrier | None]:
    """Forward messages of QoS 1 or 2; return the result, and what the answer waits for."""
    store, pending = state.store, state.pending
    before, deferred = pending.changes, pending.deferred
    # The packet identifier of a stored QoS 2 message is in the pending batch. Were the rows of the
    # message skipped, a crash after that batch would lose it: its repetition is only answered.
    barrier = None
    if store.durable and (publication.qos == 1 or session.journal is NO_JOURNAL):
        connection = client.connection
        barrier = connection.barrier  # shared by all answers that are written together
        if barrier is None:
            connection.barrier = barrier = Barrier()
        publication.barrier = barrier
    outcome = forward(state, publication, first, admission, instant, reserved=True)
    publication.barrier = None
    commit = 0
    if publication.commit_within is not None:
        if pending.deferred != deferred:
            commit = store.deferred_commit
        if pending.changes != before:  # these rows are needed in any case
            commit, barrier = max(commit, state.durability.commit_number()), None
    return outcome, commit, barrier if commit else None


def _refusal(
    state: State,
    publication: Publication,
    admission: TopicAdmission,
    code: ReasonCode | None,
) -> ReasonCode | None:
    """Return why messages of this topic are refused, None if they are not; count it.

    `code` is the refusal of the topic for this client, if any.

    Raises ProtocolError for QoS 0, where only a DISCONNECT can tell the publisher.
    """
    if code is None:
        if is_valid_payload_format(publication):
            return None
        state.counters.add("tidegate/refused/payload_formats")
        return _refused(publication, ReasonCode.PAYLOAD_FORMAT_INVALID, "payload is not UTF-8")
    if code is ReasonCode.NOT_AUTHORIZED and is_state_of(
        publication.topic, publication.client_id or ""
    ):
        return None
    if admission.fault:
        state.counters.add("tidegate/refused/topic_names", publication.packets.count)
        return _refused(publication, code, f"topic name {admission.fault}")
    state.counters.add("tidegate/clients/not_authorized", publication.packets.count)
    who = publication.client_id or ""
    state.notices.give(Denial(who, publication.username, "write", publication.topic))
    return code


def _refused(publication: Publication, code: ReasonCode, reason: str) -> ReasonCode:
    """Return the code for PUBACK or PUBREC; a QoS 0 message is answered by DISCONNECT."""
    if publication.qos == 0:
        raise ProtocolError(reason, code)
    return code


def is_valid_payload_format(message: Publication | Will) -> bool:
    """Return False for a payload that claims to be UTF-8 and is not (section 3.3.2.3.2)."""
    if isinstance(message, Will):
        fields, payload = message.properties, message.payload
    else:
        fields, payload = message.properties.fields, message.packets.one(0)
    if fields.payload_format_indicator != UTF_8:
        return True
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _answer(
    state: State,
    client: Client,
    session: Session,
    publication: Publication,
    first: int,
    count: int,
    code: ReasonCode,
    commit: int,
    barrier: Barrier | None,
) -> None:
    """Answer this many messages, from number `first` on, once `commit` or `barrier` allows it."""
    connection = client.connection
    if code is not _SUCCESS and code >= _FAILURE and connection.version != MQTT_5:
        if code in RETRY:
            # MQTT 3.1.1 has no negative PUBACK: closing makes the client send it again later
            client.end_reason = f"{state.refusals.reason}, and MQTT 3.1.1 has no answer for it"
            client.close()
            return
        # a permanent refusal is acknowledged, or the client would send it for ever
        code = _SUCCESS
    identifiers: Sequence[int] = (
        publication.packets.identifiers()
        if publication.packet_id is None
        else (publication.packet_id,)
    )
    if count < len(identifiers):
        identifiers = identifiers[first : first + count]
    if publication.qos == 1:  # [MQTT-4.3.2-4]
        if code is _SUCCESS:
            connection.answer(_PUBACK, identifiers, commit, barrier, last=True)
            return
        packet = template(PubAck, code, connection.version)
        if code >= _FAILURE:
            packet = _explained(state, client, PubAck(0, code)) or packet
        connection.answer(packet, identifiers, commit, barrier, last=True)
        return
    packet = template(PubRec, code, connection.version)
    if code >= _FAILURE:  # ends the exchange (section 4.3.3)
        packet = _explained(state, client, PubRec(0, code)) or packet
        connection.answer(packet, identifiers, commit, barrier, last=True)
        return
    _store_incoming(session, identifiers)
    # PUBREC promises to recognize a repetition: the identifier is stored first
    if session.journal is not NO_JOURNAL:
        session.journal.note_incoming(identifiers, released=False)
        commit, barrier = max(commit, state.durability.commit_number()), None
    connection.answer(packet, identifiers, commit, barrier)  # [MQTT-4.3.3-8]


def _explained(state: State, client: Client, answer: PubAck | PubRec) -> bytes:
    """Return a refusal with its reason if the client has used up its share, else b""."""
    connection, reason = client.connection, state.refusals.reason
    if not reason or reason is not state.shares.refusal:
        return b""
    if connection.maximum_packet_size < SHORT:
        return b""  # [MQTT-3.4.2-2], [MQTT-3.5.2-2]
    answer.properties = client.explain(reason.encode()[:REASON_BYTES].decode(errors="ignore"))
    return encode(answer, connection.version)


def _store_incoming(session: Session, identifiers: Sequence[int]) -> None:
    if len(identifiers) == 1 or not session.incoming.add_all(identifiers):
        for packet_id in identifiers:
            session.incoming.add(packet_id)


def _answer_repeated(
    state: State, client: Client, session: Session, publication: Publication
) -> None:
    """Answer a QoS 2 message that was accepted before, without delivering it [MQTT-4.3.3-10].

    It may have come on an earlier connection: its rows may not be on disk yet, and this connection
    has not counted it.
    """
    packet_id = publication.identifiers()[0]
    # raises for an invalid name: the packet is checked although it is not delivered
    read_topic(publication.topic_name)
    state.traffic.messages_received += 1
    state.traffic.bytes_received += publication.packets.payloads
    if session.incoming.add(packet_id):
        client.connection.publishes += 1
        client.connection.check_receive_maximum()
    session.journal.note_incoming((packet_id,), released=False)
    client.send(PubRec(packet_id), state.durability.commit_number())


def handle_pubrel(state: State, client: Client, session: Session, instant: Instant) -> None:  # noqa: ARG001 - a shape
    """Forget packet identifiers of QoS 2 messages [MQTT-4.3.3-11], [MQTT-4.3.3-12].

    PUBCOMP is sent when that is on disk: from then on the client may use the identifier again.
    """
    connection = client.connection
    identifiers = connection.acknowledged()
    if not identifiers:
        identifiers = (cast("PubRel", connection.packet()).packet_id,)
    packet_of = template(PubComp, ReasonCode.SUCCESS, connection.version)
    in_memory = session.journal is NO_JOURNAL and session.has_incoming
    if in_memory and session.incoming.remove_all(identifiers):
        connection.answer(packet_of, identifiers, last=True)
        return
    state.traffic.cost += len(identifiers) // BY_THEMSELVES
    for packet_id in identifiers:
        _complete(state, client, session, packet_id, packet_of)


def _complete(
    state: State, client: Client, session: Session, packet_id: int, packet: bytes
) -> None:
    counted = session.incoming.remove(packet_id)
    before = state.pending.changes
    session.journal.note_incoming((packet_id,), released=True)
    commit = state.commit_since(before)
    if counted is None:  # forgotten, but perhaps not yet on disk
        client.send(PubComp(packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND), commit)
    else:  # messages of an earlier connection were not counted on this one
        client.connection.answer(packet, (packet_id,), commit, last=counted)


# What a client answers to what it was sent --------------------------------------------------------


def handle_puback(_state: State, client: Client, session: Session, instant: Instant) -> None:
    """Finish QoS 1 deliveries [MQTT-4.3.2-3]; whatever their codes, they are not resent.

    A channel's message that is acknowledged with an error goes to another consumer.
    """
    identifiers = client.connection.acknowledged()
    if not identifiers:
        packet = _one(client)
        identifiers = (packet.packet_id,)
        if packet.reason_code >= FAILURE:
            _requeue(session, packet.packet_id)
    index, end = 0, len(identifiers)
    while index < end:
        count = session.finish(identifiers, index, 1)
        if count < 0:
            raise ProtocolError(f"PUBACK for the QoS 2 message {identifiers[index]}")
        index += count or 1
    session.pump(instant.monotonic)


def _requeue(session: Session, packet_id: int) -> None:
    """Return a refused message to its channel, if it is from one."""
    span = session.inflight.find(packet_id)
    if span is not None and span.channel is not None:
        session.inflight.remove((packet_id,), 0)
        span.channel.return_message(span, span.first + packet_id - span.packet_id)


def handle_pubrec(state: State, client: Client, session: Session, instant: Instant) -> None:
    """Answer the first acknowledgements of QoS 2 deliveries [MQTT-4.3.3-4], [MQTT-4.3.3-5]."""
    connection = client.connection
    identifiers = connection.acknowledged()
    if not identifiers:
        packet = _one(client)
        if packet.reason_code >= FAILURE:
            _end_refused(session, packet.packet_id, instant)
            return
        identifiers = (packet.packet_id,)
    state.traffic.cost += len(identifiers) // BY_THEMSELVES
    begin, commit = 0, 0
    for index, packet_id in enumerate(identifiers):
        span = session.inflight.find(packet_id)
        if span is not None and span.qos == 1:
            raise ProtocolError(f"PUBREC for the QoS 1 message {packet_id}")
        before, commit = commit, 0 if span is None else session.release(packet_id, span)
        # adjacent PUBRELs that wait for one commit are a single answer
        if span is None or before != commit:
            _send_pubrel(client, identifiers[begin:index], before)
            begin = index
        if span is None:
            client.send(PubRel(packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND))
            begin = index + 1
    _send_pubrel(client, identifiers[begin:], commit)


def _send_pubrel(client: Client, identifiers: Sequence[int], commit: int) -> None:
    """Send a PUBREL for each packet identifier once `commit` is on disk."""
    if identifiers:
        client.connection.answer(_PUBREL, identifiers, commit)


def _end_refused(session: Session, packet_id: int, instant: Instant) -> None:
    """End the delivery of a QoS 2 message that the client refuses; nothing is answered."""
    span = session.inflight.find(packet_id)
    if span is None:
        return
    if span.qos == 1:
        raise ProtocolError(f"PUBREC for the QoS 1 message {packet_id}")
    session.finish((packet_id,), 0)
    session.pump(instant.monotonic)


def handle_pubcomp(_state: State, client: Client, session: Session, instant: Instant) -> None:
    """Finish QoS 2 deliveries."""
    identifiers = client.connection.acknowledged()
    if not identifiers:
        identifiers = (_one(client).packet_id,)
    inflight, count = session.inflight, 0
    for packet_id in identifiers:
        if packet_id not in inflight.released and inflight.find(packet_id) is not None:
            break
        count += 1
    index, finished = 0, identifiers[:count]
    while index < count:
        index += session.finish(finished, index) or 1
    if count < len(identifiers):
        raise ProtocolError(f"PUBCOMP for {identifiers[count]} before its PUBREC")
    session.pump(instant.monotonic)


def _one(client: Client) -> PubAck | PubRec | PubComp:
    """Return an acknowledgement with more fields than its packet identifier."""
    return cast("PubAck | PubRec | PubComp", client.connection.packet())
