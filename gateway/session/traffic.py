"""How much was published, counted where each message passes."""

TURN_BYTES = 16 * 1024 * 1024
"""Bytes of payload given to connections before they are written: 256 KiB that were read at once
would be 256 MiB for a thousand receivers, and one large message is copied for each of them."""


RECEIVER_BYTES = 8 * 1024
"""What each receiver of a publication counts for beside the payload, since it is written to by
itself: so 2,000 receivers are enough for a turn."""


class Traffic:
    """PUBLISH packets and the bytes of their payloads since the start, of all clients.

    `full_at` is how many `bytes_sent` are enough for a turn; from `queue_at` on further receivers
    of the same message have it in their queues until they are written to. It is `behind` while some
    that a turn gave away are not written yet: nothing more is to be published until they are.
    `cost` counts expensive work of one client until others may have their turn: retained messages,
    topics that were not known, user properties. One of it takes 10 to 20 µs in plain Python.
    `network_received` and `network_sent` are all bytes, as they came from sockets and went to them.
    """

    __slots__ = (
        "behind",
        "bytes_received",
        "bytes_sent",
        "cost",
        "full_at",
        "messages_received",
        "messages_sent",
        "network_received",
        "network_sent",
        "queue_at",
        "turns",
    )

    def __init__(self) -> None:
        self.messages_received = 0
        self.bytes_received = 0
        self.messages_sent = 0
        self.bytes_sent = 0
        self.network_received = 0
        self.network_sent = 0
        self.full_at = self.queue_at = TURN_BYTES
        self.behind = False
        self.cost = 0
        self.turns = 0  # that were begun

    def end_share(self) -> None:
        """Note that one client has had its share of the turn: of bytes sent, or of cost."""
        if self.bytes_sent > self.full_at:
            self.begin_turn()
        else:
            self.cost = 0

    def begin_turn(self) -> None:
        """Count what is given to connections from now on."""
        self.full_at = self.queue_at = self.bytes_sent + TURN_BYTES
        self.turns += 1
