"""Takes the measurements: starts a broker, lets a plan's traffic run, asks what it used."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.harness.brokers import Broker, Keeping, configured
from bench.harness.errors import MeasurementError
from bench.harness.figures import CHECKS, Figures, checks, latency
from bench.harness.load import Load
from bench.harness.processes import processor_seconds, written
from bench.harness.running import Running
from bench.harness.scenario import Measure, Settings
from bench.real_traffic.landing import records_in
from bench.real_traffic.plan import Plan
from bench.real_traffic.subscribers import filtered

UNITS: dict[str, Callable[[dict[str, Any]], float]] = {
    "delivered_us": lambda report: report["unique"] - report["owed"],
    "published_us": lambda report: report["sent"],
    "cycle_us": lambda report: report["cycles"],
    "mb_us": lambda report: report["bytes"] / 1e6,
}
"""How many of the unit that a figure is for were in the traffic."""

PATIENCE_SECONDS = 10.0
"""Without any message, after which what is missing is lost."""

UPLINK = """\
[[listener]]
host = "127.0.0.1"

[uplink]

[[uplink.rule]]
topic = "#"
"""


@dataclass(frozen=True)
class Traffic:
    """A plan, how the generator follows it, and what the cost is divided by."""

    plan: Callable[[], Plan]
    options: tuple[object, ...] = ()
    per: str = "delivered_us"
    longer: float = 1.0
    keeping: Keeping = Keeping.UNBOUNDED
    """Of its thousand a queue of Mosquitto 2.0.11 seems never to count one back."""

    landing: bool = False
    """Whether the broker is to write each message into the folder `landing`, too."""

    def __call__(self, broker: Broker, settings: Settings) -> Figures:
        """Measure."""
        with Running(broker, self.keeping) as running, tempfile.TemporaryDirectory() as folder:
            return self._measure(running, settings, Path(folder) / "plan")

    def _measure(self, running: Running, settings: Settings, file: Path) -> Figures:
        plan = self.plan()
        file.write_text(plan.write(), encoding="utf-8")
        away = any("away" in subscriber.words for subscriber in plan.subscribers)
        with Load(running, settings.version, *self._all_options(settings, file)) as load:
            load.ready()
            begun = processor_seconds(running.process)
            load.begin()
            if away:
                load.ready()
                between = processor_seconds(running.process)
                load.begin()
            report = load.result()
            if self.landing:
                landed = records_in(running.folder / "landing", report["sent"])
            end = processor_seconds(running.process)
        used = (between if away else end) - begun
        figures = self._figures(report, used)
        if away:
            figures["drained_us"] = (end - between) * 1e6 / report["owed"]
        if self.landing:
            figures["written"] = written(running.process) / report["sent"]
            figures["checked"] += report["sent"]
            figures["lost"] += report["sent"] - landed
        return figures

    def _all_options(self, settings: Settings, file: Path) -> tuple[object, ...]:
        seconds = self.longer * settings.seconds
        end = ("--messages", 0, "--max-seconds", seconds, "--drain-timeout", PATIENCE_SECONDS)
        return ("--mode", "plan", "--plan", file, *end, *self.options)

    def _figures(self, report: dict[str, Any], used: float) -> Figures:
        units = UNITS[self.per](report)
        if not units:
            raise MeasurementError("no message arrived")
        figures = {
            self.per: used * 1e6 / units,
            "messages_s": report["delivered_per_s"],
            "busy": used / report["seconds"],
            "generator_busy": report["generator_busy"],
            "refused": report["reason_errors"] + report["disconnects"],
            **checks(report),
        }
        return figures | latency(report) if "--rate" in self.options else figures


ACL = """\
topic read $SYS/#
topic deny never/a/#
topic readwrite never/b/#
topic readwrite #
user anna
topic readwrite #
pattern deny never/c/#
pattern readwrite never/%c/#
"""
"""Rules under which no two clients have the same rights, and each may do all that plans want."""

RULES = """\
[[listener]]
host = "127.0.0.1"
acl_file = "{file}"
"""


def filters(traffic: Traffic, counts: Sequence[int]) -> Measure:
    """Return a measurement of the traffic with so many subscriptions with a `$where` beside it."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        figures = traffic(broker, settings)
        for count in counts:
            with_filters = _beside_filters(traffic, count)(broker, settings)
            figures[f"where_{count}"] = with_filters[traffic.per] / figures[traffic.per]
            _add_checks(figures, with_filters)
        return figures

    return measure


def _beside_filters(traffic: Traffic, count: int) -> Traffic:
    plan = traffic.plan()
    plan = replace(plan, subscribers=[*plan.subscribers, *filtered(count)])
    return replace(traffic, plan=lambda: plan)


def uplink(traffic: Traffic) -> Measure:
    """Return a measurement of the traffic with an uplink rule for all of it, to a directory."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        without = traffic(broker, settings)
        figures = replace(traffic, landing=True)(configured(broker, UPLINK), settings)
        figures["uplink_times"] = figures[traffic.per] / without[traffic.per]
        _add_checks(figures, without)
        return figures

    return measure


def access(traffic: Traffic) -> Measure:
    """Return a measurement of the traffic under access rules, which allow it."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        without = traffic(broker, settings)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".acl") as file:
            file.write(ACL)
            file.flush()
            figures = traffic(configured(broker, RULES.format(file=file.name)), settings)
        figures["access_times"] = figures[traffic.per] / without[traffic.per]
        _add_checks(figures, without)
        return figures

    return measure


def _add_checks(figures: Figures, others: Figures) -> None:
    for name in CHECKS:
        figures[name] += others[name]
