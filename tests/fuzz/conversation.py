"""A client that may send anything, and others who must not feel it; all of it in memory."""

from collections.abc import Iterable, Iterator

from gateway.broker.client import Client
from gateway.broker.connecting.connection_info import Anonymous
from tests.support.broker.broker_harness import Harness


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Yield the data in pieces of so many bytes."""
    for place in range(0, len(data), size):
        yield data[place : place + size]


class Conversation:
    """A client that sends bytes, and a bystander who subscribes to everything."""

    def __init__(self) -> None:
        self.harness = Harness()
        self.bystander = self.harness.connect("bystander")
        self.bystander.subscribe("#", 2)
        self.heard = b""
        self._bystander_began = len(self.bystander.raw)
        self.client: Client = self.harness.broker.open(
            Anonymous(), "192.0.2.8:50000", lambda: None, self.harness.instant
        )

    def send(self, pieces: Iterable[bytes]) -> "Conversation":
        """Send until the broker has had enough; turns end behind each piece, or within it."""
        for piece in pieces:
            data, goes_on = piece, not self.client.closing
            while goes_on:
                goes_on = self.harness.broker.receive(self.client, data, self.harness.instant)
                data = b""
                self.heard += bytes(self.client.connection.data_to_send(0) or b"")
                self.harness.settle()
        return self

    @property
    def outcome(self) -> tuple[bytes, bytes, bool, int]:
        """What the client and the bystander heard, whether it is over, what is retained."""
        return (
            self.heard,
            self.bystander.raw[self._bystander_began :],
            self.client.closing,
            len(self.harness.broker.retained),
        )

    def check_others(self) -> None:
        """Fail unless a healthy client is served, before and after this one is gone."""
        for payload in (b"before", b"after"):
            echo = self.harness.connect("echo")
            echo.subscribe(f"echo/{payload.decode()}", 1)
            self.harness.publish(f"echo/{payload.decode()}", payload, 1)
            assert [packet.payload for packet in echo.take()] == [payload]  # type: ignore[union-attr]  # a PUBLISH
            self.harness.broker.lost(self.client, self.harness.instant)
