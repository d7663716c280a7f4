"""The gateway's own messages: their queue, and their way to either destination."""

from pathlib import Path

import pytest

import gateway.uplink.fleet.fleet as fleet_module
from gateway.mqtt.packets import ConnAck
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.reports.control_messages import (
    MAX_CONTROL_MESSAGES,
    ControlMessage,
    ControlMessages,
)
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import (
    EPOCH,
    add_rows,
    connected,
    make_uplink,
    running,
    uplink_settings,
)


def test_the_queue_is_bounded_by_what_nobody_has_answered() -> None:
    queue = ControlMessages()
    messages = [
        ControlMessage("ledger", b"%d" % number) for number in range(MAX_CONTROL_MESSAGES + 1)
    ]
    assert [queue.send(message) for message in messages] == [True] * MAX_CONTROL_MESSAGES + [False]
    first = queue.next()
    assert first is messages[0]
    assert not queue.send(messages[-1])
    queue.answered(first, 0)
    assert queue.send(messages[-1])
    assert len(queue) == MAX_CONTROL_MESSAGES


def test_what_is_put_back_keeps_its_place() -> None:
    queue = ControlMessages()
    for payload in (b"1", b"2", b"3"):
        queue.send(ControlMessage("ledger", payload))
    first, second = queue.next(), queue.next()
    assert first is not None
    assert second is not None
    queue.requeue(second)
    queue.requeue(first)
    order = []
    while (message := queue.next()) is not None:
        order.append(message.payload)
    assert order == [b"1", b"2", b"3"]


async def test_they_go_ahead_of_rows_and_tell_when_the_fleet_has_them(
    store: Store, fleet_broker: FleetBroker
) -> None:
    codes: list[int] = []
    add_rows(store, 1, 3)
    await store.settle()
    uplink = make_uplink(store, uplink_settings(fleet_broker.port))
    uplink.control_messages.send(
        ControlMessage("ledger", b"{}", codes.append)
    )  # before there is a link
    await uplink.start()
    await until(lambda: store.outbox.rows == 0 and codes == [0])
    uplink.control_messages.send(ControlMessage("clock", b"[]", codes.append))
    await until(lambda: codes == [0, 0])
    await uplink.close()
    topics = [publish.topic.removeprefix("tidegate/barn/") for publish in fleet_broker.publishes]
    assert topics == ["status", "ledger", *["data/sensors/n1/temperature"] * 3, "clock"]
    assert [publish.retain for publish in fleet_broker.publishes[1:]] == [False] * 5
    assert {publish.qos for publish in fleet_broker.publishes} == {1}


async def test_they_are_sent_again_until_they_are_answered(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.05)
    codes: list[int] = []
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda _publish: None
        uplink.control_messages.send(ControlMessage("ledger", b"1", codes.append))
        uplink.control_messages.send(ControlMessage("ledger", b"2", codes.append))
        await until(lambda: len(fleet_broker.publishes) == 3)
        fleet_broker.puback = lambda _publish: ReasonCode.QUOTA_EXCEEDED
        fleet_broker.drop()
        await until(lambda: store.counters.values["tidegate/uplink/error"] != "")
        await until(lambda: len(fleet_broker.publishes) == 6)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        await until(lambda: codes == [0, 0])
    payloads = [publish.payload for publish in fleet_broker.publishes if "ledger" in publish.topic]
    assert payloads == [b"1", b"2"] * 3


async def test_a_refusal_for_good_is_told(store: Store, fleet_broker: FleetBroker) -> None:
    codes: list[int] = []
    fleet_broker.connack = ConnAck(properties=Properties(maximum_packet_size=400))
    fleet_broker.puback = lambda _publish: ReasonCode.NOT_AUTHORIZED
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b"1", codes.append))
        await until(lambda: codes == [0x87])
        uplink.control_messages.send(ControlMessage("ledger", bytes(500), codes.append))
        await until(lambda: codes == [0x87, 0x95])
        assert len(uplink.control_messages) == 0


async def test_in_a_directory_they_have_folders_of_their_own(store: Store, tmp_path: Path) -> None:
    codes: list[int] = []
    landing = tmp_path / "landing"
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b'{"n":1}', codes.append))
        uplink.control_messages.send(ControlMessage("clock", b'{"n":2}', codes.append))
        uplink.control_messages.send(ControlMessage("ledger", b'{"n":3}', codes.append))
        await until(lambda: codes == [0, 0, 0])
        uplink.control_messages.send(ControlMessage("ledger", b'{"n":4}', codes.append))
        await until(lambda: len(codes) == 4)
    files = {
        str(path.relative_to(landing / "barn")): path.read_bytes()
        for path in landing.glob("barn/*/*")
    }
    assert files == {
        f"ledger/{EPOCH}.1.jsonl": b'{"n":1}\n{"n":3}\n',
        f"clock/{EPOCH}.2.jsonl": b'{"n":2}\n',
        f"ledger/{EPOCH}.3.jsonl": b'{"n":4}\n',
    }


async def test_what_the_directory_does_not_take_waits(store: Store, tmp_path: Path) -> None:
    codes: list[int] = []
    landing = tmp_path / "landing"
    blocked = landing / "barn" / "ledger"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    async with running(store, uplink_settings(directory=landing)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b"{}", codes.append))
        await until(lambda: uplink.state == "disconnected")
        blocked.unlink()
        await until(lambda: codes == [0])
