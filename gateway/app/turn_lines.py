"""Writes the log lines of a turn together at its end."""

import asyncio
import logging
import threading

from gateway.broker.instant import Instant
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_selector import SocketSelector
from gateway.server.turn import Turn
from gateway.telemetry.line_output import HeldLines, LineOutput


class TurnLines:
    """What is held back of the log, which the turn's end writes as it does a connection's output.

    Lines that come at any other time, or from another thread, are written at once.
    """

    heard = True  # nobody waits for lines, but they are written in the turn that made them

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
        if self._turn.broker.connection_lines.waiting:  # they come before what this line tells of
            self._turn.broker.connection_lines.write()
        if not (self._sockets.serving or self._turn.scheduled):
            return False
        self._turn.touch(self)
        return True


def gather_lines(turn: Turn) -> list[TurnLines]:
    """Buffer the log lines of each turn, if the loop serves sockets itself."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, GatewayLoop):
        return []
    outputs = [each for each in logging.getLogger().handlers if isinstance(each, LineOutput)]
    return [TurnLines(turn, loop.sockets, each.stream) for each in outputs]
