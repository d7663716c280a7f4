"""How much was published, counted where each message passes."""


class Traffic:
    """PUBLISH packets and the bytes of their payloads since the start, of all clients."""

    __slots__ = ("bytes_received", "bytes_sent", "messages_received", "messages_sent")

    def __init__(self) -> None:
        self.messages_received = 0
        self.bytes_received = 0
        self.messages_sent = 0
        self.bytes_sent = 0
