"""In whatever pieces bytes come, the broker does the same with them, and others are served."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.access import Anonymous
from gateway.broker.client import Client
from tests.fuzz.streams import BEGINNINGS, STREAMS
from tests.support.broker_harness import Harness


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
        """Send until the broker has had enough; a turn ends behind each piece."""
        for piece in pieces:
            if self.client.closing:
                break
            self.harness.broker.receive(self.client, piece, self.harness.instant)
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


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Return the data in pieces."""
    places = draw(st.lists(st.integers(0, len(data)), max_size=10).map(sorted))
    return [
        data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)
    ]


@given(beginning=BEGINNINGS, stream=STREAMS, data=st.data())
def test_pieces_make_no_difference(beginning: bytes, stream: bytes, data: st.DataObject) -> None:
    sent = beginning + stream
    at_once = Conversation().send([sent])
    by_bytes = Conversation().send(bytes([byte]) for byte in sent)
    in_pieces = Conversation().send(data.draw(cut(sent)))
    assert at_once.outcome == by_bytes.outcome == in_pieces.outcome
    for conversation in (at_once, by_bytes, in_pieces):
        conversation.check_others()
