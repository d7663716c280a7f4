"""The topic and properties of a message that is sent up, and the hops of one that came down."""

from collections.abc import Sequence

from gateway.mqtt.codec.fields import SINGLE_BYTES, write_byte, write_string
from gateway.storage.outbox.row import OutboxRow

HOPS = "hops"
"""The user property that lists the gateways through which a message came down, to break loops:
gateway ids separated by commas, none of them empty. It is trusted only in messages that come down a
link. In a client's message it belongs to the client and means nothing here."""

_USER_PROPERTY = write_byte(0x26)
# with the first byte of their values' lengths: none has 256 bytes
_SEQ = _USER_PROPERTY + write_string("seq") + b"\0"
_TIME = _USER_PROPERTY + write_string("time") + b"\0"
_RESENT = _USER_PROPERTY + write_string("resent") + write_string("1")
_NOT_RESENT = _USER_PROPERTY + write_string("resent") + write_string("0")

_SOMETIMES = frozenset(("resent", "was", "clientid", "username", HOPS))
"""Our properties that a message may lack."""

_NONE: frozenset[str] = frozenset()

_SINGLE_BYTES = SINGLE_BYTES  # compiled, a C name

Pairs = tuple[tuple[str, str], ...]


def write_user_properties(row: OutboxRow, identity: bool, resent: bool) -> bytes:
    """Return the user properties to send: ours first, then the publisher's unchanged.

    Ours are `seq`, `time`, `resent`, `was`, and with identity `clientid` and `username`
    (docs/understand/fleet-interface.md). One without a value is written only if the publisher
    has one of that name: the first of each name counts, and must be ours.
    """
    message = row.message
    named = _sometimes(message.user_properties) if message.user_properties else _NONE
    seq = f"{row.epoch}.{row.stream}.{row.seq}".encode()
    time = str(row.time).encode()
    fields = b"".join((_SEQ, _SINGLE_BYTES[len(seq)], seq, _TIME, _SINGLE_BYTES[len(time)], time))
    if resent:
        fields += _RESENT
    elif "resent" in named:
        fields += _NOT_RESENT
    if message.qos != 1 or message.retain or "was" in named:
        fields += _pair("was", f"{message.qos}{message.retain:d}")
    if (identity and message.client_id is not None) or "clientid" in named:
        fields += _pair("clientid", (identity and message.client_id) or "")
    if (identity and message.username is not None) or "username" in named:
        fields += _pair("username", (identity and message.username) or "")
    if HOPS in named:  # it came down no link, or it would not be sent up
        fields += _pair(HOPS, "")
    for name, value in message.user_properties:
        fields += _pair(name, value)
    return fields


def _sometimes(properties: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return which of our optional properties the publisher uses as names."""
    return _SOMETIMES.intersection([name for name, _ in properties])


def _pair(name: str, value: str) -> bytes:
    return _USER_PROPERTY + write_string(name) + write_string(value)


def has_more(row: OutboxRow) -> bool:
    """Return whether the row has one of the rare properties."""
    message = row.message
    return not (
        message.payload_format is None
        and row.message_expiry is None
        and message.content_type is None
        and message.response_topic is None
        and message.correlation_data is None
    )


def remaining_expiry(row: OutboxRow, now: int) -> int | None:
    """Return the rest of the message expiry in seconds at `now` (ms), None without expiry.

    The waiting time is subtracted [MQTT-3.3.2-6]. At least one second is left: the outbox removes
    what has expired, and some brokers treat 0 as "never".
    """
    if row.message_expiry is None:
        return None
    waited = max(0, now - row.stepped - row.time) // 1000
    return max(1, row.message_expiry - waited)


def has_hop(properties: Sequence[tuple[str, str]], gateway_id: str) -> bool:
    """Return whether a message that comes down a link came down through this gateway before."""
    return gateway_id in _hops_of(properties)


def with_hop(properties: Pairs, gateway_id: str) -> Pairs:
    """Return the properties, preceded by one with this gateway as the last hop.

    The received ones are unaltered [MQTT-3.3.2-17]: the first of the name counts.
    """
    return ((HOPS, ",".join([*_hops_of(properties), gateway_id])), *properties)


def _hops_of(properties: Sequence[tuple[str, str]]) -> list[str]:
    """Return the gateway ids of the first property of the name: any other is the publisher's."""
    value = next((value for name, value in properties if name == HOPS), "")
    return [each for each in value.split(",") if each]
