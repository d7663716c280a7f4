"""Errors of a destination that cannot accept messages now."""

from gateway.errors import TidegateError
from gateway.mqtt.reason_codes import ReasonCode


class LinkError(TidegateError):
    """The link is down, or did not come up; the text is what `uplink/error` shows.

    `lasting` says that only a change at the other end helps, so trying again soon is idle.
    """

    def __init__(self, text: str, *, lasting: bool = False) -> None:
        super().__init__(text)
        self.lasting = lasting


class ClosedError(LinkError):
    """The fleet's broker closed a connection that was in use, and gave no reason."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            "the connection to the fleet's broker is lost: the server closed it without a reason;"
            f" it restarts, or another client has the client identifier {client_id!r}"
        )


class FetchAgainError(LinkError):
    """What came down and found no room is fetched from the fleet's broker, by a new connection."""

    def __init__(self) -> None:
        super().__init__("connecting anew for what came down and found no room")


class TooFastError(LinkError):
    """The fleet's broker ended the connection because it is sent too much (0x96, 0x97)."""


class TakenOverError(LinkError):
    """Another client has connected to the fleet's broker with this gateway's client identifier.

    Without `sure` nobody said so: the broker closed the connection several times.
    """

    def __init__(self, client_id: str, *, sure: bool = True) -> None:
        who = "another client" if sure else "it seems that another client"
        super().__init__(
            f"{who} took over the connection to the fleet's broker: it connected with this"
            f" gateway's client identifier {client_id!r}; each gateway needs an id of its own"
        )


class RetainError(LinkError):
    """The fleet's broker takes no retained will."""


class OldBrokerError(LinkError):
    """The fleet's broker does not speak the version of MQTT that it was asked for."""

    def __init__(self) -> None:
        text = (
            "the fleet's broker does not speak MQTT 5; "
            'with MQTT 3.1.1 the uplink needs [uplink] batch = "zlib", or plain = true'
        )
        super().__init__(text, lasting=True)


def in_words(reason: ReasonCode) -> str:
    """Return the name and number of a reason code of the fleet's broker."""
    return f"{reason.name.replace('_', ' ').capitalize()} (0x{reason.value:02X})"
