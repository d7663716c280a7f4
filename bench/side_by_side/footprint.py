"""What connections and subscriptions cost on which no message comes."""

import time

from bench.harness.brokers import Broker
from bench.harness.errors import MeasurementError
from bench.harness.figures import Figures
from bench.harness.load import Load
from bench.harness.processes import processor, settled_memory
from bench.harness.running import Running
from bench.harness.scenario import Measure, Settings

CONNECTS = 2_000
IDLE = 5_000
AT_ONCE = 64
IDLE_SECONDS = 2.0
MIB = 2**20


def connect(broker: Broker, settings: Settings) -> Figures:
    """Connect clients, 64 at a time."""
    options = ("--mode", "idle", "--connections", CONNECTS, "--parallel", AT_ONCE)
    with Running(broker) as running, Load(running, settings.version, *options) as load:
        load.ready()
        before = processor(running.process)
        load.begin()
        report = load.result()
        used = processor(running.process).since(before)
    return {
        "connects_s": report["connects_per_s"],
        "connect_cpu_us": used.total * 1e6 / max(report["connections"], 1),
        "checked": CONNECTS,
        "refused": CONNECTS - report["connections"],
    }


def idle(count: int) -> Measure:
    """Return a measurement of connections on which nothing happens."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        options = ("--mode", "idle", "--connections", count, "--parallel", AT_ONCE)
        with Running(broker) as running:
            before = settled_memory(running.process)
            with Load(running, settings.version, *options) as load:
                load.ready()
                load.begin()
                report = load.result()
                after = settled_memory(running.process)
                used, begun = processor(running.process), time.monotonic()
                time.sleep(IDLE_SECONDS)
                used = processor(running.process).since(used)
                seconds = time.monotonic() - begun
        held = max(report["connections"], 1)
        return {
            "start_mib": before / MIB,
            "idle_mib": (after - before) / held * 10_000 / MIB,
            "idle_cpu": used.total / seconds,
            "checked": count,
            "refused": count - report["connections"],
        }

    return measure


def subscriptions(count: int) -> Measure:
    """Return a measurement of so many subscriptions, on 10 connections."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        if broker.only_copies:
            raise MeasurementError("only copies bytes")
        options = ("--mode", "idle", "--extra-subscriptions", count)
        with Running(broker) as running:
            before = settled_memory(running.process)
            used, begun = processor(running.process), time.monotonic()
            with Load(running, settings.version, *options) as load:
                load.ready()
                used = processor(running.process).since(used)
                seconds = time.monotonic() - begun
                load.begin()
                report = load.result()
                after = settled_memory(running.process)
        return {
            "subscription_bytes": (after - before) / count,
            "subscribes_s": count / seconds,
            "subscribe_cpu_us": used.total * 1e6 / count,
            "checked": count,
            "refused": report["subscribe_failed"],
        }

    return measure
