"""Keeps a connection to the gateway up, in a thread of its own, and passes on what it hears."""

import secrets
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from paho.mqtt import MQTTException
from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from tui.address import Address
from tui.inbox import Arrival, Inbox
from tui.link import Acknowledged, Answered, Link, LinkEvent, Phase, Subscribed, delay_after
from tui.text import printable

KEEP_ALIVE = 10
"""seconds; a gateway that is silent for longer than that and a PINGREQ's answer is given up"""
CONNECT_TIMEOUT = 5.0
"""seconds for the network connection"""
LOOP_TIMEOUT = 0.2
"""seconds of waiting for the network before requests and the end are looked at"""
DISCONNECT_TIMEOUT = 0.5
"""seconds given to the gateway to close the connection after DISCONNECT"""
DISCONNECT = b"\xe0\x00"
LARGEST_PACKET = 128 * 1024
"""bytes; the gateway drops a larger message instead of sending it [MQTT-3.1.2-24]"""
MOST_REASON = 160
"""characters of why a connection ended"""

ANSWERS = "$CONTROL/answers/"
"""what is below it only operators can read"""
LOGIN_REFUSED = (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C)
"""CONNACK codes that the same login will meet again"""

BROKEN = (OSError, MQTTException, ValueError, LookupError, TypeError, struct.error)
"""what paho raises when the network fails or the peer does not speak MQTT"""


class Connection:
    """A connection that calls back, on the thread of `run`, for each message.

    `connected` is called at a CONNACK that takes us, `on_message` for each message; answers are
    posted. `subscribe`, `unsubscribe`, `publish` and `ask` may be called from any thread.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        connected: Callable[[], None],
        on_message: Callable[[str, bytes, bool, str], None],
        post: Callable[[LinkEvent], object],
    ) -> None:
        self._address = address
        self._connected = connected
        self._deliver = on_message
        self._post = post
        self._answers = f"{ANSWERS}{client_id}"
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._subscriptions: dict[int, tuple[list[str], str]] = {}
        self._where = ""
        self._published: dict[int, str] = {}
        self._ended = ""
        self.login_refused = False
        """whether the gateway refused this login, so that trying again is of no use"""
        self.octets = 0
        """bytes of received topics and payloads"""
        self._client = self._new_client(client_id)

    def subscribe(self, topic_filters: Sequence[str], every: int = 0, where: str = "") -> None:
        """Ask for these messages at QoS 0; the newest of each topic `every` so many ms if not 0."""
        requested = (("$every", str(every or "")), ("$where", where))
        properties = [(name, value) for name, value in requested if value]
        self._requests.put(lambda: self._send_subscribe(topic_filters, properties, where))

    def subscribe_to_answers(self) -> None:
        """Ask for the answers to queries."""
        self.subscribe([self._answers])

    def unsubscribe(self, topic_filters: Sequence[str]) -> None:
        """Ask for these messages no longer."""
        self._requests.put(lambda: self._send_unsubscribe(topic_filters))

    def publish(self, key: str, topic: str, payload: bytes) -> None:
        """Publish at QoS 1; the gateway's PUBACK is posted as Acknowledged with this key."""
        self._requests.put(lambda: self._send(key, topic, payload))

    def ask(self, key: str, topic: str, payload: bytes) -> None:
        """Send a query; its PUBACK and its answer are posted with its key."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's gap
        properties.ResponseTopic = self._answers
        properties.CorrelationData = key.encode()
        self._requests.put(lambda: self._send(key, topic, payload, properties))

    def run(self, stopping: Callable[[], bool]) -> str:
        """Connect, serve until the connection ends or `stopping`, and return why it ended."""
        try:
            self._serve(stopping)
        except BROKEN as failure:
            return _one_line(failure)
        finally:
            self._client.reinitialise()  # closes sockets that paho else leaves to the collector
        return printable(self._ended, MOST_REASON)

    def _serve(self, stopping: Callable[[], bool]) -> None:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho's gap
        properties.MaximumPacketSize = LARGEST_PACKET
        host, port = self._address.host, self._address.port or 1  # paho wants one with a socket too
        self._client.connect(host, port, KEEP_ALIVE, clean_start=True, properties=properties)
        outcome = MQTTErrorCode.MQTT_ERR_SUCCESS
        while outcome == MQTTErrorCode.MQTT_ERR_SUCCESS and not stopping():
            outcome = self._client.loop(LOOP_TIMEOUT)
            self._send_requests()
        if stopping():
            self._disconnect()

    def _disconnect(self) -> None:
        """Disconnect, and read until the gateway has closed: unread bytes would reset it."""
        socket: Any = self._client.socket()
        if socket is None:
            return
        with suppress(OSError):
            socket.settimeout(DISCONNECT_TIMEOUT)
            socket.sendall(DISCONNECT)
            end = time.monotonic() + DISCONNECT_TIMEOUT
            while socket.recv(65_536) and time.monotonic() < end:
                continue

    def _new_client(self, client_id: str) -> Client:
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            transport="tcp" if self._address.port else "unix",
        )
        client.connect_timeout = CONNECT_TIMEOUT
        if self._address.username is not None:
            client.username_pw_set(self._address.username, self._address.password)
        if self._address.tls is not None:
            client.tls_set_context(self._address.tls)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        return client

    def _send_requests(self) -> None:
        while True:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            request()

    def _send_subscribe(
        self, topic_filters: Sequence[str], user_properties: list[tuple[str, str]], where: str
    ) -> None:
        properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]  # paho's gap
        if user_properties:
            properties.UserProperty = user_properties
        options = SubscribeOptions(qos=0)
        pairs = [(each, options) for each in topic_filters]
        _, packet_identifier = self._client.subscribe(pairs, properties=properties)
        if packet_identifier is not None:
            self._subscriptions[packet_identifier] = list(topic_filters), where

    def _send_unsubscribe(self, topic_filters: Sequence[str]) -> None:
        self._client.unsubscribe(list(topic_filters))

    def _send(
        self, key: str, topic: str, payload: bytes, properties: Properties | None = None
    ) -> None:
        sent = self._client.publish(topic, payload, qos=1, properties=properties)
        self._published[sent.mid] = key

    def _on_connect(
        self,
        _client: Client,
        _userdata: object,
        _flags: ConnectFlags,
        reason_code: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason_code.is_failure:
            self._ended = f"the gateway refused the connection: {reason_code}"
            self.login_refused = reason_code.value in LOGIN_REFUSED
        else:
            self._connected()

    def _on_disconnect(
        self,
        _client: Client,
        _userdata: object,
        flags: DisconnectFlags,
        reason_code: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            self._ended = f"the gateway ended the connection: {reason_code}"
        elif not self._ended:
            self._ended = "the connection was lost"

    def _on_message(self, _client: Client, _userdata: object, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        self.octets += len(payload) + len(message.topic)
        if message.topic == self._answers:
            key = getattr(message.properties, "CorrelationData", b"")
            self._post(Answered(key.decode(errors="replace"), payload))
        else:
            self._deliver(message.topic, payload, message.retain, self._where)

    def _on_subscribe(
        self,
        _client: Client,
        _userdata: object,
        packet_identifier: int,
        reason_codes: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        topic_filters, where = self._subscriptions.pop(packet_identifier, ([], ""))
        if not all(each.startswith("$") for each in topic_filters):
            self._where = where  # what comes after this packet has passed it
        for topic_filter, reason_code in zip(topic_filters, reason_codes, strict=False):
            refusal = str(reason_code) if reason_code.is_failure else ""
            self._post(Subscribed(topic_filter, refusal))

    def _on_publish(
        self,
        _client: Client,
        _userdata: object,
        packet_identifier: int,
        reason_code: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        key = self._published.pop(packet_identifier, "")
        self._post(Acknowledged(key, str(reason_code) if reason_code.is_failure else ""))


def _one_line(failure: Exception) -> str:
    if isinstance(failure, OSError) and failure.strerror:
        return printable(failure.strerror.lower(), MOST_REASON)
    return printable(str(failure) or type(failure).__name__, MOST_REASON)


CONTROL = "$CONTROL/tidegate/"
REJECTED = "rejected"
"""the request that is answered as queries are and is none"""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
STOP_TIMEOUT = 2.0
"""seconds given to the thread to end"""


class GatewayClient:
    """A plain MQTT client of a gateway that connects again, with backoff, whenever it must.

    Messages go to `inbox`, all else to `events`; the session reads both. A login that
    is refused is not tried again before `retry_now`.
    """

    def __init__(self, address: Address) -> None:
        self.inbox = Inbox()
        self.events: SimpleQueue[LinkEvent] = SimpleQueue()
        self.received_at = 0.0
        """when anything was last received"""
        self._address = address
        # The same identifier each time, so that a new connection ends a half-dead old one.
        self.client_id = f"tidegate-tui-{secrets.token_hex(4)}"
        self._attempt = 1
        self._stopping = Event()
        self._hurry = Event()
        self._connection = self._new_connection()
        self._thread = Thread(target=self._run, name="gateway-client", daemon=True)

    def __str__(self) -> str:
        """Return where the gateway is."""
        return str(self._address)

    @property
    def is_local(self) -> bool:
        """Whether the gateway is on this machine, by its socket or loopback."""
        return not self._address.port or self._address.host in LOOPBACK

    def options(self) -> tuple[list[str], dict[str, str]]:
        """Return the options and the environment with which a command asks the same gateway."""
        address = self._address
        if not address.port or address.tls is not None:
            return [], {}  # it finds this machine's by itself
        user = [] if address.username is None else ["--username", address.username]
        secret = {} if address.password is None else {"TIDEGATE_PASSWORD": address.password}
        return ["--gateway", str(address), *user], secret

    def clock(self) -> float:
        """Return the seconds since 1970."""
        return now()

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect and end the thread, or leave it behind if it does not end in time."""
        self._stopping.set()
        self._hurry.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT)

    def retry_now(self, password: str | None = None) -> None:
        """Cut the wait for the next attempt short; log in with another password if it is given."""
        if password is not None:
            self._address = self._address.with_password(password)
        self._hurry.set()

    def subscribe_to_answers(self) -> None:
        """Ask for the answers to queries."""
        self._connection.subscribe_to_answers()

    def subscribe(self, topic_filters: Sequence[str], every: int = 0, where: str = "") -> None:
        """Ask for messages at QoS 0, the newest of each topic `every` so many milliseconds."""
        self._connection.subscribe(topic_filters, every, where)

    def unsubscribe(self, topic_filters: Sequence[str]) -> None:
        """Ask for messages no longer."""
        self._connection.unsubscribe(topic_filters)

    def ask(self, key: str, query: str, request: bytes) -> None:
        """Send a query (docs/operate/query.md) or one about rejected messages."""
        part = query if query == REJECTED else f"query/{query}"
        self._connection.ask(key, CONTROL + part, request)

    def order(self, key: str, part: str, word: str) -> None:
        """Publish a command below `$CONTROL/tidegate/`; its PUBACK is an event with this key."""
        self._connection.publish(key, CONTROL + part, word.encode())

    def publish(self, key: str, topic: str, payload: bytes) -> None:
        """Publish a message; its PUBACK is an event with this key."""
        self._connection.publish(key, topic, payload)

    def _new_connection(self) -> Connection:
        return Connection(
            self._address, self.client_id, self._on_connected, self._on_message, self._on_event
        )

    def _run(self) -> None:
        reason = ""
        while not self._stopping.is_set():
            self._hurry.clear()
            self.events.put(Link(Phase.CONNECTING, self._attempt, reason))
            self._connection = self._new_connection()
            reason = self._connection.run(self._stopping.is_set)
            if not self._stopping.is_set():
                self._wait(reason)

    def _wait(self, reason: str) -> None:
        if self._connection.login_refused:
            self.events.put(Link(Phase.REFUSED, self._attempt, reason))
            self._hurry.wait()
            return
        delay = delay_after(self._attempt)
        self._attempt += 1
        self.events.put(Link(Phase.WAITING, self._attempt, reason, now() + delay))
        self._hurry.wait(delay)

    def _on_connected(self) -> None:
        self._attempt = 0
        self.inbox.clear()
        self.received_at = now()
        self.events.put(Link(Phase.CONNECTED))

    def _on_event(self, event: LinkEvent) -> None:
        self.received_at = now()
        self.events.put(event)

    def _on_message(self, topic: str, payload: bytes, retained: bool, where: str) -> None:
        self.received_at = now()
        self.inbox.put(Arrival(topic, payload, retained, self.received_at, where))


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_START = time.time() - time.clock_gettime(_CLOCK)


def now() -> float:
    """Return the seconds since 1970: the wall clock at the start, and steady from there."""
    return _START + time.clock_gettime(_CLOCK)
