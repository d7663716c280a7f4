"""The broker: receives bytes and messages, and queues packets for sending."""

import logging
from collections.abc import Callable, Iterable

from gateway.broker import sessions
from gateway.broker.client import HELD, Client, Pieces
from gateway.broker.connecting.connection_info import PLAIN, Authenticator, ConnectionInfo
from gateway.broker.handlers import STREAMS, go_on, handle
from gateway.broker.instant import Instant
from gateway.broker.publishing.forward import publish, share_out
from gateway.broker.publishing.inline import InlineClient
from gateway.broker.state import State
from gateway.broker.store import Durability, InMemory, Store, StoresNothing
from gateway.counters import Counters
from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import MqttError
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5, ConnAck
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.durability_class import DurabilityClass
from gateway.session.span import Span
from gateway.settings.broker import BrokerSettings

logger = logging.getLogger(__name__)

SIGN_OF_LIFE = 256
"""Bytes of one read that count for keep alive before their packet is complete.

A large packet may take long on a slow line; a packet that trickles in does not count
[MQTT-3.1.2-22].
"""

AT_ONCE = 256
"""Packets, or packet batches, of one client that are handled before other clients are served:
256 KiB can be 131,072 PINGREQs."""

MAXIMUM_COST = 256
"""The same for messages that cost 10 to 20 µs each: 256 KiB can be 30,000 of them."""

EVALUATIONS_PER_COST = 8
"""Evaluated subscriptions, or checked rights to a topic, that count as one such message."""

# Compiled, these are C names.
_AT_ONCE = AT_ONCE
_COST_OF_EVALUATIONS = EVALUATIONS_PER_COST * (MAXIMUM_COST + 1)
_EVALUATIONS_PER_COST = EVALUATIONS_PER_COST
_PUBLISH = 3
_SIGN_OF_LIFE = SIGN_OF_LIFE
_STREAMS = STREAMS


class Broker(State):
    """Receives bytes and messages and queues packets; does no I/O and reads no clock."""

    __slots__ = ("_packets_received", "_packets_sent")

    def __init__(
        self,
        settings: BrokerSettings,
        counters: Counters,
        *,
        durability: Durability | None = None,
        store: Store | None = None,
        new_client_id: Callable[[], str],
        randrange: Callable[[int], int],
        timer: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(
            settings,
            counters,
            durability or InMemory(),
            store or StoresNothing(),
            self.publish,
            new_client_id=new_client_id,
            randrange=randrange,
            timer=timer,
        )
        self._packets_received = self._packets_sent = 0  # of connections that are gone
        self.store.on_undelivered = self._share_out

    def open(
        self,
        authenticator: Authenticator,
        peer: str,
        on_output: Callable[[], None],
        instant: Instant,
        info: ConnectionInfo = PLAIN,
    ) -> Client:
        """Return the client of a new network connection."""
        connection = Connection(
            min(self.packet_size(info), self.settings.maximum_connect_size),
            self.settings.topic_alias_maximum,
            on_output,
            self.inbound_alias_figures,
            receive_maximum=self.settings.receive_maximum,
            property_cache=self.property_cache,
        )
        client = Client(connection, authenticator, peer, instant.monotonic, info)
        self.connections.add(client)
        self.sockets += 1
        opened = instant.monotonic if info.opened is None else info.opened
        due = opened + self.settings.connect_timeout
        self.deadlines.set(client, due, self._no_connect)
        self.memory.open(client)
        return client

    def receive(self, client: Client, data: bytes, instant: Instant) -> bool:
        """Handle every complete packet in the bytes that a client sent.

        Returns True if output should be written first (`Traffic.begin_turn`) or other clients
        should be served: then call again, without data.
        """
        connection, traffic = client.connection, self.traffic
        framer, router = connection.framer, self.router
        self.budget.now = now = instant.monotonic
        if data:
            traffic.network_received += len(data)
            client.last_received = now if len(data) >= _SIGN_OF_LIFE else client.last_received
            framer.feed(data)
        most = router.evaluations + _COST_OF_EVALUATIONS
        try:
            left = _AT_ONCE  # a range would be made for each read
            while left:
                left -= 1
                if client.closing:
                    return False
                # checked before each packet: one packet may exceed the limit, the next may not
                cost = router.evaluations + _EVALUATIONS_PER_COST * traffic.cost
                if traffic.bytes_sent > traffic.full_at or cost >= most:
                    traffic.end_share()
                    return True
                if client.pieces is not None:
                    return self._go_on(client, client.pieces, instant)
                # a PUBLISH makes more output, and the last round's is not written yet
                if traffic.unfinished and framer.next_first_byte >> 4 == _PUBLISH:
                    return True
                first_byte = framer.next_frame(connection.version)
                if not first_byte:
                    return False
                client.last_received = now
                session, stream = client.session, _STREAMS.get(first_byte)
                if stream is not None and session is not None:
                    stream(self, client, session, instant)
                elif handle(self, client, instant):
                    return True
                if framer.position == len(framer.buffer) and client.pieces is None:  # as mostly
                    framer.clear()
                    return False
        except MqttError as error:
            self._fail(client, error)
            return False
        return True

    def _go_on(self, client: Client, pieces: Pieces, instant: Instant) -> bool:
        """Continue a packet that is handled in pieces; return the same as `receive`."""
        if pieces is HELD:
            return False
        client.last_received = instant.monotonic
        go_on(self, client, pieces, instant)
        return True

    def lost(self, client: Client, instant: Instant) -> None:
        """Note that the client's network connection has ended."""
        # first, so that nothing below queues output for it
        client.closing = True
        self.deadlines.discard(client)
        self.connections.discard(client)
        self.memory.forget(client)
        self._packets_received += client.connection.packets_received
        self._packets_sent += client.connection.packets_sent
        self.connection_lines.note_end(client, instant)
        sessions.disconnect(self, client, instant)
        client.connection.close()

    def publish(
        self,
        message: Message,
        instant: Instant,
        of_client: DurabilityClass | None = None,
        *,
        only_once: bool = False,
    ) -> ReasonCode:
        """Route a message from a part of the gateway, as if a client had published it.

        The configured topics, or the class of the client `of_client`, say how soon it must be on
        disk, unless it is in memory only (`Message.commit_within`). A code of 0x80 or above means
        that nobody got it. With `only_once` the message goes to every destination that can accept
        it, even if another refuses.
        """
        return publish(self, message, instant, of_client, only_once=only_once)

    def subscribe_inline(self, subscriber: InlineClient, topic_filters: Iterable[str]) -> None:
        """Route matching messages to a part of the gateway, at any QoS and unfiltered."""
        for topic_filter in topic_filters:
            self.router.add(Subscription(subscriber, topic_filter, qos=2))

    def packets(self) -> tuple[int, int]:
        """Return how many control packets were received and sent since the start."""
        connections = [client.connection for client in self.connections]
        return (
            self._packets_received + sum(each.packets_received for each in connections),
            self._packets_sent + sum(each.packets_sent for each in connections),
        )

    def tick(self, instant: Instant) -> float | None:
        """Do what is due; return the monotonic second at which the next thing is due."""
        self.budget.now = instant.monotonic
        self.deadlines.run(instant)
        return self.deadlines.next_due

    def _share_out(self, spans: list[Span], monotonic: float, wall: int) -> None:
        del wall
        share_out(self.router, self.counters, spans, monotonic)

    def _no_connect(self, client: Client, _: Instant) -> None:
        if client.closing:
            return
        timeout = self.settings.connect_timeout
        logger.info("closing client %s: no CONNECT within %d s", client.peer, timeout)
        self.counters.add("tidegate/connections/connect_timeouts")
        client.close()

    def _fail(self, client: Client, error: MqttError) -> None:
        session = client.session
        name = client.peer if session is None else f"{session.client_id[:80]!r} at {client.peer}"
        # malformed packets of strangers and scanners are routine, those of accepted clients are not
        level = logging.INFO if session is None else logging.WARNING
        logger.log(level, "closing client %s: %s (0x%02X)", name, error.reason, error.reason_code)
        self.counters.add("tidegate/clients/protocol_errors")
        if session is None:
            self._refuse(client, error)
        elif error.reason_code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION:
            # no DISCONNECT may answer a second CONNECT [MQTT-3.1.0-2]
            client.disconnect(ReasonCode.PROTOCOL_ERROR, error.reason)
        else:
            client.disconnect(error.reason_code, error.reason)

    def _refuse(self, client: Client, error: MqttError) -> None:
        """Answer a CONNECT that cannot be read, if the specification allows it [MQTT-4.13.1-1]."""
        unsupported = error.reason_code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION
        if client.connection.version == MQTT_5 or unsupported:
            properties = client.explain(error.reason, always=True)
            client.send(ConnAck(reason_code=error.reason_code, properties=properties))
        client.close()
