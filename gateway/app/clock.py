"""Watches the wall clock for steps, and reports them to the fleet and under `$SYS`."""

from collections.abc import Sequence

from gateway.app.parts import Run, Storage
from gateway.clock.spans import STEP_MS, ClockSpans, Finding
from gateway.mqtt.message import Message
from gateway.storage.ledger.starts import Starts
from gateway.storage.state.clock_store import ClockStore
from gateway.uplink.reports.clock_reports import ClockReports, clock_text
from gateway.uplink.reports.control_messages import ControlMessages

CHECK_SECONDS = 2.0
"""Seconds between two checks of the clock without a message."""


class ClockWatch:
    """Checks the clock every CHECK_SECONDS, and when a message shows that the clock was set.

    So a step lies between two numbers: the first belongs to the span before, the second to the new
    span.
    """

    def __init__(self, run: Run, storage: Storage, starts: Starts) -> None:
        self._run = run
        self._starts = starts
        self._store = ClockStore(storage.database, storage.writer, run.counters)
        self._reports: list[ClockReports] = []
        self._offset = 0.0
        self._begun = False  # whether the present span was reported to the fleet
        self.spans: ClockSpans

    async def load(self) -> None:
        """Start the first span of this run."""
        clock = self._run.clock
        earlier = await self._store.load(clock.boot_id())
        self.spans = ClockSpans(clock, self._run.epoch, earlier)
        self._measure()
        self._save()

    def start(self) -> None:
        """Check the clock while the gateway runs."""
        self._run.every(CHECK_SECONDS, self._check_and_send)

    def report(self, uplinks: Sequence[ControlMessages]) -> None:
        """Report to the fleet by these uplinks from now on, with the current span first."""
        run = self._run
        self._store.listeners = len(uplinks)
        self._reports = [
            ClockReports(self._store, each, run.counters, run.clock) for each in uplinks
        ]
        if uplinks and not self._begun:
            self._begun = True
            self._note([self.spans.beginning()])

    def before_number(self, message: Message) -> None:
        """Check the clock if the message's times show that it was set."""
        if message.received_at is None or not message.arrived:
            return
        if abs(message.received_at - 1000 * message.arrived - self._offset) > STEP_MS:
            self.check()

    def check(self) -> None:
        """Record a step or synchronization of the clock."""
        self._measure()
        findings = self.spans.sample(self._starts.present.last)
        if findings:
            self._report_findings(findings)
        self._show()

    def _report_findings(self, findings: list[Finding]) -> None:
        self._save()
        if self._reports:
            self._note(findings)

    def _note(self, findings: Sequence[Finding]) -> None:
        """Store the findings and send them, if anybody receives them."""
        for finding in findings:
            self._store.add(clock_text(finding))
        self._store.end_turn()
        for each in self._reports:
            each.send()

    def _save(self) -> None:
        spans = self.spans
        self._store.save_spans(
            spans.uncorrected if spans.synchronized else [*spans.uncorrected, spans.span]
        )
        self._show()

    def _measure(self) -> None:
        """Note wall time and the loop's monotonic time: a suspension separates them, too."""
        clock = self._run.clock
        self._offset = clock.wall_ms() - 1000 * clock.monotonic()

    def _show(self) -> None:
        counters, spans = self._run.counters, self.spans
        uncertainty = spans.uncertainty
        counters.set("tidegate/clock/synchronized", int(spans.synchronized))
        counters.set(
            "tidegate/clock/uncertainty_ms", "unknown" if uncertainty is None else uncertainty
        )
        counters.set("tidegate/clock/offset_ms", spans.last_offset)
        counters.set("tidegate/clock/steps", spans.steps)

    def _check_and_send(self) -> None:
        self.check()
        for each in self._reports:
            each.send()
