"""Messages that wait in the broker: retained ones, and those for a session that is away."""

from typing import Any

from bench.harness.brokers import Broker, Keeping
from bench.harness.errors import MeasurementError
from bench.harness.figures import Figures
from bench.harness.load import Load
from bench.harness.processes import processor, settled_memory
from bench.harness.running import Running
from bench.harness.scenario import Measure, Settings

RETAINED = 10_000
QUEUED = 50_000


def retained(keeping: Keeping) -> Measure:
    """Return a measurement of setting retained messages and of replaying them."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        _need_broker(broker)
        options = ("--mode", "retained", "--messages", RETAINED, "--subscriber-qos", 0)
        with (
            Running(broker, keeping) as running,
            Load(running, settings.version, *options, "--inflight", 100) as load,
        ):
            load.ready()
            begun = processor(running.process).total
            load.begin()
            load.ready()
            were_set = processor(running.process).total
            load.begin()
            report = load.result()
            end = processor(running.process).total
        return {
            "set_s": report["set_per_s"],
            "set_cpu_us": (were_set - begun) * 1e6 / RETAINED,
            "replay_s": report["replay_per_s"],
            "replay_cpu_us": (end - were_set) * 1e6 / max(report["replayed"], 1),
            "checked": RETAINED,
            "lost": report["lost"],
            "duplicates": report["duplicates"],
        }

    return measure


def offline(broker: Broker, settings: Settings) -> Figures:
    """Queue messages for a session that is away, then let it fetch them."""
    _need_broker(broker)
    with Running(broker, Keeping.DURABLE) as running:
        before = settled_memory(running.process)
        used = processor(running.process).total
        queued = _enqueue(running, settings)
        used = processor(running.process).total - used
        waiting = settled_memory(running.process) - before
        drained = _drain(running, settings)
    return _checked(queued, drained) | {
        "enqueue_s": queued["enqueue_per_s"],
        "enqueue_cpu_us": used * 1e6 / max(queued["acked"], 1),
        "queued_bytes": waiting / QUEUED,
        "drain_s": drained["drain_per_s"],
    }


def offline_kill(broker: Broker, settings: Settings) -> Figures:
    """The same, with `kill -9` and a restart before the messages are fetched."""
    _need_broker(broker)
    with Running(broker, Keeping.DURABLE) as running:
        queued = _enqueue(running, settings)
        running.kill()
        running.start()
        restart = running.start_seconds
        drained = _drain(running, settings)
    return _checked(queued, drained) | {"restart_s": restart}


def _need_broker(broker: Broker) -> None:
    if broker.only_copies:
        raise MeasurementError("only copies bytes")


def _enqueue(running: Running, settings: Settings) -> dict[str, Any]:
    options = ("--mode", "enqueue", "--qos", 1, "--messages", QUEUED, "--max-seconds", 30)
    with Load(running, settings.version, *options) as load:
        load.ready()
        load.begin()
        return load.result()


def _drain(running: Running, settings: Settings) -> dict[str, Any]:
    options = ("--mode", "drain", "--qos", 1, "--messages", QUEUED)
    with Load(running, settings.version, *options, "--drain-timeout", 5) as load:
        load.ready()
        load.begin()
        return load.result()


def _checked(queued: dict[str, Any], drained: dict[str, Any]) -> Figures:
    """Return what became of the messages that were acknowledged."""
    return {
        "checked": queued["acked"],
        "lost": queued["acked"] - drained["received"],
        "duplicates": drained["duplicates"],
    }
