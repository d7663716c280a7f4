"""Closes silent connections (MQTT 5, section 3.1.2.10)."""

from gateway.broker.client import KEEP_ALIVE_TOLERANCE, Client
from gateway.broker.deadlines import Action, Deadlines
from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import ReasonCode


class KeepAlive:
    """Closes connections after one and a half intervals of silence [MQTT-3.1.2-22]."""

    __slots__ = ("_deadlines", "_end_if_silent")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._end_if_silent: Action = self._check  # one object for all clients

    def watch(self, client: Client, instant: Instant) -> None:
        """Begin with the client's Keep Alive, if it has one."""
        if client.keep_alive:
            due = instant.monotonic + client.keep_alive * KEEP_ALIVE_TOLERANCE
            self._deadlines.set(client, due, self._end_if_silent)
        else:
            self._deadlines.discard(client)

    def _check(self, client: Client, instant: Instant) -> None:
        """Close the connection, or set the timer for the end of the present silence."""
        silence = client.keep_alive * KEEP_ALIVE_TOLERANCE
        due = client.last_received + silence
        if due <= instant.monotonic:
            client.disconnect(ReasonCode.KEEP_ALIVE_TIMEOUT, f"nothing received for {silence} s")
        else:
            self._deadlines.set(client, due, self._end_if_silent)
