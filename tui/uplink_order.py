"""An order to pause or resume an uplink, followed until its effect is seen."""

PATIENCE = 5.0
"""seconds in which the effect of an order must show"""
PAUSE = "pause"
RESUME = "resume"
PAUSED = "paused"


def word_for(state: str) -> str:
    """Return the order that has an effect on an uplink in this state."""
    return RESUME if state == PAUSED else PAUSE


class UplinkOrder:
    """One order: `pause` or `resume`, for all uplinks or for the one of a `name`.

    `outcome` is empty while that is open, and then one sentence; `done` tells whether it worked.
    """

    def __init__(self, word: str, given: float, name: str = "") -> None:
        self.word = word
        self.name = name
        self.uplink = f"uplink {name}" if name else "the uplink"
        self.done = False
        self.outcome = ""
        self._deadline = given + PATIENCE

    def refused(self, reason: str) -> None:
        """Take the gateway's refusal."""
        if not self.outcome:
            self.outcome = f"the gateway refused to {self.word} {self.uplink}: {reason}"

    def lost(self) -> None:
        """Take it that the connection ended before the effect was seen."""
        if not self.outcome:
            self.outcome = f"the connection ended before {self.uplink} was seen to {self.word}"

    def look(self, uplink_state: str, now: float) -> None:
        """Compare with the state that the gateway tells (`$SYS/…/uplink/state`)."""
        if self.outcome:
            return
        if uplink_state and (uplink_state == PAUSED) == (self.word == PAUSE):
            self.done = True
            self.outcome = f"{self.uplink} is {uplink_state}"
        elif now >= self._deadline:
            told = uplink_state or "not known"
            waited = f"no effect after {PATIENCE:.0f} s of {self.word}"
            self.outcome = f"{waited}: {self.uplink} is {told}"
