"""The gateway's figures, alarms and log lines, published under `$SYS`."""

import logging
from functools import partial
from typing import TYPE_CHECKING

from gateway.app.delivery import show_delivery
from gateway.app.turn_lines import TurnLines, gather_lines
from gateway.broker.own_names import FIGURES_CLIENT
from gateway.mqtt.message import Message
from gateway.telemetry.line_output import LineOutput
from gateway.telemetry.logs import SysHandler
from gateway.telemetry.sys_topics import SysTopics

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway
    from gateway.storage.outbox.outbox import Outbox


class Telemetry:
    """Publishes figures, alarms and log lines while the gateway runs."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        counters = gateway.counters
        counters.set("tidegate/gateway/id", gateway.configuration.gateway_id)
        counters.set("tidegate/gateway/epoch", gateway.epoch)
        counters.set("tidegate/uplink/state", "off")
        self.sys_topics = SysTopics(
            gateway.broker,
            counters,
            gateway.clock,
            gateway.publish,
            gateway.configuration.broker.sys_interval,
        )
        self.alarm = self.sys_topics.alarm
        self.say = self.sys_topics.say
        self._log_handler = SysHandler(self._publish_line, gateway.broker.router.reaches)
        self._turn_lines: list[TurnLines] = []

    def show_age(self, outbox: "Outbox") -> None:
        """Show how long the oldest row of the outbox has been waiting."""

        def refresh() -> None:
            oldest = outbox.oldest_time
            waited = 0 if oldest is None else self._gateway.clock.wall_ms() - oldest
            self._gateway.counters.set("tidegate/outbox/oldest_seconds", max(0, waited // 1000))

        self.sys_topics.refresh.append(refresh)

    def start(self) -> None:
        """Start publishing."""
        logging.getLogger().addHandler(self._log_handler)
        self._turn_lines = gather_lines(self._gateway.turn)
        self.sys_topics.refresh.append(self._count_dropped)
        self.sys_topics.refresh.append(self._show_longest_turn)
        self.sys_topics.refresh.append(partial(show_delivery, self._gateway))
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
        self._gateway.counters.set("tidegate/log/dropped", sum(each.dropped for each in outputs))

    def _show_recent_lines(self) -> None:
        self._gateway.counters.set("tidegate/log/recent", self._log_handler.recent())

    def _show_longest_turn(self) -> None:
        gateway = self._gateway
        milliseconds, what = gateway.turn.longest.of_last_minute(gateway.clock.monotonic())
        gateway.counters.set("tidegate/turns/longest_ms", milliseconds)
        gateway.counters.set("tidegate/turns/longest", what)

    def _publish_line(self, topic: str, payload: bytes) -> None:
        instant = self._gateway.turn.instant
        message = Message(
            topic,
            payload,
            client_id=FIGURES_CLIENT,
            received_at=instant.wall,
            arrived=instant.monotonic,
        )
        message.commit_within = None
        self._gateway.broker.publish(message, instant)
