"""What does a `$where` cost, beside the JSON it looks at and among ten thousand others?

    .venv/bin/python -m bench.where

Prints microseconds and ratios, all of one run; each time is the least of many rounds.
"""

import gc
import json
from collections.abc import Callable
from time import perf_counter, perf_counter_ns

from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import compile_where
from gateway.routing.where.message import Message

SECONDS = 2.0
"""For each line, or one round if that takes longer."""

SUBSCRIBERS = 10_000
MESSAGES = 100  # in a round
TYPICAL = "payload.temp > 30 AND $user.site = 'A'"
NOT_INDEXED = "payload.device IN ('{}') AND payload.temp > 10"
INDEXED = "payload.device = '{}' AND payload.temp > 10"
TOPIC = "plant/line-3/telemetry"


class Subscriber:
    """Gets messages and does nothing with them."""

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


def routing(subscribers: int, text: str) -> float:
    """Return a message past so many subscribers, all with a device of their own.

    The messages are parsed beforehand; each is wanted by exactly one subscriber.
    """
    router = Router(Budget(perf_counter_ns))
    for device in range(subscribers):
        where = compile_where(text.format(f"d{device:04}"))
        router.add(Subscription(Subscriber(f"c{device}"), "plant/+/telemetry", 0, where=where))
    messages = [message(number * subscribers // MESSAGES) for number in range(MESSAGES)]
    for each in messages:
        assert len(router.recipients(each)) == 1

    def route() -> None:
        for each in messages:
            router.recipients(each)

    return microseconds(route)


def main() -> None:
    """Print one table."""
    gc.disable()
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
