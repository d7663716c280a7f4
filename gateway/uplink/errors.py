"""Errors of a destination that cannot accept messages now."""

from enum import StrEnum

from gateway.errors import TidegateError
from gateway.mqtt.reason_codes import ReasonCode


class End(StrEnum):
    """How a connection ended or failed, in the words of `uplink/last_end`."""

    CLOSED = "closed"  # the fleet's broker closed it without a reason
    RESET = "reset"  # the same by TCP reset
    REFUSED = "refused"  # by DISCONNECT or CONNACK with any other reason code
    TOO_LARGE = "too_large"  # 0x95
    TOO_FAST = "too_fast"  # 0x96, 0x97
    STOPPED = "stopped"  # the fleet's broker shuts down, is busy, or has moved
    TAKEN_OVER = "taken_over"  # 0x8E
    MALFORMED = "malformed"  # it sent invalid MQTT
    UNANSWERED = "unanswered"  # a PUBACK was not received in time
    LOST = "lost"  # the network failed, or PINGREQ was not answered
    RENEWED = "renewed"  # by the gateway, to fetch what came down
    FAILED = "failed"  # no connection was established


class LinkError(TidegateError):
    """The link failed; the text is what `uplink/error` shows.

    `lasting` means that only a change at the other end helps, so frequent attempts are useless, and
    `soon` that the next attempt may be as early as the first.
    """

    def __init__(self, text: str, end: End = End.FAILED, *, lasting: bool = False) -> None:
        super().__init__(text)
        self.end = end
        self.lasting = lasting
        self.soon = False


class FetchAgainError(LinkError):
    """A new connection fetches refused messages from the fleet's broker."""

    def __init__(self) -> None:
        super().__init__("reconnecting for messages that were refused here", End.RENEWED)


class TakenOverError(LinkError):
    """Another client connected with the same client identifier.

    `epoch` is that of another gateway, if its status shows this and not the fleet's broker.
    """

    def __init__(self, client_id: str, epoch: str = "") -> None:
        who = f"another gateway (epoch {epoch})" if epoch else "another client"
        super().__init__(
            f"{who} took over the connection to the fleet's broker: it connected with this"
            f" gateway's client identifier {client_id!r}; each gateway needs an id of its own",
            End.TAKEN_OVER,
        )


class RetainError(LinkError):
    """The fleet's broker accepts no retained will."""

    def __init__(self, text: str) -> None:
        super().__init__(text, End.REFUSED)


class OldBrokerError(LinkError):
    """The fleet's broker does not support the requested version of MQTT."""

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
    """Return how a connection ended that the fleet's broker ended with this reason code."""
    return _ENDS.get(code, End.REFUSED)


CERTIFICATE_FAULTS = {
    9: "its certificate is not valid yet, by the clock here",
    10: "its certificate has expired, by the clock here",
    18: "its certificate is signed by itself, and ca_file does not have it",
    19: "an authority that nobody here trusts signed its certificate: ca_file has another",
    20: "nobody here trusts the authority of its certificate: ca_file lacks it",
    21: "nobody here trusts the authority of its certificate, and it sends no chain to one",
    23: "its certificate was revoked",
    62: "its certificate is for another host",
    64: "its certificate is for another address",
}
"""Faults of the server's certificate, by the codes of OpenSSL (x509_vfy.h)."""

TLS_FAULTS = {
    "WRONG_VERSION_NUMBER": "what answers speaks no TLS: a port for mqtt:// or ws://?",
    "UNSUPPORTED_PROTOCOL": "it has no version of TLS that is used here, 1.2 or 1.3",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it supports no version of TLS that is used here, 1.2 or 1.3",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a certificate: set tls_certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority of tls_certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept tls_certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "tls_certificate has expired, it says",
    "TLSV1_ALERT_NO_APPLICATION_PROTOCOL": "it speaks no protocol that alpn names",
}
"""What else ends a handshake, by OpenSSL's reason."""


def problem_of(error: Exception) -> str:
    """Return why there is no connection, the faults of TLS by what has to be mended."""
    fault = _tls_fault(error) if type(error).__module__ == "ssl" else None  # else it is not loaded
    return fault or str(error) or type(error).__name__


def _tls_fault(error: Exception) -> str | None:
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        fault = CERTIFICATE_FAULTS.get(error.verify_code)
        return None if fault is None else f"{fault} ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        # Python has no name for some reasons, and OpenSSL's words for each
        words = str(error).upper().replace(" ", "_")
        name = next((each for each in TLS_FAULTS if each in words), None)
        return None if name is None else f"{TLS_FAULTS[name]} ({error.reason or name})"
    return None
