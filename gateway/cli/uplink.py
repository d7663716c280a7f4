"""`tidegate uplink pause|resume`: ask a running gateway to hold or send what goes up."""

from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError

CONTROL_TOPIC = "$CONTROL/tidegate/uplink"
PATIENCE = 10.0
"""Seconds to wait for the gateway's answer."""


def command_uplink(broker: LocalBroker, action: str) -> int:
    """Publish the action and wait until the gateway has taken it; raise TidegateError."""
    refused: list[str] = []
    client = broker.connect()
    client.on_publish = lambda _client, _data, _mid, code, _properties: (
        refused.append(str(code)) if code.is_failure else None
    )
    client.on_connect_fail = lambda _client, _data: refused.append("no connection")
    client.on_connect = lambda _client, _data, _flags, code, _properties: (
        refused.append(str(code)) if code.is_failure else None
    )
    client.loop_start()
    try:
        published = client.publish(CONTROL_TOPIC, action, qos=1)
        published.wait_for_publish(PATIENCE)
    finally:
        client.disconnect()
        client.loop_stop()
    if refused or not published.is_published():
        reason = refused[0] if refused else f"no answer within {PATIENCE:.0f} s"
        raise TidegateError(f"the gateway at {broker.url} did not {action} its uplink: {reason}")
    print(f"uplink: {action}")
    return 0
