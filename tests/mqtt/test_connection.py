import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget, InboundFigures
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.codec.packet_codec import encode, without_reason
from gateway.mqtt.connection import MAXIMUM_RECEIVE_MAXIMUM, MAXIMUM_UNSENT, Connection
from gateway.mqtt.errors import MqttError, ProtocolError
from gateway.mqtt.output import Barrier
from gateway.mqtt.packets import (
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    UnsubAck,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.versions import VERSIONS

PUBACK = b"\x40\x02\x00\x00"
CODE = ReasonCode.QUOTA_EXCEEDED
REASON = Properties(reason_string="a reason of some length", user_properties=(("a", "b"),))


def publishes(connection: Connection, count: int) -> None:
    """Count so many QoS 1 or 2 PUBLISHes."""
    connection.publishes += count
    connection.check_receive_maximum()


def connected(version: int = MQTT_5, topic_alias_maximum: int = 0) -> Connection:
    connection = Connection(1_024, topic_alias_maximum)
    connection.framer.feed(encode(Connect("c", version), version))
    assert connection.next_packet() == Connect("c", version)
    return connection


def sent(connection: Connection, committed: int) -> bytes:
    return bytes(connection.data_to_send(committed) or b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_connect_tells_the_version(version: int) -> None:
    connection = connected(version)
    assert connection.version == version
    connection.framer.feed(encode(Publish("a", b"x"), version))
    assert connection.next_packet() == Publish("a", b"x")
    assert connection.next_packet() is None
    assert connection.packets_received == 2


def test_a_second_connect_does_not_change_the_version() -> None:
    connection = connected(MQTT_3_1_1)
    connection.framer.feed(encode(Connect("c", MQTT_5), MQTT_5))
    connection.next_packet()
    assert connection.version == MQTT_3_1_1


def test_the_version_of_a_refused_connect_is_known() -> None:
    connection = Connection(1_024)
    connection.framer.feed(b"\x10\x0e\x00\x04MQTT\x05\x03\x00\x00\x00\x00\x01c")
    with pytest.raises(MqttError):
        connection.next_packet()
    assert connection.version == MQTT_5


@given(st.binary(max_size=64), st.sampled_from([0, MQTT_3_1, MQTT_3_1_1, MQTT_5]))
def test_only_mqtt_errors_leave(data: bytes, version: int) -> None:
    connection = Connection(1_024, 4)
    connection.version = version
    connection.framer.feed(data)
    with contextlib.suppress(MqttError):
        while connection.next_packet() is not None:
            pass


def legal(first_byte: int, version: int) -> bool:
    """Return whether a packet can begin so, as the specifications' tables say.

    What only servers send, and a second CONNECT, are looked at when they are whole.
    """
    if not version:
        return first_byte == 0x10
    kind, flags = first_byte >> 4, first_byte & 0x0F
    if kind == 3:
        return flags & 6 != 6 and (flags & 6 != 0 or not flags & 8)
    if kind == 15 and version < MQTT_5:
        return False
    return kind != 0 and flags == (2 if kind in (6, 8, 10) else 0)


UNFINISHED = (b"", b"\x80", b"\xc0", b"\xff\xff\xff", b"\x7f", b"\x09\x00")
"""What may come behind a first byte before the packet is whole."""


@pytest.mark.uncovered
@pytest.mark.parametrize("version", [0, *VERSIONS])
def test_a_first_byte_that_cannot_be_is_an_error_at_once(version: int) -> None:
    for first_byte in range(256):
        for behind in UNFINISHED:
            connection = connected(version) if version else Connection(1 << 28)
            connection.framer.maximum_packet_size = 1 << 28
            connection.framer.feed(bytes([first_byte]) + behind)
            if not legal(first_byte, version):
                with pytest.raises(MqttError):
                    connection.framer.next_frame(connection.version)
            elif behind not in {b"\x7f", b"\x09\x00"} and first_byte not in (0xC0, 0xE0):
                assert connection.framer.next_frame(connection.version) == 0


def test_output_is_announced_once_for_each_time_it_is_fetched() -> None:
    announced: list[None] = []
    connection = Connection(1_024, on_output=lambda: announced.append(None))
    connection.version = MQTT_5
    connection.send(PingResp())
    connection.send(PingResp())
    assert len(announced) == 1
    assert sent(connection, 0) == b"\xd0\x00\xd0\x00"
    assert connection.data_to_send(0) is None
    connection.send(PingResp())
    assert len(announced) == 2
    assert connection.packets_sent == 3


def test_a_barrier_serves_until_an_answer_or_a_receiver_needs_it() -> None:
    connection = Connection(1_024)
    unused, received, answered = Barrier(), Barrier(), Barrier()
    connection.barrier = unused
    connection.data_to_send(0)
    assert connection.barrier is unused
    received.add()
    connection.answer(PUBACK, (1,), 1, answered)
    for barrier in (received, answered):
        connection.barrier = barrier
        connection.data_to_send(0)
        assert connection.barrier is None


def test_a_settled_barrier_announces_the_answer_that_waits_for_it() -> None:
    announced: list[None] = []
    connection = Connection(1_024, on_output=lambda: announced.append(None))
    connection.version = MQTT_5
    barriers = [Barrier(), Barrier()]
    for packet_id, barrier in enumerate(barriers, 1):
        barrier.add()
        connection.answer(PUBACK, (packet_id,), 1, barrier)
    assert sent(connection, 0) == b""
    announced.clear()
    for barrier in barriers:
        barrier.settle()
    assert len(announced) == 1
    assert sent(connection, 0) == b"\x40\x02\x00\x01\x40\x02\x00\x02"


def test_what_is_queued_meanwhile_can_stand_behind_an_answer() -> None:
    connection = connected()
    connection.send(PingResp())
    aside = connection.set_output_aside()
    connection.send(PubAck(2))
    behind = connection.resume_output(aside)
    connection.send(PubAck(1))
    connection.output.append_all(behind)
    assert sent(connection, 0) == b"\xd0\x00\x40\x02\x00\x01\x40\x02\x00\x02"


WITH_REASON = [
    ConnAck(False, CODE, REASON),
    PubAck(1, CODE, REASON),
    PubRec(1, CODE, REASON),
    SubAck(1, [CODE], REASON),
    UnsubAck(1, [CODE], REASON),
    Disconnect(CODE, REASON),
]


@pytest.mark.parametrize("packet", WITH_REASON, ids=lambda packet: type(packet).__name__)
def test_a_reason_that_does_not_fit_is_left_out(packet: Packet) -> None:
    connection = connected()
    connection.maximum_packet_size = 20
    connection.send(packet)
    shorter = without_reason(packet)
    assert shorter != packet
    assert sent(connection, 0) == encode(shorter, MQTT_5)


@pytest.mark.parametrize("packet", WITH_REASON, ids=lambda packet: type(packet).__name__)
def test_a_reason_that_fits_stays(packet: Packet) -> None:
    connection = connected()
    connection.maximum_packet_size = len(encode(packet, MQTT_5))
    connection.send(packet)
    assert sent(connection, 0) == encode(packet, MQTT_5)


@pytest.mark.parametrize("packet", [PubRel(1), PingReq()])
def test_other_packets_have_no_reason_to_leave_out(packet: Packet) -> None:
    assert without_reason(packet) is packet


def test_what_is_too_large_all_the_same_is_not_sent() -> None:
    connection = connected()
    connection.maximum_packet_size = 4
    connection.send(SubAck(1, [CODE]))
    assert connection.data_to_send(0) is None
    assert connection.packets_sent == 0


def test_acknowledgements_give_back_our_receive_maximum_when_they_have_left() -> None:
    connection = connected()
    connection.receive_maximum = 3
    publishes(connection, 3)
    assert (connection.unacknowledged, connection.publish_capacity) == (3, 0)
    connection.answer(PUBACK, (1,), 1)  # a PUBREC, say
    connection.answer(PUBACK, (1, 258), 1, last=True)
    assert (connection.unacknowledged, connection.packets_sent) == (3, 3)
    assert sent(connection, 1) == b"\x40\x02\x00\x01" * 2 + b"\x40\x02\x01\x02"
    assert (connection.unacknowledged, connection.publish_capacity) == (1, 2)
    publishes(connection, 2)
    with pytest.raises(ProtocolError) as raised:
        publishes(connection, 1)
    assert raised.value.reason_code == ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


def test_before_mqtt_5_clients_know_of_no_receive_maximum() -> None:
    connection = connected(MQTT_3_1_1)
    connection.receive_maximum = 3
    publishes(connection, 9)
    assert connection.publish_capacity == MAXIMUM_RECEIVE_MAXIMUM


def test_congestion_is_a_matter_of_unsent_bytes() -> None:
    connection = connected()
    connection.send_encoded(b"x" * (MAXIMUM_UNSENT - 1), 1)
    congested = [connection.congested]
    connection.send_encoded(b"x", 1)
    congested.append(connection.congested)
    connection.data_to_send(0)
    assert [*congested, connection.congested] == [False, True, False]


@pytest.mark.uncovered
def test_only_answers_make_a_peer_one_that_should_be_read_no_more() -> None:
    connection = connected()
    answer = encode(SubAck(1, [CODE]), MQTT_5)
    connection.send_encoded(b"x" * 10 * MAXIMUM_UNSENT, 10)
    for _ in range(-(-MAXIMUM_UNSENT // len(answer)) - 1):
        connection.send(SubAck(1, [CODE]))
    unread = [connection.unread]
    connection.send(SubAck(1, [CODE]), commit=1)
    unread.append(connection.unread)
    connection.data_to_send(0)
    unread.append(connection.unread)  # one answer still waits for its batch
    connection.data_to_send(1)
    assert [*unread, connection.unread] == [False, True, True, False]


def test_half_a_connect_is_waited_for() -> None:
    connection = Connection(1_024)
    assert connection.next_packet() is None
    data = encode(Connect("c"), MQTT_5)
    for position in range(len(data) - 1):
        connection.framer.feed(data[position : position + 1])
        assert connection.next_packet() is None
    connection.framer.feed(data[-1:])
    assert connection.next_packet() == Connect("c")


def test_what_follows_a_connect_says_nothing_of_its_version() -> None:
    connection = Connection(1_024)
    connection.framer.feed(b"\x10\x05\x00\x04MQTT\x05")
    with pytest.raises(MqttError):
        connection.next_packet()
    assert connection.version == 0


def test_a_closed_connection_holds_no_aliases() -> None:
    budget, figures = AliasBudget(), InboundFigures()
    connection = Connection(1_024, 2, inbound_figures=figures)
    connection.close()
    connection.version = MQTT_5
    connection.outbound_aliases = OutboundAliases(2, budget)
    connection.outbound_aliases.choose(write_string("a/topic"))
    connection.framer.feed(encode(Publish("a/b", properties=Properties(topic_alias=1)), MQTT_5))
    connection.next_packet()
    assert (figures.bytes_held, budget.figures.bytes_held > 0) == (3, True)
    connection.close()
    assert (figures.bytes_held, budget.figures.bytes_held) == (0, 0)
