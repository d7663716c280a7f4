import asyncio
import logging
from typing import cast

import pytest

from gateway.broker.handlers import HANDLERS
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.output import Barrier
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    PubRec,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.transport import NOTED_OUTPUT, ClientTransport
from gateway.session.span import Span
from tests.support.broker.publications import publish
from tests.support.disk.storage import Store, until
from tests.support.processes.server import HeldWriter, Server

# --- durability -----------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
async def test_an_answer_leaves_after_the_commit(
    held: Server, held_writer: HeldWriter, qos: int
) -> None:
    client = await held.clients.connect("c")
    await client.send(PingReq(), Publish("up/a", qos=qos, packet_id=7), PingReq())
    assert await client.receive() == PingResp()
    await until(lambda: held.rows.taken == 1)
    other = await held.clients.connect("other")
    assert not await other.waiting()
    assert client.raw.endswith(b"\xd0\x00")
    held_writer.commit()
    assert await client.receive() == (PubAck(7) if qos == 1 else PubRec(7))
    assert await client.receive() == PingResp()


async def test_an_answer_leaves_when_everyone_it_is_owed_to_has_acknowledged(
    held: Server, held_writer: HeldWriter
) -> None:
    publisher = await held.clients.connect("c")
    connection = held.broker.clients["c"].connection
    barrier = Barrier()
    barrier.add()
    answer = encode(PubAck(7), MQTT_5)
    connection.send_encoded(answer, 1, held_writer.batch, barrier)
    connection.send(PingResp())
    other = await held.clients.connect("other")  # turns have passed
    assert not await other.waiting()
    assert connection.output.size == len(answer + encode(PingResp(), MQTT_5))
    barrier.settle()
    assert await publisher.receive() == PubAck(7)
    assert await publisher.receive() == PingResp()
    assert held_writer.committed == 0


async def test_a_hundred_messages_share_a_commit(server: Server, store: Store) -> None:
    client = await server.clients.connect("c")
    before = store.counters.count("tidegate/storage/commits")
    await client.send(*(Publish("up/a", qos=1, packet_id=1 + number) for number in range(100)))
    answers = [await client.receive() for _ in range(100)]
    assert answers == [PubAck(1 + number) for number in range(100)]
    assert 1 <= store.counters.count("tidegate/storage/commits") - before <= 5
    assert store.counters.count("tidegate/storage/rows") == 100


# --- order ----------------------------------------------------------------------------------


async def test_a_client_that_sends_something_is_written_to_before_the_others(held: Server) -> None:
    client = await held.clients.connect("c")
    connection = held.broker.clients["c"].connection
    transport = cast("ClientTransport", connection.on_output)
    connection.send(PingResp())  # as a message of another client would
    assert list(held.turn.late) == [transport]
    assert not held.turn.active
    transport.data_received(encode(PingReq(), MQTT_5))
    assert list(held.turn.active) == [transport]
    assert [await client.receive(), await client.receive()] == [PingResp(), PingResp()]


# --- ends -----------------------------------------------------------------------------------


async def test_half_a_packet_and_then_the_end(held: Server) -> None:
    client = await held.clients.connect("c")
    await client.send_bytes(b"\x30\x7f\x00\x01")
    await client.close()
    await until(lambda: not held.broker.connections)


async def test_a_shut_down_sending_side_ends_the_connection(held: Server) -> None:
    client = await held.clients.connect("c")
    client._writer.write_eof()
    assert not await client.until_closed()
    await until(lambda: not held.broker.connections)


async def test_a_mistake_of_ours_ends_that_connection_alone(
    held: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = await held.clients.connect("other")
    client = await held.clients.connect("c")

    def faulty(*_: object) -> None:
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patch:
        patch.setitem(HANDLERS, PingReq, faulty)
        await client.send(PingReq())
        (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.UNSPECIFIED_ERROR
    assert not await other.waiting()
    assert held.counters.count("tidegate/clients/errors") == 1
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None


async def test_a_mistake_while_writing_ends_that_connection_alone(held: Server) -> None:
    other = await held.clients.connect("other")
    client = await held.clients.connect("c")
    faulty = publish([b"1"], 0)
    held.broker.sessions["c"].queue.append(Span(faulty, 0, 1, 0))
    faulty.packets = None  # type: ignore[assignment]  # the mistake: this cannot be encoded
    await asyncio.gather(client.send(PingReq()), other.send(PingReq()))
    assert await other.receive() == PingResp()
    assert await client.until_closed() == [PingResp()]
    assert held.counters.count("tidegate/clients/errors") == 1


async def test_bytes_are_counted(held: Server) -> None:
    client = await held.clients.connect("c", MQTT_3_1_1)
    assert not await client.waiting()
    assert held.broker.traffic.network_received == 2 + 13 + 2
    assert held.broker.traffic.network_sent == 4 + 2


@pytest.mark.parametrize("answers", [NOTED_OUTPUT // 4 - 1, NOTED_OUTPUT // 4])
async def test_output_that_waits_is_counted_unless_it_is_small(
    held: Server, held_writer: HeldWriter, answers: int
) -> None:
    await held.clients.connect("c", MQTT_3_1_1)
    connection = held.broker.clients["c"].connection
    connection.send_encoded(bytes(4 * answers), answers, held_writer.batch)
    other = await held.clients.connect("other")  # turns have passed
    assert not await other.waiting()
    expected = 2 * NOTED_OUTPUT if 4 * answers == NOTED_OUTPUT else 0
    assert (connection.output.size, held.broker.memory.buffers) == (4 * answers, expected)
