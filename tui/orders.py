"""An order that was given to the gateway, followed until its effect is seen."""

from collections.abc import Callable

PATIENCE = 5.0
"""seconds in which the effect of an order must show"""


class Order:
    """One order, such as `pause plant`: `outcome` is empty while it is open.

    `state` returns what the gateway tells of its object, `wanted` whether that is the effect.
    """

    def __init__(
        self,
        what: str,
        subject: str,
        state: Callable[[], str],
        wanted: Callable[[str], bool],
    ) -> None:
        self.what = what
        self.subject = subject
        self.done = False
        self.outcome = ""
        self._state = state
        self._wanted = wanted
        self._deadline = 0.0

    def begin(self, now: float) -> None:
        """Take it that the order was sent."""
        self._deadline = now + PATIENCE

    def refused(self, reason: str) -> None:
        """Take the gateway's refusal."""
        self.outcome = (
            self.outcome or f"the gateway refused to {self.what} {self.subject}: {reason}"
        )

    def lost(self) -> None:
        """Take it that the connection ended before the effect was seen."""
        outcome = f"the connection ended before {self.subject} was seen to {self.what}"
        self.outcome = self.outcome or outcome

    def check(self, now: float) -> None:
        """Compare with what the gateway tells."""
        if self.outcome:
            return
        state = self._state()
        if state and self._wanted(state):
            self.done = True
            self.outcome = f"{self.subject} is {state}"
        elif now >= self._deadline:
            waited = f"no effect after {PATIENCE:.0f} s of {self.what}"
            self.outcome = f"{waited}: {self.subject} is {state or 'not known'}"
