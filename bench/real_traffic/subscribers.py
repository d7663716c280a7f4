"""The subscribers of the kinds of traffic."""

import random

from bench.real_traffic.plan import QUANTITIES, Reading, Subscriber, topic

EVERYTHING = Subscriber()


def one_and_ten() -> list[Subscriber]:
    """Return one of `#` and ten with `+`: five of a quantity each, five of a site each."""
    quantities = [Subscriber((f"+/+/+/{name}",)) for name in QUANTITIES[:5]]
    sites = [Subscriber((f"site{number}/+/+/+",)) for number in range(5)]
    return [EVERYTHING, *quantities, *sites]


def many_filters(count: int, publishers: int, devices: int) -> list[Subscriber]:
    """Return subscribers of 18 topics and all of two devices each, no two of one device."""
    chosen = random.Random(15)  # the same each time
    every = [(publisher, device) for publisher in range(publishers) for device in range(devices)]
    subscribers = []
    for _ in range(count):
        picked = chosen.sample(every, 20)
        names = [
            topic(publisher, device * len(QUANTITIES) + chosen.randrange(len(QUANTITIES)))
            for publisher, device in picked
        ]
        wide = [name.rpartition("/")[0] + "/+" for name in names[:2]]
        subscribers.append(Subscriber((*wide, *names[2:])))
    return subscribers


def one_of_each_site(sites: int) -> list[Subscriber]:
    """Return a subscriber for each site."""
    return [Subscriber((f"site{number}/#",)) for number in range(sites)]


def filtered(count: int) -> list[Subscriber]:
    """Return subscribers of everything whose `$where` takes one or a few of a hundred."""
    return [_filtered(number) for number in range(count)]


def _filtered(number: int) -> Subscriber:
    """Return a range test, a comparison, or one of these beside a part that many share."""
    edge = 98 + number / 100

    def above(reading: Reading) -> bool:
        value = reading["value"]
        return isinstance(value, int | float) and value > edge

    def in_rack(reading: Reading) -> bool:
        return reading.get("rack") == f"r{number}"

    def in_kelvin(reading: Reading) -> bool:
        return reading.get("unit") == "K"

    if number % 4 == 1:
        return Subscriber(where=f"payload.rack = 'r{number}'", condition=in_rack)
    if number % 4 == 3:
        return Subscriber(
            where=f"payload.unit = 'K' AND payload.value > {edge}",
            condition=lambda reading: in_kelvin(reading) and above(reading),
        )
    return Subscriber(where=f"payload.value > {edge}", condition=above)
