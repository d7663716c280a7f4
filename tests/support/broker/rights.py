"""The rights at listeners, as a broker of a test has them."""

from gateway.access.listeners import ListenerRights, Listeners
from gateway.access.policy import AccessPolicy


def only(policy: AccessPolicy) -> Listeners:
    """Return the rights at a single listener without a name."""
    return Listeners({"": ListenerRights(policy)})
