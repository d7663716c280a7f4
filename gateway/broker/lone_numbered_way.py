"""How a client's QoS 1 messages that come alone reach the one session that gets them."""

from typing import Final, cast

from gateway.broker.store import Store
from gateway.mqtt.acknowledgement_run import alike
from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.fields import write_byte, write_variable_byte_integer
from gateway.mqtt.message_size import message_bytes
from gateway.mqtt.output import Pledge
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_form import behind_topic
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import bytes_alone
from gateway.routing.route_cache import RouteCache
from gateway.session.inflight_message import InflightAlone, Origin
from gateway.session.session import Session

_FIRST_BYTE: Final = publish_first_byte(1, retain=False, dup=False)

_PLAIN: Final = write_byte(publish_first_byte(0, retain=False, dup=False))

_ANSWER: Final = alike(PubAck, ReasonCode.SUCCESS, MQTT_3_1_1)[:2]
"""What stands before the packet identifier of a PUBACK, the same in every protocol version."""


class LoneNumberedWay:
    """The way of QoS 1 messages of one topic from a connection to one session, and of its PUBACKs.

    It is made and lost as a `LoneWay` is, and as that it asks for what can have changed, and for
    nothing else. Where nothing is kept of them on disk, message and PUBACK wait for nothing.
    Otherwise they are lent to the receiver, whose PUBACK lets the publisher's go.
    """

    __slots__ = (
        "_begins",
        "_changes",
        "_origin",
        "_own",
        "_plain",
        "_publisher",
        "_receiver",
        "_routes",
        "_session",
        "_size",
        "_start",
        "_store",
        "_topic",
    )

    def __init__(
        self,
        routes: RouteCache,
        publisher: Connection,
        session: Session,
        topic: bytes,
        origin: Origin,
        *,
        numbered: bool,
        store: Store | None = None,
    ) -> None:
        """Lead to a session that was just sent such a packet, whose body begins with `topic`.

        It is sent there with QoS 1 if `numbered`, otherwise with QoS 0, and kept in the `store`
        if there is one.
        """
        self._routes = routes
        self._changes = routes.changes
        self._publisher = publisher
        self._session = session
        self._receiver = cast("Connection", session.connection)
        self._topic = topic
        self._origin = origin
        self._own = message_bytes(origin.topic, 0)
        self._size = 0  # bytes of the last packet
        self._begins = b""  # what stood before its packet identifier
        self._start = 0  # of its payload
        self._store = store
        # what stands before its properties at QoS 0, where it is sent with that
        self._plain: bytes | None = None if numbered else b""

    def pass_on(self, data: bytes, at_once: bool, now: float, wall: int) -> bool:
        """Send a packet to the receiver, and its PUBACK, if it is one that goes this way.

        Both leave `at_once` unless something is to leave before them, or the PUBACK has to wait for
        the receiver's. `now` is monotonic seconds, `wall` milliseconds since 1970. Returns False,
        with nothing done, if it has to be looked at by others.
        """
        size = len(data)
        session, publisher, receiver = self._session, self._publisher, self._receiver
        output, answers = receiver.output, publisher.output
        if (
            (size != self._size and not self._learn(data))
            or not data.startswith(self._begins)
            or self._routes.changes != self._changes
            or session.connection is not receiver
            or session.queue
            or (self._store is not None and self._store.full)
            or ((not at_once or output.size or answers.size) and not self._may_wait())
        ):
            return False
        place, start = len(self._begins), self._start
        high, low = data[place], data[place + 1]
        if not (high or low) or (start > place + 2 and not self._may_come(data)):
            return False  # [MQTT-2.2.1-3]
        packet: bytes | bytearray
        message = None
        if self._plain is not None:
            packet = self._plain + data[place + 2 :]
        else:
            own = self._own + size - start
            message = InflightAlone(self._origin, data, start, own, now, wall)
            packet_id = session.inflight.add_alone(message)
            if not packet_id:
                return False
            packet = bytearray(data)
            packet[place] = packet_id >> 8
            packet[place + 1] = packet_id & 0xFF
        traffic = session.traffic
        payload_bytes = size - start
        session.send_run(packet, 1, payload_bytes, at_once)
        answer = _ANSWER + data[place : place + 2]
        if message is not None and self._store is not None:
            self._lend(message, answer)
        elif at_once and answers.leave_at_once(answer):
            # counted against our Receive Maximum it would be counted back at once
            publisher.packets_sent += 1
            traffic.network_sent += len(answer)
        else:
            publisher.publishes += 1
            publisher.acknowledge_like(answer, high << 8 | low)
        self._routes.hits += 1
        publisher.packets_received += 1
        traffic.network_received += size
        traffic.messages_received += 1
        traffic.bytes_received += payload_bytes
        return True

    def _lend(self, message: InflightAlone, answer: bytes) -> None:
        """Have the PUBACK wait until the receiver has acknowledged, or the message is on disk."""
        publisher, pledge = self._publisher, Pledge(0)
        pledge.add()
        message.pledge, message.publisher = pledge, publisher
        mark = self._session.journal.lend_alone(message)
        publisher.promise_like(answer, mark, pledge)

    def _may_wait(self) -> bool:
        """Return whether both may be queued until the turn ends, which has room for more."""
        traffic = self._session.traffic
        return (
            self._receiver.output.size < MAXIMUM_UNSENT
            and traffic.bytes_sent <= traffic.full_at
            and not self._publisher.unread
        )

    def _may_come(self, data: bytes) -> bool:
        """Return whether an MQTT 5 packet has no properties, and our Receive Maximum allows it."""
        return not data[self._start - 1] and self._publisher.room_for_publishes > 0

    def _learn(self, data: bytes) -> bool:
        """Return whether the packet goes this way; then so do those that begin like it."""
        publisher, size = self._publisher, len(data)
        rest = bytes_alone(publisher, data, self._topic, _FIRST_BYTE)
        behind = behind_topic(1, publisher.version == MQTT_5)
        if rest < behind or size > self._receiver.maximum_packet_size:
            return False
        self._size = size
        self._begins = data[: size - rest]
        self._start = size - rest + behind
        if self._plain is not None:
            length = write_variable_byte_integer(len(self._topic) + rest - 2)
            self._plain = _PLAIN + length + self._topic
        return True
