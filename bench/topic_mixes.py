"""Sequences of topics as a gateway's subscribers see them; the same ones each time."""

import random

METRICS = ("temperature", "humidity", "co2", "power", "state")

TOPICS = [
    f"site-{site}/floor-{floor}/device-{device:03}/{metric}"
    for site in range(1, 4)
    for floor in range(1, 5)
    for device in range(1, 11)
    for metric in METRICS
]
"""600 topics of 33 bytes in the mean."""

DEVICES = [TOPICS[first : first + len(METRICS)] for first in range(0, len(TOPICS), len(METRICS))]


def skewed(count: int, exponent: float = 1.0) -> list[str]:
    """Topic number n comes n ** -exponent as often as the first (Zipf)."""
    choose = random.Random(1)
    topics = choose.sample(TOPICS, len(TOPICS))
    weights = [rank**-exponent for rank in range(1, len(topics) + 1)]
    return choose.choices(topics, weights, k=count)


def in_turn(count: int, topics: int) -> list[str]:
    """So many topics come round in a circle, as sensors with the same interval do."""
    return [TOPICS[number % topics] for number in range(count)]


def devices(count: int) -> list[str]:
    """A device reports all its metrics at once; some devices report more often than others."""
    choose = random.Random(2)
    order = choose.sample(DEVICES, len(DEVICES))
    weights = [1 / rank for rank in range(1, len(order) + 1)]
    chosen = choose.choices(order, weights, k=count // len(METRICS))
    return [topic for device in chosen for topic in device]


def half_never_again(count: int) -> list[str]:
    """Every other message, by chance, is on a topic that never comes again."""
    choose = random.Random(3)
    return [
        topic if choose.random() < 0.5 else f"site-1/requests/{number:08}/answer"
        for number, topic in enumerate(skewed(count))
    ]


def drifting(count: int, topics: int = 30, stay: int = 5_000) -> list[str]:
    """Now and then other topics take the place of those that were in use."""
    choose = random.Random(4)
    sequence: list[str] = []
    while len(sequence) < count:
        sequence += choose.choices(choose.sample(TOPICS, topics), k=stay)
    return sequence[:count]


MIXES = {
    "skewed, 600 topics": skewed,
    "devices, 600 topics": devices,
    "600 topics in turn": lambda count: in_turn(count, 600),
    "100 topics in turn": lambda count: in_turn(count, 100),
    "12 topics in turn": lambda count: in_turn(count, 12),
    "half never again": half_never_again,
    "30 topics, drifting": drifting,
}
"""A function from the number of messages to their topics, by name."""
