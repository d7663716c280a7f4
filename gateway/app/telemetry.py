"""The gateway's figures, alarms and log lines, published under `$SYS`."""

import logging
from functools import partial
from typing import TYPE_CHECKING

from gateway.app.delivery import show_delivery
from gateway.app.parts import Core, Run
from gateway.app.turn_lines import TurnLines, gather_lines
from gateway.broker.own_names import FIGURES_CLIENT
from gateway.mqtt.message import Message
from gateway.telemetry.line_output import LineOutput
from gateway.telemetry.logs import SysHandler
from gateway.telemetry.sys_topics import SysTopics

if TYPE_CHECKING:
    from gateway.storage.outbox.outbox import Outbox


class Telemetry:
    """Publishes figures, alarms and log lines while the gateway runs."""

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core
        counters = run.counters
        counters.set("tidegate/gateway/id", run.configuration.gateway_id)
        counters.set("tidegate/gateway/epoch", run.epoch)
        counters.set("tidegate/uplink/state", "off")
        self.sys_topics = SysTopics(
            core.broker,
            counters,
            run.clock,
            core.publish,
            run.configuration.broker.sys_interval,
        )
        self._log_handler = SysHandler(self._publish_line, core.broker.router.reaches)
        self._turn_lines: list[TurnLines] = []

    def show_age(self, outbox: "Outbox") -> None:
        """Show how long the oldest row of the outbox has been waiting."""

        def refresh() -> None:
            oldest = outbox.oldest_time
            waited = 0 if oldest is None else self._run.clock.wall_ms() - oldest
            self._run.counters.set("tidegate/outbox/oldest_seconds", max(0, waited // 1000))

        self.sys_topics.refresh.append(refresh)

    def start(self) -> None:
        """Start publishing."""
        logging.getLogger().addHandler(self._log_handler)
        self._turn_lines = gather_lines(self._core.turn)
        self.sys_topics.refresh.append(self._count_dropped)
        self.sys_topics.refresh.append(self._show_longest_turn)
        self.sys_topics.refresh.append(
            partial(show_delivery, self._core.broker, self._core.turn.flushes, self._run.counters)
        )
        self.sys_topics.refresh.append(self._show_recent_lines)
        self.sys_topics.start()

    def stop(self) -> None:
        """Stop publishing."""
        self.sys_topics.stop()
        logging.getLogger().removeHandler(self._log_handler)
        for lines in self._turn_lines:
            lines.stop()

    def _count_dropped(self) -> None:
        outputs = [each for each in logging.getLogger().handlers if isinstance(each, LineOutput)]
        self._run.counters.set("tidegate/log/dropped", sum(each.dropped for each in outputs))

    def _show_recent_lines(self) -> None:
        self._run.counters.set("tidegate/log/recent", self._log_handler.recent())

    def _show_longest_turn(self) -> None:
        now = self._run.clock.monotonic()
        milliseconds, what = self._core.turn.longest.of_last_minute(now)
        self._run.counters.set("tidegate/turns/longest_ms", milliseconds)
        self._run.counters.set("tidegate/turns/longest", what)

    def _publish_line(self, topic: str, payload: bytes) -> None:
        instant = self._core.turn.instant
        message = Message(
            topic,
            payload,
            client_id=FIGURES_CLIENT,
            received_at=instant.wall,
            arrived=instant.monotonic,
        )
        message.commit_within = None
        self._core.broker.publish(message, instant)
