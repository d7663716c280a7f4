"""Finds another gateway with the same id at a broker that ends connections without a reason.

Before MQTT 5 a broker that gets a second connection with one client identifier only closes the
first one, as it does when it restarts. The retained status tells which it was: its epoch changes
only if another gateway has connected.
"""

import json
from typing import Protocol

from gateway.mqtt.packets import Publish, SubscriptionRequest
from gateway.settings.uplink import UplinkSettings
from gateway.uplink.errors import TakenOverError

MAX_UNANSWERED = 3
"""Checks in a row whose connection ended before the answer: then no further one is made. Some
brokers close a connection that subscribes to a topic without the right to read it."""


class Subscriber(Protocol):
    """What subscribes for a while."""

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Subscribe."""
        ...

    def unsubscribe(self, *topic_filters: str) -> None:
        """Unsubscribe."""
        ...


class StatusCheck:
    """Compares the retained status with this gateway's own.

    Call `suspect` after a connection that ended without a reason, `begin` before a connection
    publishes its status, and `receive` with each message.
    """

    def __init__(self, settings: UplinkSettings) -> None:
        self._settings = settings
        self._possible = settings.reports  # only that status has an epoch
        self._suspected = False
        self._unanswered = 0
        self._subscriber: Subscriber | None = None

    def suspect(self) -> None:
        """Check the status on the next connection."""
        self._suspected = self._possible and self._unanswered < MAX_UNANSWERED

    def begin(self, subscriber: Subscriber) -> None:
        """Ask for the retained status, if the last connection ended without a reason."""
        self._subscriber = None
        if self._suspected:
            self._suspected = False
            self._unanswered += 1
            self._subscriber = subscriber
            subscriber.subscribe(SubscriptionRequest(self._settings.status_topic, 0))

    def receive(self, publish: Publish) -> TakenOverError | None:
        """Return an error if this is the answer and another gateway has written it."""
        subscriber = self._subscriber
        if subscriber is None or publish.topic != self._settings.status_topic:
            return None
        self._subscriber = None
        self._unanswered = 0
        subscriber.unsubscribe(publish.topic)
        epoch = _epoch_of(publish.payload)
        if not epoch or epoch in (self._settings.epoch, self._settings.previous_epoch):
            return None
        return TakenOverError(self._settings.fleet_client_id, epoch)


def _epoch_of(status: bytes) -> str:
    """Return the epoch of a status message, "" if it has none."""
    try:
        found = json.loads(status)
    except ValueError:
        return ""
    epoch = found.get("epoch") if isinstance(found, dict) else None
    return epoch if isinstance(epoch, str) else ""
