"""Who gets a message."""

from gateway.routing.destination import Destination
from gateway.routing.router import Router
from gateway.routing.where.message import Message


def destinations(router: Router, message: Message) -> list[Destination]:
    """Return everyone's copy, of those who always get one and of those whom it is asked for."""
    route = router.route(router.match(message.topic))
    return [*route.always, *(router.select(route, message) if route.asks else [])]
