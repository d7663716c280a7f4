"""One network connection to the gateway, from CONNECT to its end (paho-mqtt, MQTT 5)."""

import struct
from collections.abc import Callable
from queue import Empty, SimpleQueue

from paho.mqtt import MQTTException
from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from textual.message import Message

from tui.address import Address
from tui.messages import OrderAnswered, SubscriptionRefused
from tui.text import printable

KEEP_ALIVE = 10
"""seconds; a gateway that is silent for longer than that and a PINGREQ's answer is given up"""
CONNECT_TIMEOUT = 5.0
"""seconds for the network connection"""
LOOP_TIMEOUT = 0.1
"""seconds of waiting for the network before requests and the end are looked at"""
LARGEST_PACKET = 64 * 1024
"""bytes; the gateway drops a larger message instead of sending it [MQTT-3.1.2-24]"""
MOST_REASON = 160
"""characters of why a connection ended"""

BROKEN = (OSError, MQTTException, ValueError, LookupError, TypeError, struct.error)
"""what paho raises when the network fails or the peer does not speak MQTT"""


class Connection:
    """A connection that calls back, on the thread of `run`, for what it hears.

    `connected` is called at a CONNACK that takes us, `heard` for each message; refusals and
    answers are posted. `subscribe` and `order` may be called from any thread.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        connected: Callable[[], None],
        heard: Callable[[str, bytes, bool], None],
        post: Callable[[Message], object],
    ) -> None:
        self._address = address
        self._connected = connected
        self._heard = heard
        self._post = post
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._subscriptions: dict[int, str] = {}
        self._asked = 0  # subscriptions, counted by who asks
        self._answered = 0  # counted by the thread that hears
        self._ended = ""
        self._client = self._new_client(client_id)

    @property
    def hears(self) -> bool:
        """Whether every subscription that was asked for has been answered."""
        return self._answered == self._asked

    def subscribe(self, topic_filter: str) -> None:
        """Ask for these messages at QoS 0; a refusal is posted as SubscriptionRefused."""
        self._asked += 1
        self._requests.put(lambda: self._send_subscribe(topic_filter))

    def order(self, topic: str, word: str) -> None:
        """Publish `word` at QoS 1; the gateway's answer is posted as OrderAnswered."""
        self._requests.put(lambda: self._send_order(topic, word))

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
            self._client.disconnect()

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

    def _send_subscribe(self, topic_filter: str) -> None:
        _, packet_identifier = self._client.subscribe(topic_filter, qos=0)
        if packet_identifier is not None:
            self._subscriptions[packet_identifier] = topic_filter

    def _send_order(self, topic: str, word: str) -> None:
        self._client.publish(topic, word, qos=1)

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
        self._heard(message.topic, bytes(message.payload), message.retain)

    def _on_subscribe(
        self,
        _client: Client,
        _userdata: object,
        packet_identifier: int,
        reason_codes: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        self._answered += 1
        topic_filter = self._subscriptions.pop(packet_identifier, "")
        for reason_code in reason_codes:
            if reason_code.is_failure:
                self._post(SubscriptionRefused(topic_filter, str(reason_code)))

    def _on_publish(
        self,
        _client: Client,
        _userdata: object,
        _packet_identifier: int,
        reason_code: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        self._post(OrderAnswered(str(reason_code) if reason_code.is_failure else ""))


def _one_line(failure: Exception) -> str:
    if isinstance(failure, OSError) and failure.strerror:
        return printable(failure.strerror.lower(), MOST_REASON)
    return printable(str(failure) or type(failure).__name__, MOST_REASON)
