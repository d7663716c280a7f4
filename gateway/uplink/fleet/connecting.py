"""The CONNECT of a connection to the fleet's broker, its TLS context, and the limits of CONNACK."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gateway.config.named_file import open_named, without_mark
from gateway.mqtt.packets import MQTT_5, ConnAck, Connect, Will
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.settings.uplink import UplinkSettings
from gateway.uplink.errors import LinkError, OldBrokerError, RetainError, end_of, in_words

if TYPE_CHECKING:
    import ssl

RECEIVE_MAXIMUM = 100
"""Messages of the server that may be unacknowledged; the way down remembers as many."""

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
TLS = ("mqtts", "wss")


SERVER_RECEIVE_MAXIMUM = 65_535
"""Receive Maximum of a server that states none [MQTT-3.2.2.3.3]."""


def connect_packet(
    settings: UplinkSettings,
    will: Will | None,
    version: int,
    *,
    clean_start: bool,
    bridge: bool = False,
) -> Connect:
    """Return the CONNECT; raise OSError without the password.

    MQTT 3.1.1 starts clean, since its sessions have no expiry, unless something comes down.
    """
    username, password = settings.username, None
    if settings.username_file is not None:
        username = _secret(Path(settings.username_file))
    if settings.password_file is not None:
        password = _secret(Path(settings.password_file)).encode()
    properties = NO_PROPERTIES
    if version == MQTT_5:
        properties = Properties(
            session_expiry_interval=settings.session_expiry,
            maximum_packet_size=settings.packet_bytes,
            receive_maximum=RECEIVE_MAXIMUM,
        )
    return Connect(
        settings.fleet_client_id,
        version,
        clean_start or (version < MQTT_5 and not settings.down),
        settings.keep_alive,
        username,
        password,
        will,
        properties,
        bridge,
    )


def tls_context(settings: UplinkSettings) -> "ssl.SSLContext":
    """Return the context that checks the server's certificate; raise OSError or ssl.SSLError."""
    import ssl

    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.tls_certificate is not None:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    if settings.alpn:
        context.set_alpn_protocols(list(settings.alpn))
    return context


def proxy_of(settings: UplinkSettings) -> str | None:
    """Return the URL of the proxy with its credentials, None without one; raise OSError."""
    if settings.proxy is None or settings.proxy_credentials_file is None:
        return settings.proxy
    user, separator, password = _secret(Path(settings.proxy_credentials_file)).partition(":")
    if not separator:
        raise OSError(f"{settings.proxy_credentials_file} does not hold USER:PASSWORD")
    scheme, _, rest = settings.proxy.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _secret(file: Path) -> str:
    """Return the text of a file without its line end; raise OSError if it cannot be read."""
    try:
        with open_named(file) as opened:
            return without_mark(opened.read()).decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise OSError(f"{file} is not UTF-8") from error


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a CONNACK; the defaults for MQTT 3.1.1, which has none."""

    receive_maximum: int = SERVER_RECEIVE_MAXIMUM
    maximum_packet_size: int | None = None
    retain_available: bool = True
    topic_alias_maximum: int = 0
    mqtt_5: bool = True


def limits_of(
    granted: Properties, version: int, maximum_packet_size: int | None = None
) -> ServerLimits:
    """Return the limits in the properties of a CONNACK, or their defaults.

    `maximum_packet_size` holds where the server names none.
    """
    return ServerLimits(
        receive_maximum=granted.receive_maximum or SERVER_RECEIVE_MAXIMUM,
        maximum_packet_size=granted.maximum_packet_size or maximum_packet_size,
        retain_available=granted.retain_available != 0,
        topic_alias_maximum=granted.topic_alias_maximum or 0,
        mqtt_5=version == MQTT_5,
    )


def refusal_of(connack: ConnAck, version: int, *, bridge: bool = False) -> LinkError | None:
    """Return why this connection of this MQTT version is useless, None if it can be used."""
    code = connack.reason_code
    if code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION and (version == MQTT_5 or bridge):
        return OldBrokerError()
    if code == ReasonCode.RETAIN_NOT_SUPPORTED:
        return RetainError(f"the fleet's broker refused the connection: {in_words(code)}")
    if code >= FAILURE:
        text = f"the fleet's broker refused the connection: {in_words(code)}"
        return LinkError(text, end_of(code))
    if connack.properties.maximum_qos == 0:
        return LinkError("the fleet's broker supports QoS 0 only", lasting=True)
    return None
