"""What does a `$where` cost, beside the JSON it looks at and among ten thousand others?

    .venv/bin/python -m bench.where

Prints microseconds and ratios, all of one run; each time is the least of many rounds.
"""

import gc
import json
from collections.abc import Callable
from itertools import cycle, islice
from math import prod
from time import perf_counter, perf_counter_ns

from gateway.access.access import EVERYTHING
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5, Publish, SubscriptionRequest
from gateway.mqtt.publish_encoder import publication_of
from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import compile_where
from tests.support.broker.broker_harness import Harness

SECONDS = 1.0
"""For each line, or one round if that takes longer."""

SUBSCRIBERS = 10_000
MESSAGES = 100  # in a round
TYPICAL = "payload.temp > 30 AND $user.site = 'A'"
NOT_INDEXED = "payload.device IN ('{}') AND payload.temp > 10"
INDEXED = "payload.device = '{}' AND payload.temp > 10"
TOPIC = "plant/line-3/telemetry"
TEN_FILTERS = (
    "payload.temp > 30",
    TYPICAL,
    "temp > 25 AND humidity < 70",
    "clientid LIKE 'd00%'",
    "site IN ('A', 'B') OR retain",
    "TOPIC_MATCHES('plant/+/telemetry') AND payload.test IS TRUE",
    "payload.status IS NOT NULL AND payload.location.hall BETWEEN 2 AND 5",
    "CASE WHEN payload.unit = 'F' THEN (payload.temp - 32) / 1.8 ELSE payload.temp END > 25",
    (
        "TOPIC_MATCHES('plant/#') AND (payload.temp > 40 OR ABS(payload.rssi) > 60)"
        " AND COALESCE(payload.mode, 'auto') != 'off' AND NOT payload.test IS TRUE"
    ),
    (
        "UPPER($user.site) IN ('A', 'B') AND payload.battery * 2 > 6.5"
        " AND LENGTH(payload.device) = 5 AND qos < 2 AND payload.status != 'off'"
    ),
)


class Subscriber:
    """Gets messages and does nothing with them."""

    inline = False
    access = EVERYTHING

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id


def payload(device: int) -> bytes:
    """Return a reading of 200 bytes."""
    reading = {
        "device": f"d{device:04}",
        "temp": 31.25,
        "humidity": 48.5,
        "battery": 3.71,
        "rssi": -71,
        "location": {"hall": 4, "rack": "B12"},
        "status": "ok",
        "alarms": [],
        "time": 1763740800000 + device,
    }
    text = json.dumps(reading)
    return json.dumps(reading | {"note": "." * (200 - len(text) - len(', "note": ""'))}).encode()


def message(device: int) -> Message:
    """Return a message nobody has looked at yet."""
    return Message(
        TOPIC, payload(device), client_id=f"d{device:04}", user_properties=(("site", "A"),)
    )


def microseconds(work: Callable[[], None]) -> float:
    """Return what one of the hundred calls that `work` makes takes: the least of many rounds."""
    least = float("inf")
    end = perf_counter() + SECONDS
    while least == float("inf") or perf_counter() < end:
        started = perf_counter()
        work()
        least = min(least, perf_counter() - started)
    return least / MESSAGES * 1_000_000


def evaluation_and_parse() -> tuple[float, float, float]:
    """Return a typical filter on a parsed payload, the gateway's parse, the plain library's."""
    where = compile_where(TYPICAL)
    parsed, raw = message(7), payload(7)
    assert len(raw) == 200
    assert where.passes(parsed)
    hundred = range(MESSAGES)
    evaluate = where.evaluate

    def evaluating() -> None:
        for _ in hundred:
            evaluate(parsed)

    def parsing() -> None:
        for _ in hundred:
            Message(TOPIC, raw).json()

    def library() -> None:
        for _ in hundred:
            json.loads(raw)

    times = [microseconds(work) for work in (evaluating, parsing, library)]
    return times[0], times[1], times[2]


def mixture(count: int) -> list[str]:
    """Return so many filters of ten shapes, most of which compare with a constant of their own."""
    shapes = islice(cycle(_SHAPES), count)
    return [each.format(24 + place % 13, f"d{place:04}") for place, each in enumerate(shapes)]


_SHAPES = (
    "payload.temp > {0}.5",
    "temp < {0}.5",
    "payload.device = '{1}'",
    "payload.temp >= {0} AND payload.device = '{1}'",
    "payload.temp BETWEEN {0}.5 AND {0}.5 + 2",
    "topic[1] = 'line-3' AND payload.temp > {0}.5",
    "topic LIKE 'plant/%/telemetry' AND temp > {0}.5",
    "payload.status IS NOT NULL AND temp > {0}.5",
    "ABS(payload.temp - 25) > {0} - 24",
    "payload.temp > {0}.5 OR payload.device LIKE 'd00{0}%'",
)


def thresholds(count: int) -> list[str]:
    """Return so many filters that compare one field with a constant each, half of them TRUE."""
    return [f"payload.temp > {31.25 + (number - count / 2) / 100}" for number in range(count)]


def past(texts: list[str]) -> tuple[float, float]:
    """Return a message that has to be parsed, past these filters, and how many want it."""
    router = Router(Budget(perf_counter_ns))
    for number, text in enumerate(texts):
        where = compile_where(text)
        router.add(Subscription(Subscriber(f"c{number}"), "#", 0, where=where))
    least, wanted = float("inf"), 0
    end = perf_counter() + SECONDS
    while perf_counter() < end:
        messages = [publication_of(message(number)) for number in range(MESSAGES)]
        route = router.route(router.match(TOPIC))
        started = perf_counter()
        wanted = sum(len(router.select(route, each, 0)) for each in messages)
        least = min(least, perf_counter() - started)
    return least / MESSAGES * 1_000_000, wanted / MESSAGES


def print_filters() -> None:
    """Print a line for each number of filters."""
    print("\n| filters on `#` | thresholds, µs | wanted by | ten shapes, µs | wanted by |")
    print("| --: | --: | --: | --: | --: |")
    for count in (1, 10, 100, 1_000):
        (one, few), (other, more) = past(thresholds(count)), past(mixture(count))
        print(f"| {count:,} | {one:.1f} | {few:.0f} | {other:.1f} | {more:.0f} |")
    print()


def routing(subscribers: int, text: str) -> float:
    """Return a message past so many subscribers, all with a device of their own.

    The route is known, as the broker knows those of topics that come again; the messages are parsed
    beforehand. Each is wanted by exactly one subscriber.
    """
    router = Router(Budget(perf_counter_ns))
    for device in range(subscribers):
        where = compile_where(text.format(f"d{device:04}"))
        router.add(Subscription(Subscriber(f"c{device}"), "plant/+/telemetry", 0, where=where))
    each_wanted = (message(number * subscribers // MESSAGES) for number in range(MESSAGES))
    messages = [publication_of(one) for one in each_wanted]
    route = router.route(router.match(TOPIC))
    for each in messages:
        assert len(router.select(route, each, 0)) == 1

    def select() -> None:
        for each in messages:
            router.select(route, each, 0)

    return microseconds(select)


def tiers(text: str) -> tuple[float, float, float]:
    """Return an evaluation by closures and by a generated function, and how long that one takes."""
    built = min(timed(compile_where(text).promote) for _ in range(20))
    where, parsed = compile_where(text), message(7)  # alone: it shares no part with another
    closures = where.evaluate
    assert where.promote()
    generated = where.evaluate
    assert generated(parsed) is closures(parsed)
    hundred = range(MESSAGES)

    def by_closures() -> None:
        for _ in hundred:
            closures(parsed)

    def by_function() -> None:
        for _ in hundred:
            generated(parsed)

    return microseconds(by_closures), microseconds(by_function), built


def timed(work: Callable[[], object]) -> float:
    """Return the microseconds that one call takes."""
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1_000_000


def print_tiers() -> None:
    """Print a line for each of TEN_FILTERS, and the geometric mean of the ratios."""
    print("\n| | closures, µs | generated, µs | ratio | made in, µs |")
    print("| --- | --: | --: | --: | --: |")
    ratios = []
    for text in TEN_FILTERS:
        closures, generated, built = tiers(text)
        ratios.append(closures / generated)
        figures = f"{closures:.2f} | {generated:.2f} | {ratios[-1]:.2f} | {built:.0f}"
        print(f"| `{text}` | {figures} |")
    print(f"| geometric mean | | | {prod(ratios) ** (1 / len(ratios)):.2f} | |")


BURST = 20
"""Messages that a publisher sends at once, each of another topic."""

SITES = 10


def of_a_burst(filters: int) -> float:
    """Return microseconds a message of QoS 0 to a receiver of all, one of its site, and filters."""
    harness = Harness()
    topics = ["#", *(f"site{number}/#" for number in range(SITES)), *["#"] * filters]
    receivers = [harness.connect(f"r{number}") for number in range(len(topics))]
    for number, (receiver, topic) in enumerate(zip(receivers, topics, strict=True)):
        where = f"payload.temp > {99 + number}" if number > SITES else None
        receiver.subscribe_all([SubscriptionRequest(topic, 0)], where)
    publisher = harness.connect("publisher").client
    bursts = [
        b"".join(
            encode(Publish(f"site{site}/device{device}/telemetry", payload(device)), MQTT_5)
            for device in range(BURST)
        )
        for site in range(SITES)
    ]

    def work() -> None:
        for data in bursts:
            harness.broker.receive(publisher, data, harness.instant)
            while harness.broker.receive(publisher, b"", harness.instant):
                pass
        for receiver in receivers:
            receiver.client.connection.data_to_send(0)
        harness.broker.traffic.begin_turn()

    return microseconds(work) * MESSAGES / (BURST * SITES)


def print_bursts() -> None:
    """Print what the first filter costs where others get bursts of many topics as one."""
    without = of_a_burst(0)
    print("| a message of a burst | µs | of these for filters |")
    print("| --- | --: | --: |")
    for filters in (0, 1, 10):
        found = of_a_burst(filters) if filters else without
        print(f"| with {filters} `$where` | {found:.2f} | {found - without:.2f} |")


def main() -> None:
    """Print four tables."""
    gc.disable()
    print_bursts()
    print_tiers()
    print_filters()
    evaluation, parse, library = evaluation_and_parse()
    one, many = routing(1, INDEXED), routing(SUBSCRIBERS, INDEXED)
    unindexed, all_asked = routing(1, NOT_INDEXED), routing(SUBSCRIBERS, NOT_INDEXED)
    print("| | µs | ratio |")
    print("| --- | --: | --: |")
    print(f"| the gateway parses 200 bytes of JSON | {parse:.2f} | 1 |")
    print(f"| Python's `json.loads` parses them | {library:.2f} | {library / parse:.2f} |")
    print(f"| `{TYPICAL}` | {evaluation:.2f} | {evaluation / parse:.2f} |")
    print(f"| a message past 1 subscriber, `device = …` | {one:.2f} | 1 |")
    print(f"| past {SUBSCRIBERS:,} | {many:.2f} | {many / one:.2f} |")
    print(f"| past 1, `device IN (…)`, not indexed | {unindexed:.2f} | {unindexed / one:.2f} |")
    print(f"| past {SUBSCRIBERS:,} | {all_asked:,.0f} | {all_asked / one:,.0f} |")


if __name__ == "__main__":
    main()
