"""Whether another client takes over the connection to the fleet's broker, and the alarm for it."""

from collections.abc import Callable

from gateway.uplink.errors import ClosedError, LinkError, TakenOverError

CLOSED_WITHIN = 60.0
"""Seconds within which a second end without a reason is taken for a take-over.

Some brokers of MQTT 5, Mosquitto 2.0 among them, close the older connection and say nothing, and so
do all of MQTT 3.1.1; two clients of one identifier then take turns, some seconds each.
"""

ALONE_SECONDS = 60.0
"""How long a link must be up after a take-over until the alarm ends."""

ALARM = "uplink_taken_over"


class TakeOvers:
    """Looks at how connections end; `alarm` gets the name and text, "" when it is over."""

    def __init__(self, client_id: str, uplink: str = "") -> None:
        self._alarm_name = f"{ALARM}_{uplink}" if uplink else ALARM
        self.alarm: Callable[[str, str], None] = lambda _name, _text: None
        self._client_id = client_id
        self._closed_at: float | None = None
        self._raised = False

    def ended(self, error: LinkError, now: float) -> LinkError:
        """Return what a connection ended with, or the take-over that it probably was."""
        if isinstance(error, ClosedError):
            before, self._closed_at = self._closed_at, now
            if before is not None and now - before <= CLOSED_WITHIN:
                error = TakenOverError(self._client_id, sure=False)
        if isinstance(error, TakenOverError) and not self._raised:
            self._raised = True
            self.alarm(self._alarm_name, str(error))
        return error

    def look(self, seconds_up: float) -> None:
        """End the alarm once a link has been up for long enough."""
        if self._raised and seconds_up >= ALONE_SECONDS:
            self._raised = False
            self.alarm(self._alarm_name, "")
