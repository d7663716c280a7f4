"""`tidegate uplink pause|resume`: ask a running gateway to hold or send what goes up."""

from gateway.cli.control_request import ask_gateway
from gateway.cli.local_broker import LocalBroker


def command_uplink(broker: LocalBroker, action: str, name: str | None = None) -> int:
    """Publish the action and wait until the gateway has taken it; raise TidegateError.

    Without a `name` it is for every uplink.
    """
    part, which = ("uplink", "") if name is None else (f"uplink/{name}", f" {name}")
    ask_gateway(broker, part, action, f"did not {action} its uplink{which}")
    print(f"uplink{which}: {action}")
    return 0
