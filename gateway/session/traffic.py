"""Counters of published messages, updated where each message passes."""

TURN_BYTES = 16 * 1024 * 1024
"""Bytes of payload queued to connections before they are written. For a thousand receivers 256 KiB
that were read together would be 256 MiB; one large message is copied for each receiver."""


RECEIVER_BYTES = 8 * 1024
"""What each receiver of a publication counts beside the payload, since it has a write of its own:
so 2,000 receivers fill a turn."""


class Traffic:
    """PUBLISH packets and the bytes of their payloads since the start, of all clients.

    A turn's output is full when `bytes_sent` reaches `full_at`. From `queue_at` on, further
    receivers of the same message have it in their queues until they are written to. At `count_at`
    what slow readers hold is counted next. `unfinished` is True while output of an earlier share is
    unwritten: until then nothing more is published. `cost` adds up expensive work of one client
    until other clients are served: retained messages, unknown topics, user properties. One unit
    takes 10 to 20 µs in plain Python. `network_received` and `network_sent` are all bytes of
    sockets.
    """

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "cost",
        "count_at",
        "full_at",
        "messages_received",
        "messages_sent",
        "network_received",
        "network_sent",
        "queue_at",
        "turns",
        "unfinished",
    )

    def __init__(self) -> None:
        self.messages_received = 0
        self.bytes_received = 0
        self.messages_sent = 0
        self.bytes_sent = 0
        self.network_received = 0
        self.network_sent = 0
        self.full_at = self.queue_at = self.count_at = TURN_BYTES
        self.unfinished = False
        self.cost = 0
        self.turns = 0  # turns that were begun

    def end_share(self) -> None:
        """Note that one client has used up its share of the turn: of bytes sent, or of cost."""
        if self.bytes_sent > self.full_at:
            self.begin_turn()
        else:
            self.cost = 0

    def begin_turn(self) -> None:
        """Start counting a turn's output."""
        self.full_at = self.queue_at = self.bytes_sent + TURN_BYTES
        self.turns += 1
