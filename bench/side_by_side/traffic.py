"""Messages from publishers to subscribers that are all online."""

from typing import Any

from bench.harness.brokers import Broker, Keeping
from bench.harness.errors import MeasurementError
from bench.harness.figures import Figures, checks, latency
from bench.harness.load import Load
from bench.harness.processes import Processor, processor
from bench.harness.running import Running
from bench.harness.scenario import Measure, Settings

COPIED = ("--qos", "--extra-subscriptions", "fanout")
"""Options that the byte copier cannot serve."""


def traffic(*options: object, longer: float = 1.0, keeping: Keeping = Keeping.STOCK) -> Measure:
    """Return a measurement of what the generator's options describe, so many times as long."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        if broker.only_copies and any(option in COPIED for option in options):
            raise MeasurementError("only copies bytes")
        length = ("--messages", 0, "--max-seconds", longer * settings.seconds)
        with (
            Running(broker, keeping) as running,
            Load(running, settings.version, *options, *length) as load,
        ):
            load.ready()
            before = processor(running.process)
            load.begin()
            report = load.result()
            used = processor(running.process).since(before)
        if not report["unique"]:
            raise MeasurementError("no message arrived")
        figures = _cost(report, used) | checks(report)
        return figures | latency(report) if "--rate" in options else figures

    return measure


def _cost(report: dict[str, Any], used: Processor) -> Figures:
    """Return what the broker used, and how busy both sides were."""
    return {
        "cpu_us": used.total * 1e6 / report["unique"],
        "messages_s": report["delivered_per_s"],
        "user": used.user / max(used.total, 1e-9),
        "busy": used.total / report["seconds"],
        "generator_busy": report["generator_busy"],
    }
