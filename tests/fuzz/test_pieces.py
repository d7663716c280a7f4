"""In whatever pieces bytes come, the broker does the same with them, and others are served."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.conversation import Conversation, in_pieces
from tests.fuzz.streams import BEGINNINGS, STREAMS

CONNECT_5 = bytes.fromhex("100d 0004 4d515454 05 02 0000 00 0000")
"""A CONNECT of MQTT 5 without a client identifier."""

CUT_SHORT = b"\x10\x05\x00\x04MQTT\x05\x00"
"""A CONNECT that ends within its protocol name."""

LONG_AND_MORE = bytes.fromhex("8206000100000000 1010 0006 4d514973647003 02 000a 00026331")
"""A SUBSCRIBE, behind which others have their turn, and a second CONNECT."""


@example(beginning=CUT_SHORT, stream=b"", size=3)
@example(beginning=CONNECT_5, stream=LONG_AND_MORE, size=2)
@example(beginning=CONNECT_5, stream=bytes.fromhex("b0020002"), size=2)  # as servers send it
@given(beginning=BEGINNINGS, stream=STREAMS, size=st.integers(2, 60))
def test_pieces_make_no_difference(beginning: bytes, stream: bytes, size: int) -> None:
    sent = beginning + stream
    conversations = [
        Conversation().send(in_pieces(sent, each)) for each in (len(sent) + 1, size, 1)
    ]
    at_once, by_size, by_bytes = (conversation.outcome for conversation in conversations)
    assert at_once == by_size == by_bytes
    for conversation in conversations:
        conversation.check_others()
