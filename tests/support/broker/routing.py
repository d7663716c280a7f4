"""Who gets a message."""

from gateway.mqtt.message import Message
from gateway.mqtt.publish_encoder import publication_of
from gateway.routing.route import Destination
from gateway.routing.router import Router


def destinations(router: Router, message: Message) -> list[Destination]:
    """Return everyone's copy, of those who always get one and of those whom it is asked for."""
    route = router.route(router.match(message.topic))
    asked = router.select(route, publication_of(message), 0) if route.selective else []
    return [*route.always, *asked]
