"""The scenarios of the comparison, in the order of its tables."""

from bench.harness.brokers import Keeping
from bench.harness.scenario import Scenario
from bench.side_by_side.footprint import IDLE, connect, idle, subscriptions
from bench.side_by_side.queues import offline, offline_kill, retained
from bench.side_by_side.traffic import traffic

ONE = ("--mode", "pair", "--publishers", 1)
ONE_QOS_0 = (*ONE, "--window", 1000)
QOS_1 = ("--qos", 1, "--inflight", 100, "--window", 500)
HUNDRED_TO_ONE = ("--mode", "fanin", "--publishers", 100, "--subscribers", 1)
PACED = ("--mode", "pair", "--publishers", 10, "--rate", 2000, "--warmup", 1)
LATENCY = ("cpu_us", "p50_us", "p99_us")

SCENARIOS = {
    "qos0": Scenario("QoS 0, 1 publisher to 1 subscriber, 64 bytes", traffic(*ONE_QOS_0)),
    "qos0_1k": Scenario("the same with 1 KiB", traffic(*ONE_QOS_0, "--payload", 1024)),
    "qos0_100pairs": Scenario(
        "QoS 0, 100 publishers to 100 subscribers, a topic each: little to batch",
        traffic("--mode", "pair", "--publishers", 100, "--window", 1000),
    ),
    "qos0_fanin": Scenario(
        "QoS 0, 10 publishers to 1 subscriber of a wildcard",
        traffic("--mode", "fanin", "--publishers", 10, "--subscribers", 1, "--window", 1000),
    ),
    "qos0_fanout": Scenario(
        "QoS 0, 1 publisher to 50 subscribers, for each delivery",
        traffic("--mode", "fanout", "--publishers", 1, "--subscribers", 50, "--window", 200),
    ),
    "qos0_100ksubs": Scenario(
        "as qos0, among 100,000 other subscriptions",
        traffic(*ONE_QOS_0, "--extra-subscriptions", 100_000),
    ),
    "qos1": Scenario("QoS 1, 1 to 1, 100 inflight, nothing to keep", traffic(*ONE, *QOS_1)),
    "qos1_durable": Scenario(
        "QoS 1, 1 to 1 persistent subscriber, 100 inflight; on disk before PUBACK where the "
        "broker can",
        traffic(*ONE, *QOS_1, "--persistent", keeping=Keeping.DURABLE),
    ),
    "qos1_durable_100": Scenario(
        "the same from 100 publishers with 10 inflight each",
        traffic(
            *HUNDRED_TO_ONE,
            *("--qos", 1, "--inflight", 10, "--window", 1000, "--persistent"),
            keeping=Keeping.DURABLE,
        ),
    ),
    "qos2": Scenario(
        "QoS 2, 1 to 1, 20 inflight",
        traffic(*ONE, "--qos", 2, "--inflight", 20, "--window", 500),
    ),
    "qos2_burst": Scenario(
        "QoS 2, 1 to 1, 100 inflight",
        traffic(*ONE, "--qos", 2, "--inflight", 100, "--window", 500),
    ),
    "latency": Scenario(
        "QoS 0, 10 to 10 at 2,000 messages/s, from the moment a message was due",
        traffic(*PACED, longer=2.4),
        LATENCY,
    ),
    "latency_qos1": Scenario(
        "the same with QoS 1", traffic(*PACED, "--qos", 1, longer=2.4), LATENCY
    ),
    "connect": Scenario(
        "2,000 connections, 64 at a time", connect, ("connects_s", "connect_cpu_us")
    ),
    "retained": Scenario(
        "10,000 retained topics set with QoS 1 (`--durability memory`), replayed to a wildcard",
        retained(Keeping.MEMORY),
        ("set_s", "replay_s"),
    ),
    "retained_commit": Scenario(
        "the same, on disk before PUBACK where the broker can",
        retained(Keeping.STOCK),
        ("set_s", "replay_s"),
    ),
    "offline": Scenario(
        "50,000 QoS 1 messages for a persistent session that is away, then fetched",
        offline,
        ("enqueue_s", "queued_bytes", "drain_s"),
    ),
    "offline_kill": Scenario(
        "the same, with `kill -9` before they are fetched", offline_kill, ("restart_s",)
    ),
    "subs": Scenario(
        "100,000 subscriptions on 10 connections",
        subscriptions(100_000),
        ("subscription_bytes", "subscribe_cpu_us"),
    ),
    "subs_1m": Scenario(
        "1,000,000 subscriptions on 10 connections",
        subscriptions(1_000_000),
        ("subscription_bytes", "subscribe_cpu_us"),
        big=True,
    ),
    "idle": Scenario(
        "5,000 connections on which nothing happens",
        idle(IDLE),
        ("start_mib", "idle_mib", "idle_cpu"),
    ),
}
