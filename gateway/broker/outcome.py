"""How the messages of a publication ended for their publisher."""

from gateway.mqtt.reason_codes import ReasonCode


class Outcome:
    """How many messages were taken, with which reason code.

    `refusal` is the code of the message behind them, None if that was not looked at.
    """

    __slots__ = ("code", "count", "refusal")

    def __init__(self, count: int, code: ReasonCode, refusal: ReasonCode | None = None) -> None:
        self.count = count
        self.code = code
        self.refusal = refusal


def refused(code: ReasonCode) -> Outcome:
    """Return the outcome where the first message is refused, and none behind it looked at."""
    return Outcome(0, ReasonCode.SUCCESS, code)
