"""The alarm for another client that takes over the connection to the fleet's broker."""

from collections.abc import Callable

from gateway.uplink.errors import LinkError, TakenOverError

ALONE_SECONDS = 60.0
"""How long a link must be up after a take-over until the alarm ends."""

ALARM = "uplink_taken_over"


class TakeOvers:
    """Follows how connections end; `alarm` gets the name and text, "" when it is over.

    Only what the fleet's broker says is a take-over (0x8E): a connection that ends without a word
    may as well have ended with the broker.
    """

    def __init__(self, uplink: str = "") -> None:
        self._alarm_name = f"{ALARM}_{uplink}" if uplink else ALARM
        self.alarm: Callable[[str, str], None] = lambda _name, _text: None
        self._raised = False

    def ended(self, error: LinkError) -> None:
        """Raise the alarm if a connection ended by a take-over."""
        if isinstance(error, TakenOverError) and not self._raised:
            self._raised = True
            self.alarm(self._alarm_name, str(error))

    def check(self, seconds_up: float) -> None:
        """End the alarm once a link has been up for long enough."""
        if self._raised and seconds_up >= ALONE_SECONDS:
            self._raised = False
            self.alarm(self._alarm_name, "")
