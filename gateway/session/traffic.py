"""How much was published, counted where each message passes."""

TURN_BYTES = 16 * 1024 * 1024
"""Bytes of payload given to connections before they are written: 256 KiB that were read at once
would be 256 MiB for a thousand receivers."""


class Traffic:
    """PUBLISH packets and the bytes of their payloads since the start, of all clients.

    `network_received` and `network_sent` are all bytes, as they came from sockets and went to them.
    """

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "full_at",
        "messages_received",
        "messages_sent",
        "network_received",
        "network_sent",
        "turns",
    )

    def __init__(self) -> None:
        self.messages_received = 0
        self.bytes_received = 0
        self.messages_sent = 0
        self.bytes_sent = 0
        self.network_received = 0
        self.network_sent = 0
        self.full_at = TURN_BYTES  # of `bytes_sent`: then the turn has enough to write
        self.turns = 0  # that were begun

    def begin_turn(self) -> None:
        """Count what is given to connections from now on."""
        self.full_at = self.bytes_sent + TURN_BYTES
        self.turns += 1
