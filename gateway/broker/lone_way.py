"""How a client's messages that come alone reach the one session that gets them."""

from typing import cast

from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.received_runs import bytes_alone
from gateway.routing.route_cache import RouteCache
from gateway.session.session import Session
from gateway.session.traffic import Traffic


class LoneWay:
    """The way of QoS 0 messages of one topic from a connection to one session.

    It is made when a message went that way that was all that was read, and is the client's until
    anything else comes from it: then no part of a packet waits before the next message. Such a
    message is what a sensor sends, and what it costs is how much memory is looked at for it, none
    of it in the processor's cache: so everything is asked here that can have changed since the way
    was made, and nothing else. On one connection nothing is to be sent again once that is done.
    """

    __slots__ = (
        "_begins",
        "_changes",
        "_head",
        "_publisher",
        "_receiver",
        "_routes",
        "_session",
        "_size",
        "_traffic",
    )

    def __init__(
        self,
        routes: RouteCache,
        traffic: Traffic,
        publisher: Connection,
        session: Session,
        head: bytes,
    ) -> None:
        """Lead to a session whose connection is clear for what stands behind this `head`."""
        self._routes = routes
        self._changes = routes.changes
        self._traffic = traffic
        self._publisher = publisher
        self._session = session
        self._receiver = cast("Connection", session.connection)
        self._head = head
        self._size = 0  # bytes of the last packet
        self._begins = b""  # what stood before its payload: those of its size begin so too

    def pass_on(self, data: bytes, at_once: bool) -> bool:
        """Send a packet to the receiver if it is one that goes this way, and nothing else.

        It leaves `at_once` unless something is to leave before it. Returns False, with nothing
        done, if it has to be looked at by others.
        """
        size = len(data)
        session, receiver, routes = self._session, self._receiver, self._routes
        if (
            (size != self._size and not self._learn(data))
            or not data.startswith(self._begins)
            or routes.changes != self._changes
            or session.connection is not receiver
            or session.queue
        ):
            return False
        traffic, output = self._traffic, receiver.output
        if at_once and not output.size and output.transport is not None:
            output.transport.write(data)
            receiver.packets_sent += 1
            traffic.network_sent += size
        elif output.size < MAXIMUM_UNSENT and traffic.bytes_sent <= traffic.full_at:
            receiver.send_run(data, 1)
        else:
            return False
        routes.hits += 1
        self._publisher.packets_received += 1
        payload_bytes = size - len(self._begins)
        traffic.network_received += size
        traffic.messages_received += 1
        traffic.bytes_received += payload_bytes
        traffic.messages_sent += 1
        traffic.bytes_sent += payload_bytes
        return True

    def _learn(self, data: bytes) -> bool:
        """Return whether the packet goes this way; then so do those that begin like it."""
        payload_bytes = bytes_alone(self._publisher, data, self._head)
        size = len(data)
        if payload_bytes < 0 or size > self._receiver.maximum_packet_size:
            return False
        self._size = size
        self._begins = data[: size - payload_bytes]
        return True
