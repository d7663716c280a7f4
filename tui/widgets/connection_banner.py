"""The line that says that the gateway cannot be reached, why, and what happens next."""

from textual.content import Content

from tui.link import Link, Phase
from tui.text import time_of_day
from tui.widgets.live import Live


class ConnectionBanner(Live):
    """Shown while there is no connection; hidden otherwise."""

    def __init__(self, address: str) -> None:
        super().__init__(id="connection-banner")
        self._address = address

    def show(self, link: Link, last_connected: float | None, now: float) -> None:
        """Draw the banner for this moment; `last_connected` is when the connection was last up."""
        self.display = link.phase is not Phase.CONNECTED
        if not self.display:
            return
        text = f" ✕ NO CONNECTION to {self._address}"
        if link.reason:
            text += f": {link.reason}"
        if link.phase is Phase.WAITING:
            text += f" · attempt {link.attempt} in {max(0, round(link.retry_at - now))} s (r: now)"
        else:
            text += f" · connecting, attempt {link.attempt}"
        if last_connected is not None:
            text += f" · figures of {time_of_day(last_connected)}"
        self.put(Content(text))
