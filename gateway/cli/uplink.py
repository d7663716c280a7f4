"""`tidegate uplink pause|resume`: ask a running gateway to hold or send what goes up."""

from gateway.cli.control_request import ask_gateway
from gateway.cli.local_broker import LocalBroker


def command_uplink(broker: LocalBroker, action: str) -> int:
    """Publish the action and wait until the gateway has taken it; raise TidegateError."""
    ask_gateway(broker, "uplink", action, f"did not {action} its uplink")
    print(f"uplink: {action}")
    return 0
