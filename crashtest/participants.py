"""Who takes part in a crash test."""

from random import Random

from crashtest.publisher import LIVE, WRITTEN, Publisher
from crashtest.retained import NAME
from crashtest.subscriber import Subscriber
from gateway.mqtt.packets import MQTT_3_1_1

SLOW_WINDOW = 10
"""Receive Maximum of the subscriber that acknowledges slowly."""


def make_publishers(findings: list[str], random: Random, *, sessions: bool) -> list[Publisher]:
    """Return publishers of each kind; with `sessions` also those that a session is kept for."""
    publishers = [
        Publisher("one", findings, random, persistent=sessions, window=50),
        Publisher("old", findings, random, version=MQTT_3_1_1, persistent=sessions, window=10),
        Publisher("batched", findings, random, persistent=sessions, window=10),
    ]
    if sessions:
        publishers += [
            Publisher("two", findings, random, qos=2),
            Publisher(NAME, findings, random, topics=5, retain=True, window=10),
            Publisher("live1", findings, random, root=LIVE),
            Publisher("live2", findings, random, root=LIVE, qos=2),
        ]
    return publishers


def make_subscribers(findings: list[str]) -> list[Subscriber]:
    """Return the subscribers, each with a habit that `Rounds` gives it by its name."""
    return [
        Subscriber("away", findings, roots=(WRITTEN,), qos=1),
        Subscriber("online", findings, roots=(WRITTEN, LIVE), qos=2),
        Subscriber("slow", findings, roots=(WRITTEN,), qos=1, receive_maximum=SLOW_WINDOW),
        Subscriber("restless", findings, roots=(WRITTEN,), qos=2, version=MQTT_3_1_1),
        Subscriber("blinking", findings, roots=(LIVE,), qos=1),
    ]
