"""`tidegate node forget NAME`: a running gateway forgets a node that was removed or renamed."""

import json

from gateway.cli.control_request import ask_gateway
from gateway.cli.local_broker import LocalBroker


def command_node(broker: LocalBroker, action: str, name: str) -> int:
    """Send the command and wait until the node is forgotten; raise TidegateError."""
    payload = json.dumps({action: name})
    ask_gateway(broker, "node", payload, f"knows no bridge that could {action} {name}")
    print(f"{name}: forgotten")
    return 0
