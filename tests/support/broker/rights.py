"""The rights at listeners, as a broker of a test has them."""

from gateway.access.access import AccessPolicy
from gateway.access.listeners import ListenerRights, Listeners


def only(policy: AccessPolicy) -> Listeners:
    """Return the rights at a single listener without a name."""
    return Listeners({"": ListenerRights(policy)})
