"""What does a channel cost beside a shared subscription, and beside one plain subscriber?

    .venv/bin/python -m bench.channels [--rounds 3] [--seconds 2.5] [--inflight 10] [--plain-only]

20 publishers send at QoS 1 to topics in turn, and four consumers share what they send: by a shared
subscription, by a temporary channel, and by a durable one, whose messages are on disk before their
PUBACK unless a consumer acknowledges them before. The same is promised of a shared subscription
whose members' sessions stay. One plain subscriber gets the same, with a session that ends with its
connection and with one that stays. Mosquitto has all but the channels in the same run. Every
delivery is counted. With `--inflight 1` each publisher waits for each answer.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bench.harness import builds
from bench.harness.brokers import Broker, configured, mosquitto, tidegate
from bench.harness.figures import Figures
from bench.harness.machine import describe
from bench.harness.markdown import table
from bench.harness.scenario import Settings
from bench.real_traffic.kinds import PERSISTENT, QOS_1, SHARES, of_twenty
from bench.real_traffic.measure import Traffic
from bench.real_traffic.plan import Subscriber
from bench.real_traffic.subscribers import EVERYTHING

CONSUMERS = 4
MQTT_5 = 5

CHANNEL = """\
[[channel]]
name = "g"
filter = "#"
maximum_messages = 100_000_000
temporary = {temporary}
memory_messages = 100_000
"""

SHARES_PERSISTENT = replace(SHARES, words=f"{SHARES.words} {PERSISTENT.words}")
WRONG = ("lost", "duplicates")
HEAD = ["", "", "CPU a delivery, µs", "deliveries/s", "checked", "lost, doubled"]


def ways(broker: Broker, inflight: int) -> dict[str, Callable[[Settings], Figures]]:
    """Return what is measured of a broker, by its name in the table."""

    def to(*subscribers: Subscriber) -> Traffic:
        return Traffic(partial(of_twenty, *subscribers), (*QOS_1, "--inflight", inflight))

    sharing = to(*[SHARES] * CONSUMERS)
    found: dict[str, Callable[[Settings], Figures]] = {
        "one plain subscriber": partial(to(EVERYTHING), broker),
        "one subscriber whose session stays": partial(to(PERSISTENT), broker),
        "shared subscription": partial(sharing, broker),
        "shared by sessions that stay": partial(to(*[SHARES_PERSISTENT] * CONSUMERS), broker),
    }
    if broker.own:
        for name in ("temporary", "durable"):
            text = CHANNEL.format(temporary=str(name == "temporary").lower())
            found[f"{name} channel"] = partial(sharing, configured(broker, text))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--inflight", type=int, default=10, help="messages of a publisher")
    parser.add_argument("--plain-only", action="store_true")
    arguments = parser.parse_args()
    brokers = [mosquitto(), tidegate("plain", builds.plain())]
    if not arguments.plain_only:
        brokers.append(tidegate("compiled", builds.compiled()))
    measured: defaultdict[tuple[str, str], list[Figures]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for broker in brokers:
            for name, measure in ways(broker, arguments.inflight).items():
                measured[broker.name, name].append(measure(Settings(MQTT_5, arguments.seconds)))
    rows = [[*names, *_cells(figures)] for names, figures in measured.items()]
    print(table(HEAD, rows))
    print(describe())


def _cells(rounds: list[Figures]) -> list[str]:
    return [
        f"{statistics.median(each['delivered_us'] for each in rounds):.2f}",
        f"{statistics.median(each['messages_s'] for each in rounds):,.0f}",
        f"{sum(each['checked'] for each in rounds):,.0f}",
        ", ".join(f"{sum(each[wrong] for each in rounds):,.0f}" for wrong in WRONG),
    ]


if __name__ == "__main__":
    main()
