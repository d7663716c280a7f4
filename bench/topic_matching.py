"""What does it cost to find the subscriptions of a topic, and to keep them?

    .venv/bin/python -m bench.topic_matching

Compares five ways among the same subscriptions, then shows the trie as they become more.
Each time is the least of many rounds. The build that is installed is measured: `make compile` makes
the compiled one, `make clean` removes it.
"""

import gc
import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from resource import getpagesize
from time import perf_counter

from gateway.app.allocator import give_back_freed_memory
from gateway.routing import topic_trie
from gateway.routing.route import Route
from gateway.routing.route_cache import RouteCache
from gateway.routing.topic_trie import TopicTrie

SUBSCRIPTIONS = 100_000
SAMPLE = 2_000
"""Subscriptions among which the ways are measured whose time is in proportion to their number."""

TOPICS = 100  # in a round
CACHED = 1_000
"""Topics that come again and again, the first one a thousand times as often as the last."""

SECONDS = 1.0
"""For each line, or one round if that takes longer."""

GROWTH = (1_000, 10_000, 100_000, 1_000_000)
METRICS = ("temperature", "humidity", "co2", "pressure", "battery")
WILD = 0.05

Match = Callable[[str], list[int]]


def topic_filters(count: int) -> list[str]:
    """Return `site/{s}/floor/{f}/device/{d}/{metric}`, every twentieth with a wildcard."""
    choose = random.Random(1)
    return [_topic_filter(choose) for _ in range(count)]


def _topic_filter(choose: random.Random) -> str:
    site, floor, device = choose.randrange(50), choose.randrange(10), choose.randrange(20_000)
    metric = choose.choice(METRICS)
    if choose.random() >= WILD:
        return f"site/{site}/floor/{floor}/device/{device}/{metric}"
    return choose.choice(
        (
            f"site/+/floor/{floor}/device/{device}/{metric}",
            f"site/{site}/floor/{floor}/device/+/{metric}",
            f"site/{site}/floor/{floor}/device/{device}/#",
        )
    )


def topics(filters: Sequence[str], count: int) -> list[str]:
    """Return topics that are subscribed to; number n comes 1 / n as often as the first."""
    choose = random.Random(2)
    plain = [each for each in filters if "+" not in each and "#" not in each]
    known = choose.sample(plain, min(CACHED, len(plain)))
    return choose.choices(known, [1 / rank for rank in range(1, len(known) + 1)], k=count)


def split_and_compare(filters: Sequence[str]) -> Match:
    """Split every topic filter for every message."""

    def match(topic: str) -> list[int]:
        levels = topic.split("/")
        return [number for number, each in enumerate(filters) if _same(each.split("/"), levels)]

    return match


def _same(wanted: list[str], levels: list[str]) -> bool:
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


def expression(topic_filter: str) -> str:
    """Return the regular expression of a topic filter."""
    return re.escape(topic_filter).replace(r"\+", "[^/]*").replace(r"/\#", "(/.*)?")


def built_each_time(filters: Sequence[str]) -> Match:
    """Make a regular expression of every topic filter for every message."""

    def match(topic: str) -> list[int]:
        return [
            number for number, each in enumerate(filters) if re.fullmatch(expression(each), topic)
        ]

    return match


def precompiled(filters: Sequence[str]) -> Match:
    """Make a regular expression of every topic filter once."""
    patterns = [re.compile(expression(each)) for each in filters]

    def match(topic: str) -> list[int]:
        return [number for number, each in enumerate(patterns) if each.fullmatch(topic)]

    return match


def trie(filters: Sequence[str]) -> Match:
    """Use the topic trie, for every message."""
    return filled(filters).match


def filled(filters: Sequence[str]) -> TopicTrie:
    """Return a trie that holds the topic filters under their numbers."""
    made = TopicTrie()
    for number, topic_filter in enumerate(filters):
        made.add(topic_filter, number)
    return made


def cache(asked: Sequence[str]) -> Callable[[str], object]:
    """Use the route cache, which holds the routes of all topics that come."""
    routes = RouteCache()
    for topic in dict.fromkeys(asked):
        routes.put(topic, Route([], [], []))
    return routes.get


def least(match: Callable[[str], object], asked: Sequence[str]) -> float:
    """Return the microseconds of one match, those of the quickest round."""
    end, best = perf_counter() + SECONDS, float("inf")
    while True:
        begin = perf_counter()
        for topic in asked:
            match(topic)
        done = perf_counter()
        best = min(best, done - begin)
        if done > end:
            return best / len(asked) * 1e6


def resident() -> int:
    """Return the bytes of memory that this process occupies, without what it could give back."""
    give_back_freed_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def grown(count: int) -> tuple[float, ...]:
    """Return microseconds to add and to match, found for a topic, bytes measured and as told.

    To be called in a process of its own: what was freed before would be used again.
    """
    filters = topic_filters(count)
    asked = topics(filters, TOPICS)
    gc.collect()
    begin, start = resident(), perf_counter()
    made = filled(filters)
    added = (perf_counter() - start) / count * 1e6
    size = (resident() - begin) / count
    found = sum(len(made.match(topic)) for topic in asked) / TOPICS
    return added, least(made.match, asked), found, size, made.memory() / count


def check(ways: Sequence[Match], asked: Sequence[str]) -> None:
    """Stop if one way finds something else than the others."""
    for topic in asked:
        first, *others = (sorted(match(topic)) for match in ways)
        if any(other != first for other in others):
            raise SystemExit(f"they differ on {topic}")


def main() -> None:
    """Print both tables."""
    build = "compiled" if str(topic_trie.__file__).endswith(".so") else "plain"
    filters = topic_filters(SUBSCRIPTIONS)
    asked = topics(filters, TOPICS)
    linear = (split_and_compare, built_each_time, precompiled)
    sample = filters[:SAMPLE]
    check([way(sample) for way in (*linear, trie)], topics(sample, 20))
    print(f"| µs for a topic, {SUBSCRIPTIONS:,} subscriptions | {build} |\n| --- | --: |")
    for way in linear:
        time = least(way(sample), asked[:1]) * SUBSCRIPTIONS / SAMPLE
        print(f"| {way.__name__.replace('_', ' ')} | {time:,.0f} |", flush=True)
    print(f"| trie | {least(trie(filters), asked):.2f} |")
    print(f"| trie with route cache | {least(cache(asked), asked):.3f} |\n")
    print(f"| {build} | add, µs | match, µs | found | bytes, measured | `memory()` |")
    print("| --- | --: | --: | --: | --: | --: |")
    for count in GROWTH:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            figures = pool.submit(grown, count).result()
        print(f"| {count:,} |", " | ".join(f"{each:.2f}" for each in figures), "|", flush=True)


if __name__ == "__main__":
    main()
