"""Enhanced authentication and re-authentication: the state machine (MQTT 5, section 4.12)."""

from gateway.broker.client import Client, session_of
from gateway.broker.connecting.admission import Refusal
from gateway.broker.connecting.connack import admit, refuse
from gateway.broker.connecting.connection_info import (
    Authentication,
    AuthenticationFailedError,
    AuthenticationMethod,
    Step,
)
from gateway.broker.instant import Instant
from gateway.broker.state import State
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import Auth, Connect
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode


def begin(
    state: State,
    client: Client,
    method: AuthenticationMethod,
    packet: Connect,
    instant: Instant,
) -> None:
    """Authenticate the client by this method before its CONNECT is answered."""
    client.authentication = Authentication(method, packet)
    _go_on(state, client, client.authentication, packet.properties.authentication_data, instant)


def handle_auth(state: State, client: Client, packet: Auth, instant: Instant) -> None:
    """Continue the exchange, or begin a new one when the client authenticates again."""
    authentication = client.authentication
    if authentication is None:
        session_of(client)
        # [MQTT-4.12.0-7]
        raise ProtocolError("AUTH without an authentication method at CONNECT")
    if packet.properties.authentication_method != authentication.method.name:
        # [MQTT-4.12.0-5], [MQTT-4.12.1-1]
        raise ProtocolError("AUTH with another authentication method than CONNECT")
    if packet.reason_code == ReasonCode.RE_AUTHENTICATE and authentication.exchange is None:
        authentication.exchange = authentication.method.begin()
    elif packet.reason_code != ReasonCode.CONTINUE_AUTHENTICATION:  # [MQTT-4.12.0-3]
        raise ProtocolError(f"AUTH with reason code 0x{packet.reason_code:02X} at this moment")
    _go_on(state, client, authentication, packet.properties.authentication_data, instant)


def _go_on(
    state: State,
    client: Client,
    authentication: Authentication,
    data: bytes | None,
    instant: Instant,
) -> None:
    if authentication.exchange is None:
        raise ProtocolError("AUTH continues what was not begun")
    try:
        step = authentication.exchange.step(data)
        if step.username is None:
            _send(client, authentication, ReasonCode.CONTINUE_AUTHENTICATION, step)
            return
        authentication.exchange = None
        _succeed(state, client, authentication, step, instant)
    except AuthenticationFailedError as error:
        _fail(state, client, authentication, str(error))


def _succeed(
    state: State,
    client: Client,
    authentication: Authentication,
    step: Step,
    instant: Instant,
) -> None:
    connect = authentication.connect
    if connect is not None:
        authentication.connect = None
        connect.username = step.username
        admit(state, client, connect, instant, step.data)
    elif step.username != session_of(client).username:
        raise AuthenticationFailedError("another user than at CONNECT")
    else:
        _send(client, authentication, ReasonCode.SUCCESS, step)


def _fail(state: State, client: Client, authentication: Authentication, reason: str) -> None:
    """End the connection: [MQTT-4.12.0-4] before CONNACK, [MQTT-4.12.1-2] afterwards."""
    if authentication.connect is not None:
        refusal = Refusal(ReasonCode.NOT_AUTHORIZED, reason)
        refuse(state, client, authentication.connect, refusal)
    else:
        client.disconnect(ReasonCode.NOT_AUTHORIZED, reason)


def _send(client: Client, authentication: Authentication, code: ReasonCode, step: Step) -> None:
    """Answer with the method of CONNECT [MQTT-4.12.0-5] and the method's data."""
    properties = Properties(
        authentication_method=authentication.method.name, authentication_data=step.data
    )
    client.send(Auth(code, properties))
