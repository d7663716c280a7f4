"""What does it cost to find the subscriptions of a topic, and to keep them?

    .venv/bin/python -m bench.topic_matching [--short] [--write]

Compares five ways among the same subscriptions, then shows the trie as they become more, in plain
Python and compiled. Each time is the least of many rounds.
"""

import argparse
import gc
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from resource import getpagesize
from time import perf_counter
from typing import Any, TypeVar

from bench.harness import builds
from bench.harness.errors import MeasurementError
from bench.harness.machine import describe
from bench.harness.markdown import README, replace_section, table
from gateway.app.process_limits import give_back_freed_memory
from gateway.broker.client_classes import DurabilityClasses
from gateway.broker.publishing.topic_admissions import TopicAdmissions
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.topics import TopicLimits
from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.trie.topic_trie import TopicTrie
from gateway.settings.broker import MAXIMUM_TOPIC_LEVELS

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
Topic = TypeVar("Topic", str, bytes)


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


def known(names_of_topics: Sequence[bytes]) -> Callable[[bytes], object]:
    """Use what the broker keeps of all topics that come, routes among it."""
    limits, classes = TopicLimits(MAXIMUM_TOPIC_LEVELS, 65_535), DurabilityClasses((), "commit")
    admissions = TopicAdmissions(Router(Budget()), limits, classes, p2p=False)
    for name in dict.fromkeys(names_of_topics):
        admissions.find(name)
    return admissions.find


def least(match: Callable[[Topic], object], names_of_topics: Sequence[Topic]) -> float:
    """Return the microseconds of one match, those of the quickest round."""
    end, best = perf_counter() + SECONDS, float("inf")
    while True:
        begin = perf_counter()
        for topic in names_of_topics:
            match(topic)
        done = perf_counter()
        best = min(best, done - begin)
        if done > end:
            return best / len(names_of_topics) * 1e6


def resident() -> int:
    """Return the bytes of memory that this process occupies, without what it could give back."""
    give_back_freed_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def grown(count: int) -> tuple[float, ...]:
    """Return microseconds to add and to match, found for a topic, bytes measured and as told.

    To be called in a process of its own: what was freed before would be used again.
    """
    filters = topic_filters(count)
    names_of_topics = topics(filters, TOPICS)
    gc.collect()
    begin, start = resident(), perf_counter()
    made = filled(filters)
    added = (perf_counter() - start) / count * 1e6
    size = (resident() - begin) / count
    found = sum(len(made.match(topic)) for topic in names_of_topics) / TOPICS
    return added, least(made.match, names_of_topics), found, size, made.memory() / count


def check(ways: Sequence[Match], names_of_topics: Sequence[str]) -> None:
    """Stop if one way finds something else than the others."""
    for topic in names_of_topics:
        first, *others = (sorted(match(topic)) for match in ways)
        if any(other != first for other in others):
            raise SystemExit(f"they differ on {topic}")


def ways() -> dict[str, float]:
    """Return the microseconds of each way for a topic; the linear ones multiplied up."""
    filters = topic_filters(SUBSCRIPTIONS)
    names_of_topics = topics(filters, TOPICS)
    linear = {
        "split and compare": split_and_compare,
        "regular expression built each time": built_each_time,
        "precompiled regular expression": precompiled,
    }
    sample = filters[:SAMPLE]
    check([way(sample) for way in (*linear.values(), trie)], topics(sample, 20))
    times = {
        name: least(way(sample), names_of_topics[:1]) * SUBSCRIPTIONS / SAMPLE
        for name, way in linear.items()
    }
    times["trie"] = least(trie(filters), names_of_topics)
    names = [write_string(topic) for topic in names_of_topics]
    times["trie, and what is known of topics"] = least(known(names), names)
    return times


def growth(counts: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """Return what `grown` does for each number of subscriptions."""
    figures = {}
    for count in counts:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            figures[count] = pool.submit(grown, count).result()
    return figures


def of_build(folder: Path, short: bool) -> dict[str, Any]:
    """Return what this module measures where the package of this folder is imported."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{builds.ROOT}"}
    command = [sys.executable, "-P", "-m", "bench.topic_matching", "--json", *["--short"] * short]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def tables(measured: dict[str, dict[str, Any]]) -> str:
    """Return both tables with a column, or a line, for each build."""
    names = list(measured)
    first = next(iter(measured.values()))
    head = [f"µs for a topic, {SUBSCRIPTIONS:,} subscriptions", *names]
    rows = [
        [way, *(_microseconds(measured[name]["ways"][way]) for name in names)]
        for way in first["ways"]
    ]
    titles = ["subscriptions", "build", "add, µs", "match, µs", "found", "bytes", "`memory()`"]
    lines = [
        [f"{int(count):,}", name, *(f"{each:.2f}" for each in measured[name]["growth"][count])]
        for count in first["growth"]
        for name in names
    ]
    return f"{table(head, rows)}\n\n{table(titles, lines)}"


def _microseconds(value: float) -> str:
    return f"{value:,.0f}" if value > 100 else f"{value:.3f}"


def main() -> None:
    """Measure both builds and print the tables, or measure what is imported."""
    parser = argparse.ArgumentParser(prog="python -m bench.topic_matching", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--short", action="store_true", help="not beyond 100,000 subscriptions")
    parser.add_argument("--json", action="store_true", help="of the build that is imported alone")
    parser.add_argument("--write", action="store_true", help="the tables into bench/README.md")
    options = parser.parse_args()
    if options.json:
        counts = GROWTH[:-1] if options.short else GROWTH
        print(json.dumps({"ways": ways(), "growth": growth(counts)}))
        return
    measured = {"plain": of_build(builds.plain(), options.short)}
    try:
        measured["compiled"] = of_build(builds.compiled(), options.short)
    except MeasurementError as error:
        print(f"left out: compiled: {error}")
    text = tables(measured)
    print(text)
    if options.write:
        command = f"    .venv/bin/python -m bench.topic_matching {' '.join(sys.argv[1:])}"
        replace_section(README, "topic_matching", f"{command}\n\n{describe()}\n\n{text}")


if __name__ == "__main__":
    main()
