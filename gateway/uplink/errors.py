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


class TakenOverError(LinkError):
    """Another client has connected to the fleet's broker with this gateway's client identifier."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            "another client took over the connection: it connected to the fleet's broker with"
            f" this gateway's client identifier {client_id!r}; each gateway needs an id of its own"
        )


class OldBrokerError(LinkError):
    """The fleet's broker does not speak the version of MQTT that it was asked for."""

    def __init__(self) -> None:
        text = (
            "the fleet's broker does not speak MQTT 5; "
            'with MQTT 3.1.1 the uplink needs [uplink] batch = "zlib"'
        )
        super().__init__(text, lasting=True)


def in_words(reason: ReasonCode) -> str:
    """Return the name and number of a reason code of the fleet's broker."""
    return f"{reason.name.replace('_', ' ').capitalize()} (0x{reason.value:02X})"
