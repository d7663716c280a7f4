"""Errors of a destination that cannot accept messages now."""

from enum import StrEnum

from gateway.errors import TidegateError
from gateway.mqtt.reason_codes import ReasonCode


class End(StrEnum):
    """How a connection ended or why there was none, in the words of `uplink/last_end`."""

    CLOSED = "closed"  # the fleet's broker closed it without a word
    RESET = "reset"  # the same by TCP reset
    REFUSED = "refused"  # by DISCONNECT or CONNACK with a reason code that is none of the others
    TOO_LARGE = "too_large"  # 0x95
    TOO_FAST = "too_fast"  # 0x96, 0x97
    STOPPED = "stopped"  # the fleet's broker shuts down, is busy, or has moved
    TAKEN_OVER = "taken_over"  # 0x8E
    MALFORMED = "malformed"  # it sent what is no MQTT
    UNANSWERED = "unanswered"  # a PUBACK did not come in time
    LOST = "lost"  # the network, or no answer to PINGREQ
    RENEWED = "renewed"  # by the gateway, to fetch what came down
    FAILED = "failed"  # there was no connection


class LinkError(TidegateError):
    """The link is down, or did not come up; the text is what `uplink/error` shows.

    `lasting` says that only a change at the other end helps, so trying again soon is idle, and
    `soon` that the next attempt may be as early as the first.
    """

    def __init__(self, text: str, end: End = End.FAILED, *, lasting: bool = False) -> None:
        super().__init__(text)
        self.end = end
        self.lasting = lasting
        self.soon = False


class FetchAgainError(LinkError):
    """What came down and was refused is fetched from the fleet's broker, by a new connection."""

    def __init__(self) -> None:
        super().__init__("connecting anew for what came down and was refused", End.RENEWED)


class TakenOverError(LinkError):
    """The fleet's broker said that another client has connected with the client identifier."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            "another client took over the connection to the fleet's broker: it connected with this"
            f" gateway's client identifier {client_id!r}; each gateway needs an id of its own",
            End.TAKEN_OVER,
        )


class RetainError(LinkError):
    """The fleet's broker takes no retained will."""

    def __init__(self, text: str) -> None:
        super().__init__(text, End.REFUSED)


class OldBrokerError(LinkError):
    """The fleet's broker does not speak the version of MQTT that it was asked for."""

    def __init__(self) -> None:
        super().__init__("the fleet's broker does not speak this MQTT", End.REFUSED, lasting=True)


def in_words(reason: ReasonCode) -> str:
    """Return the name and number of a reason code of the fleet's broker."""
    return f"{reason.name.replace('_', ' ').capitalize()} (0x{reason.value:02X})"


_STOPPED = {
    ReasonCode.SERVER_UNAVAILABLE,
    ReasonCode.SERVER_BUSY,
    ReasonCode.SERVER_SHUTTING_DOWN,
    ReasonCode.KEEP_ALIVE_TIMEOUT,
    ReasonCode.USE_ANOTHER_SERVER,
    ReasonCode.SERVER_MOVED,
    ReasonCode.CONNECTION_RATE_EXCEEDED,
    ReasonCode.MAXIMUM_CONNECT_TIME,
}
_ENDS = {
    ReasonCode.PACKET_TOO_LARGE: End.TOO_LARGE,
    ReasonCode.MESSAGE_RATE_TOO_HIGH: End.TOO_FAST,
    ReasonCode.QUOTA_EXCEEDED: End.TOO_FAST,
    ReasonCode.SESSION_TAKEN_OVER: End.TAKEN_OVER,
    **dict.fromkeys(_STOPPED, End.STOPPED),
}


def end_of(code: ReasonCode) -> End:
    """Return how a connection ended that this reason code of the fleet's broker ended."""
    return _ENDS.get(code, End.REFUSED)
