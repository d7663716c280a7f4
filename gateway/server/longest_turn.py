"""The longest turn of the last minute, and whom it served."""

from gateway.broker.client import Client
from gateway.mqtt.packets import PacketType

HALF = 30.0
"""Seconds of a half of the minute: what was longest in the one before still counts."""


class LongestTurn:
    """Keeps the longest turn of this half of a minute and of the one before."""

    __slots__ = ("_before", "_until", "_what", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0  # of this half: only a longer one is worth telling
        self._what = ""
        self._before = 0.0, ""
        self._until = 0.0  # the monotonic second at which this half ends

    def note(self, seconds: float, client: Client | None, first_byte: int) -> None:
        """Note a turn that served this client last, None if it served none; its packet's type."""
        self.seconds = seconds
        self._what = "timers and the gateway's own" if client is None else _name(client, first_byte)

    def of_last_minute(self, now: float) -> tuple[float, str]:
        """Return the milliseconds of the longest turn, and what it served last."""
        if now >= self._until:
            halves = (now - self._until) // HALF
            self._before = (self.seconds, self._what) if halves < 1 else (0.0, "")
            self.seconds, self._what = 0.0, ""
            self._until = now + HALF
        seconds, what = max(self._before, (self.seconds, self._what))
        return round(seconds * 1000, 1), what


def _name(client: Client, first_byte: int) -> str:
    """Return whom a turn served, and with what."""
    session = client.session
    who = client.peer if session is None else f"client {session.client_id[:80]!r}"
    kind = first_byte >> 4
    return f"{who}, {PacketType(kind).name}" if kind else who
