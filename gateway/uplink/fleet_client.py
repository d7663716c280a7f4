"""One network connection to the fleet's broker: a paho client driven by the running loop."""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from gateway.uplink.errors import LinkError, OldBrokerError
from gateway.uplink.paho_client import PahoClient
from gateway.uplink.settings import UplinkSettings
from gateway.uplink.socket_watch import SocketWatch

logger = logging.getLogger(__name__)

KEEP_ALIVE = 30
"""Seconds between two signs of life; half a minute more finds a dead link."""

CONNECT_SECONDS = 10.0
"""How long one address may take for the TCP connection and the TLS handshake."""

RECEIVE_MAXIMUM = 65_535
"""What a server without Receive Maximum takes [MQTT-3.2.2.3.3]."""

PORTS = {"mqtt": 1883, "mqtts": 8883}

UNSUPPORTED_PROTOCOL_VERSION = 0x84
DISCONNECT_WITH_WILL_MESSAGE = 0x04


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What the fleet's broker said in its CONNACK; one of MQTT 3.1.1 has nothing to say."""

    receive_maximum: int = RECEIVE_MAXIMUM
    maximum_packet_size: int | None = None
    retain_available: bool = True
    topic_alias_maximum: int = 0
    mqtt_5: bool = True


class FleetClient:
    """A connection, used once: what is not acknowledged when it ends is sent on the next one.

    The session at the server outlives it for `settings.session_expiry`: what the fleet asks of
    the gateway waits there. `session_present` says after the CONNACK that it was kept, and then
    what was unacknowledged is repeated by `publish_again` before anything else.

    Call `service` whenever `wake` was called, and now and then. `on_acknowledged` gets the
    packet identifier and the reason code of each PUBACK. Without `mqtt_5` the connection speaks
    MQTT 3.1.1.
    """

    def __init__(
        self,
        settings: UplinkSettings,
        wake: Callable[[], None],
        on_acknowledged: Callable[[int, int], None],
        *,
        mqtt_5: bool = True,
    ) -> None:
        self._mqtt_5 = mqtt_5
        self.session_present = False
        self.limits: ServerLimits | None = None
        self._settings = settings
        self._wake = wake
        self._acknowledged = on_acknowledged
        self._loop = asyncio.get_running_loop()
        self._error: LinkError | None = None
        self._closed = False
        self._client = self._new_client()
        self._watch = SocketWatch(self._client, wake)

    def connect(self, will: bytes, *, clean_start: bool = True) -> None:
        """Begin to connect, with `will` for the status topic; `limits` is set when it is done."""
        self._clean_start = clean_start
        target = urlsplit(self._settings.url or "")
        host, port = target.hostname or "", target.port or PORTS[target.scheme]
        try:
            self._prepare(will, tls=target.scheme == "mqtts")
        except OSError as error:  # ssl.SSLError is one
            raise LinkError(str(error)) from error
        # A thread of its own: looking up a name cannot be cancelled, and a stop would wait
        # for a thread of the loop's pool.
        arguments = (host, port)
        threading.Thread(target=self._connect_in_thread, args=arguments, daemon=True).start()

    def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> int:
        """Queue a QoS 1 PUBLISH and return its packet identifier; LinkError when it is down."""
        while True:
            info = self._client.publish(topic, payload, 1, retain, properties)
            if info.rc == MQTTErrorCode.MQTT_ERR_SUCCESS:
                return info.mid
            if info.rc != MQTTErrorCode.MQTT_ERR_QUEUE_SIZE:  # that identifier is still in use
                raise LinkError("the connection is lost")

    def publish_again(
        self, mid: int, topic: str, payload: bytes, retain: bool, properties: Properties | None
    ) -> None:
        """Queue a PUBLISH again under its old packet identifier; LinkError when it is down."""
        result = self._client.publish_again(mid, topic, payload, retain, properties)
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise LinkError("the connection is lost")

    @property
    def last_packet_identifier(self) -> int:
        """The packet identifier that was used last, for the next connection of the session."""
        return self._client.last_packet_identifier

    @last_packet_identifier.setter
    def last_packet_identifier(self, mid: int) -> None:
        self._client.last_packet_identifier = mid

    def listen(self, on_message: Callable[[bytes], None]) -> None:
        """Have each message that comes from the server taken; retained ones are passed over."""

        def take(_client: Client, _data: Any, message: MQTTMessage) -> None:
            if not message.retain:
                on_message(bytes(message.payload))

        self._client.on_message = take

    def subscribe(self, topic: str) -> None:
        """Ask for the messages of one topic, with QoS 1.

        Whether the broker grants it is logged; the uplink does not depend on it.
        """
        self._client.on_subscribe = _log_refused
        self._client.subscribe(topic, 1)

    def service(self) -> None:
        """Do what the network and the keep alive ask for; raise LinkError when it has ended."""
        self._watch.service()
        if self._error is not None:
            raise self._error

    @property
    def bytes_carried(self) -> int:
        """Bytes that the connection has carried both ways, TLS included."""
        return self._watch.bytes_carried

    def close(self, *, farewell: bool = False) -> None:
        """End the connection; with `farewell` by a DISCONNECT that has the will sent.

        Before MQTT 5 no DISCONNECT can say that, and the will is sent if there is none. A
        connection that is still being made is ended by its thread.
        """
        self._closed = True
        if farewell and self._mqtt_5 and self._watch.open and self.limits is not None:
            reason = ReasonCode(PacketTypes.DISCONNECT, identifier=DISCONNECT_WITH_WILL_MESSAGE)
            self._client.disconnect(reason)
            self._client.loop_write()
        self._watch.end()

    def _new_client(self) -> PahoClient:
        settings = self._settings
        client = PahoClient(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id or f"tidegate-{settings.gateway_id}",
            clean_session=None if self._mqtt_5 else True,
            protocol=MQTTProtocolVersion.MQTTv5 if self._mqtt_5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        client.connect_timeout = CONNECT_SECONDS
        # 0 is "no limit": the window is kept by the caller, and with a limit paho looks
        # through all messages in flight at each PUBACK.
        client.max_inflight_messages = 0
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        return client

    def _prepare(self, will: bytes, *, tls: bool) -> None:
        settings = self._settings
        if tls:
            ca_file = settings.ca_file
            self._client.tls_set_context(
                ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
            )
        if settings.username is not None:
            file = settings.password_file
            password = None if file is None else file.read_text("utf-8").rstrip("\r\n")
            self._client.username_pw_set(settings.username, password)
        self._client.will_set(settings.topic("status"), will, qos=1, retain=True)

    def _connect_in_thread(self, host: str, port: int) -> None:
        error: LinkError | None = None
        try:
            if self._mqtt_5:
                self._client.connect(
                    host,
                    port,
                    KEEP_ALIVE,
                    clean_start=self._clean_start,
                    properties=self._session_expiry(),
                )
            else:
                self._client.connect(host, port, KEEP_ALIVE)
        except (OSError, ValueError) as reason:  # ValueError: a host name that cannot be encoded
            error = LinkError(f"{host}:{port}: {reason}")
        try:
            self._loop.call_soon_threadsafe(self._connected, error)
        except RuntimeError:  # the loop has closed meanwhile
            self._client.disconnect()

    def _session_expiry(self) -> Properties:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # not annotated
        properties.SessionExpiryInterval = self._settings.session_expiry
        return properties

    def _connected(self, error: LinkError | None) -> None:
        """Watch the socket, back on the loop's thread."""
        self._error = self._error or error
        client = self._client
        if self._closed:
            client.disconnect()  # written at once, since nothing watches the socket
        elif (socket := client.socket()) is not None:
            self._watch.begin(socket)
        self._wake()

    def _on_connect(
        self,
        _client: Client,
        _data: Any,
        flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        self.session_present = flags.session_present
        if reason.value == UNSUPPORTED_PROTOCOL_VERSION:
            self._error = OldBrokerError()
        elif reason.is_failure:
            self._error = LinkError(f"the fleet's broker refused the connection: {_text(reason)}")
        elif getattr(properties, "MaximumQoS", 1) == 0:
            self._error = LinkError("the fleet's broker takes QoS 0 only", lasting=True)
        else:
            self.limits = ServerLimits(
                receive_maximum=getattr(properties, "ReceiveMaximum", RECEIVE_MAXIMUM),
                maximum_packet_size=getattr(properties, "MaximumPacketSize", None),
                retain_available=bool(getattr(properties, "RetainAvailable", 1)),
                topic_alias_maximum=getattr(properties, "TopicAliasMaximum", 0),
                mqtt_5=self._mqtt_5,
            )

    def _on_disconnect(
        self,
        _client: Client,
        _data: Any,
        flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if self._error is not None:
            return
        if flags.is_disconnect_packet_from_server:
            text = f"the fleet's broker ended the connection: {_text(reason)}"
        elif self.limits is None:
            text = "the connection ended before CONNACK (does the fleet's broker speak MQTT 5?)"
        else:
            text = f"the connection to the fleet's broker is lost: {_text(reason)}"
        self._error = LinkError(text)

    def _on_publish(
        self, _client: Client, _data: Any, mid: int, reason: ReasonCode, _properties: Properties
    ) -> None:
        self._acknowledged(mid, reason.value)


def _log_refused(
    _client: Client, _data: Any, _mid: int, reasons: list[ReasonCode], _properties: Any
) -> None:
    for reason in reasons:
        if reason.is_failure:
            logger.warning("the fleet's broker refused the subscription: %s", _text(reason))


def _text(reason: ReasonCode) -> str:
    return f"{reason.getName()} (0x{reason.value:02X})"
