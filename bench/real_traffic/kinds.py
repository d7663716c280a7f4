"""The kinds of traffic, in the order of the table."""

from functools import cache, partial

from bench.harness.brokers import Keeping
from bench.harness.scenario import Scenario
from bench.real_traffic.measure import Traffic, access, filters, uplink
from bench.real_traffic.plan import Plan, Subscriber, readings
from bench.real_traffic.subscribers import (
    EVERYTHING,
    many_filters,
    one_and_ten,
    one_of_each_site,
)

WINDOW = ("--window", 1000)
QOS_1 = ("--qos", 1, "--inflight", 10, "--window", 500)
PERSISTENT = Subscriber(words="persistent")
PERSISTENT_AWAY = Subscriber(words="persistent away")
SHARES = Subscriber(("$share/g/#",), "group")
KIB = 1024
MOST_QUEUED = 40_000
"""Messages that are published while sessions are away."""


def paced(rate: int) -> tuple[object, ...]:
    """Return the generator's options for so many messages a second, all publishers together."""
    return ("--rate", rate, "--window", 0, "--warmup", 0.5)


@cache
def mixed() -> Plan:
    """Return the plan of A and B."""
    return Plan(50, 20, one_and_ten())


@cache
def thousand() -> Plan:
    """Return the plan of C."""
    return Plan(1000, 5, [EVERYTHING])


@cache
def wide() -> Plan:
    """Return the plan of D."""
    return Plan(20, 100, many_filters(200, publishers=20, devices=10))


@cache
def large() -> Plan:
    """Return the plan of J."""
    return Plan(10, 5, [EVERYTHING], readings=readings(64, 16 * KIB, 256 * KIB - 64))


@cache
def of_twenty(*subscribers: Subscriber, topics: int = 20, sites: int = 5) -> Plan:
    """Return a plan of 20 publishers."""
    return Plan(20, topics, subscribers, sites)


A = Traffic(mixed, WINDOW)
B = Traffic(mixed, QOS_1)
PUBLISHED_A = Traffic(mixed, WINDOW, per="published_us")
PUBLISHED_B = Traffic(mixed, QOS_1, per="published_us")
RETAINED = partial(of_twenty, *one_of_each_site(20), topics=250, sites=20)
SHOWN_PACED = ("published_us", "p50_us", "p99_us")
FIVE_SESSIONS = (PERSISTENT, PERSISTENT, PERSISTENT, PERSISTENT_AWAY, PERSISTENT_AWAY)
MQTT_5 = (5,)

SHOWN_AWAY = ("published_us", "drained_us")


def away_and_back(
    sessions: int, away: int, topics: int, messages: int, pace: tuple[object, ...] = ()
) -> Traffic:
    """Return traffic to persistent sessions, some of them away, which fetch theirs afterwards."""
    subscribers = [PERSISTENT] * (sessions - away) + [PERSISTENT_AWAY] * away
    options = (*QOS_1, *pace, "--messages", messages)
    return Traffic(
        partial(of_twenty, *subscribers, topics=topics),
        options,
        per="published_us",
        keeping=Keeping.DURABLE,
    )


KINDS = {
    "A": Scenario(
        "QoS 0, 50 publishers x 20 topics to one subscriber of `#` and ten with `+`",
        A,
        ("delivered_us",),
    ),
    "B": Scenario("the same at QoS 1, 10 in flight", B, ("delivered_us",)),
    "A_paced": Scenario(
        "A at 5,000 messages/s; delays from the moment a message was due",
        Traffic(mixed, paced(5000), "published_us", longer=2.0),
        SHOWN_PACED,
    ),
    "B_paced": Scenario(
        "B at 2,000 messages/s",
        Traffic(mixed, (*QOS_1, *paced(2000)), "published_us", longer=2.0),
        SHOWN_PACED,
    ),
    "C": Scenario(
        "1,000 connections, each a message a second at QoS 1, to one subscriber",
        Traffic(thousand, (*QOS_1, *paced(1000)), "published_us", longer=2.0),
        SHOWN_PACED,
    ),
    "D": Scenario(
        "QoS 0, 20 publishers over 2,000 topics, 200 subscribers with 20 filters each",
        Traffic(wide, WINDOW),
        ("delivered_us",),
    ),
    "E0": Scenario(
        "QoS 0, retained updates of 5,000 topics, 20 subscribers of a site each",
        Traffic(RETAINED, ("--retain", *WINDOW), keeping=Keeping.DURABLE),
        ("delivered_us",),
    ),
    "E1": Scenario(
        "the same at QoS 1, 10 in flight",
        Traffic(RETAINED, ("--retain", *QOS_1), keeping=Keeping.DURABLE),
        ("delivered_us",),
    ),
    "F": Scenario(
        "QoS 1, 20 publishers, 5 persistent sessions of which 2 are away, then fetch theirs",
        Traffic(
            partial(of_twenty, *FIVE_SESSIONS),
            (*QOS_1, "--messages", MOST_QUEUED),
            per="published_us",
            keeping=Keeping.DURABLE,
        ),
        ("published_us", "drained_us"),
    ),
    "F_few": Scenario(
        "F with 2 sessions, one of them away, 100 topics, 100 messages/s",
        away_and_back(2, 1, 5, 1_000, paced(100)),
        SHOWN_AWAY,
    ),
    "F_trickle": Scenario(
        "F with 50 sessions, half of them away, 2,000 topics, 20 messages/s",
        away_and_back(50, 25, 100, 200, paced(20)),
        SHOWN_AWAY,
    ),
    "F_burst": Scenario(
        "F with 50 sessions, half of them away, 2,000 topics, as fast as it goes",
        away_and_back(50, 25, 100, 4_000),
        SHOWN_AWAY,
    ),
    "G": Scenario(
        "QoS 1, 20 publishers, 4 workers that share `$share/g/#`",
        Traffic(partial(of_twenty, *[SHARES] * 4), QOS_1),
        ("delivered_us",),
        versions=MQTT_5,
    ),
    "H": Scenario(
        "200 devices connect, publish 5 messages at QoS 1 on 5 topics, disconnect, again",
        Traffic(lambda: Plan(200, 5, [EVERYTHING]), ("--qos", 1, "--cycle", 5), per="cycle_us"),
        ("cycle_us",),
    ),
    "I": Scenario(
        "QoS 2, 20 publishers, 10 in flight, 5 subscribers of everything",
        Traffic(
            partial(of_twenty, *[EVERYTHING] * 5), ("--qos", 2, "--inflight", 10, "--window", 200)
        ),
        ("delivered_us",),
    ),
    "J0": Scenario(
        "QoS 0, payloads of 16 to 256 KiB, 10 publishers to one subscriber",
        Traffic(large, ("--window", 10), per="mb_us"),
        ("mb_us",),
    ),
    "J1": Scenario(
        "the same at QoS 1",
        Traffic(large, ("--window", 10, "--qos", 1, "--inflight", 1), per="mb_us"),
        ("mb_us",),
    ),
    "K": Scenario(
        "A with topic aliases in and out",
        Traffic(mixed, (*WINDOW, "--aliases", 100)),
        ("delivered_us",),
        versions=MQTT_5,
    ),
    "L": Scenario(
        "QoS 0, 20 publishers, a topic never seen before for each message, one subscriber",
        Traffic(lambda: Plan(20, 1, [EVERYTHING], fresh=True), WINDOW),
        ("delivered_us",),
    ),
    "M": Scenario(
        "A with 1, 10 and 100 subscriptions with a `$where` beside it",
        filters(PUBLISHED_A, (1, 10, 100)),
        ("published_us", "where_1", "where_10", "where_100"),
        versions=MQTT_5,
        own=True,
    ),
    "N": Scenario(
        "B with an uplink rule that takes all of it, to a directory",
        uplink(PUBLISHED_B),
        ("published_us", "uplink_times", "written"),
        own=True,
    ),
    "O0": Scenario(
        "A under access rules, which are others for each client",
        access(PUBLISHED_A),
        ("published_us", "access_times"),
        own=True,
    ),
    "O1": Scenario(
        "B under the same rules",
        access(PUBLISHED_B),
        ("published_us", "access_times"),
        own=True,
    ),
}
