"""Rows of an outbox as a gateway may have them, for property tests."""

from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.storage.outbox.row import OutboxRow
from tests.support.fleet.uplinks import EPOCH

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
OPTIONAL = st.none() | TEXT

MESSAGES = st.builds(
    Message,
    received_at=st.integers(1_600_000_000_000, 1_900_000_000_000),
    topic=TEXT.filter(bool),
    payload=st.binary(max_size=50) | TEXT.map(str.encode),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    content_type=OPTIONAL,
    response_topic=st.none() | TEXT.filter(bool),
    correlation_data=st.none() | st.binary(max_size=10),
    message_expiry=st.none() | st.integers(800_000_000, 2**32 - 1),  # not over yet
    payload_format=st.none() | st.integers(0, 1),
    user_properties=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    client_id=OPTIONAL,
    username=OPTIONAL,
)

ROWS = st.builds(
    OutboxRow,
    message=MESSAGES,
    epoch=st.just(EPOCH),
    stream=st.sampled_from(["main", "slow_1", "A-z"]),
    seq=st.just(0),  # given in order by the test
    lane=st.just("live"),
)
