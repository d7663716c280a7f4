"""The gateway's figures, alarms and log lines, published under `$SYS`."""

import asyncio
import logging
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from gateway.app.parts import Core, Run
from gateway.broker.broker import Broker
from gateway.broker.instant import Instant
from gateway.broker.own_names import FIGURES_CLIENT
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.server.flush_wheel import FlushWheel
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_selector import SocketSelector
from gateway.server.turn import Turn
from gateway.telemetry.figure import begin_at_zero
from gateway.telemetry.line_output import HeldLines, LineOutput
from gateway.telemetry.logs import SysHandler
from gateway.telemetry.own_metrics import BROKER_FIGURES, OWN_FIGURES
from gateway.telemetry.sys_topics import SysTopics

if TYPE_CHECKING:
    from gateway.storage.outbox.outbox import Outbox


def show_delivery(broker: Broker, flushes: FlushWheel, counters: Counters) -> None:
    """Publish under `$SYS` what was written to each class, and how long messages were held."""
    counters.set("tidegate/delivery/held_sessions", flushes.sessions)
    counters.set("tidegate/delivery/not_held", flushes.refused)
    present: Counter[str] = Counter()
    for client in broker.connections:
        if client.session is not None:
            present[client.session.delivery.name] += client.connection.packets_sent
    for each in broker.delivery_classes:
        sent, writes = each.packets + present[each.name], max(1, each.flushes)
        packets, size = sent / writes, each.bytes / writes
        counters.set(f"tidegate/delivery/{each.name}/flushes", each.flushes)
        counters.set(f"tidegate/delivery/{each.name}/packets", sent)
        counters.set(f"tidegate/delivery/{each.name}/bytes", each.bytes)
        counters.set(f"tidegate/delivery/{each.name}/packets_per_flush", round(packets, 2))
        counters.set(f"tidegate/delivery/{each.name}/bytes_per_flush", round(size, 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p50", round(1000 * each.delay(50), 1))
        counters.set(f"tidegate/delivery/{each.name}/delay_ms_p99", round(1000 * each.delay(99), 1))


class TurnLines:
    """Buffers log lines until the turn's end, which writes them like a connection's output.

    Lines at any other time, or from another thread, are written at once.
    """

    active = True  # nobody waits for lines, but they are written in their own turn

    def __init__(self, turn: Turn, sockets: SocketSelector, lines: HeldLines) -> None:
        self._turn = turn
        self._sockets = sockets
        self._lines = lines
        self._thread = threading.get_ident()  # the loop's
        lines.holds_back = self._holds_back

    def flush(self, _committed: int, _now: Instant) -> int:
        """Write the buffered lines; return 0, as they wait for no batch."""
        self._lines.flush()
        return 0

    def stop(self) -> None:
        """Stop buffering."""
        self._lines.holds_back = lambda: False
        self._lines.flush()

    def _holds_back(self) -> bool:
        if threading.get_ident() != self._thread:
            return False
        if self._turn.broker.connection_lines.waiting:  # they precede the event of this line
            self._turn.broker.connection_lines.write()
        if not (self._sockets.serving or self._turn.scheduled):
            return False
        self._turn.touch(self)
        return True


def buffer_lines(turn: Turn) -> list[TurnLines]:
    """Buffer the log lines of each turn, if the loop serves sockets itself."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, GatewayLoop):
        return []
    outputs = [each for each in logging.getLogger().handlers if isinstance(each, LineOutput)]
    return [TurnLines(turn, loop.sockets, each.stream) for each in outputs]


class Telemetry:
    """Publishes figures, alarms and log lines while the gateway runs."""

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core
        counters = run.counters
        counters.set("tidegate/gateway/id", run.configuration.gateway_id)
        counters.set("tidegate/gateway/epoch", run.epoch)
        counters.set("tidegate/uplink/state", "off")
        begin_at_zero(counters, (*BROKER_FIGURES, *OWN_FIGURES))
        self.sys_topics = SysTopics(
            core.broker,
            counters,
            run.clock,
            self._publish,
            run.configuration.broker.sys_interval,
        )
        self._log_handler = SysHandler(self._publish_line, core.broker.router.reaches)
        self._turn_lines: list[TurnLines] = []

    def show_age(self, outbox: "Outbox") -> None:
        """Publish how long the oldest row of the outbox has been waiting."""

        def refresh() -> None:
            oldest = outbox.oldest.time
            waited = 0 if oldest is None else self._run.clock.wall_ms() - oldest
            self._run.counters.set("tidegate/outbox/oldest_seconds", max(0, waited // 1000))

        self.sys_topics.refresh.append(refresh)

    def start(self) -> None:
        """Start publishing."""
        logging.getLogger().addHandler(self._log_handler)
        self._turn_lines = buffer_lines(self._core.turn)
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
        self._publish(message)

    def _publish(self, message: Message) -> None:
        """Publish a message of the gateway itself, and count its deliveries."""
        traffic, counters = self._core.broker.traffic, self._run.counters
        messages, size = traffic.messages_sent, traffic.bytes_sent
        self._core.publish(message)
        if traffic.messages_sent > messages:
            counters.add("tidegate/sys/messages_sent", traffic.messages_sent - messages)
            counters.add("tidegate/sys/bytes_sent", traffic.bytes_sent - size)
