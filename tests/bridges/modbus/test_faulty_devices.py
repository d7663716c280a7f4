"""Devices that refuse a register or so many, and answers on a serial line that come too late."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.bridges.kind import BridgeKind
from gateway.bridges.modbus import requests
from gateway.bridges.modbus.modbus_bridge import KIND
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from tests.bridges.modbus.slaves import RtuLine, Slave, framed, on_tcp, tcp_slave
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make()


@contextlib.asynccontextmanager
async def bridging(
    gateway: Gateway, port: str, registers: list[Register], kind: BridgeKind = KIND, **settings: Any
) -> AsyncIterator[None]:
    supervisor = Supervisor(gateway.services)
    configured = ModbusSettings(port=port, register=tuple(registers), **settings)
    await supervisor.apply([BridgeConfig(kind, "plc", configured)])
    try:
        yield
    finally:
        await supervisor.close()


def neighbours(count: int, form: str = "uint16", **more: Any) -> list[Register]:
    size = Register(0, "x", type=form).size
    return [
        Register(place * size, f"q{place * size}", type=form, interval=0.05, **more)
        for place in range(count)
    ]


def found(gateway: Gateway) -> dict[str, object]:
    return {topic.rpartition("/")[2]: each["value"] for topic, each in gateway.broker.readings}


def reported(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    return [each for each in messages if word in each]


@pytest.mark.uncovered
@pytest.mark.parametrize(("illegal", "code"), [(0, 2), (6, 3), (9, 4), (0, 1), (9, 1), (6, 9)])
async def test_one_illegal_register_costs_no_neighbour_and_is_named_once(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, illegal: int, code: int
) -> None:
    slave = Slave(illegal=frozenset({illegal}), code=code)
    expected = {f"q{place}": place for place in range(10) if place != illegal}
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(10)):
        await until(lambda: found(gateway) == expected)
        await until(lambda: gateway.figure("modbus/plc/devices_in_trouble") == 1)
        before = len(gateway.broker.messages)
        await until(lambda: len(gateway.broker.messages) > before + 30)
    (line,) = reported(caplog, "refuses")
    assert f"device 1 refuses holding {illegal} (q{illegal}): " in line
    # a failure may end any time, and others are asked for a part first
    assert code not in (2, 3) or slave.asked.count((illegal, 1)) == 1
    assert found(gateway) == expected


@pytest.mark.uncovered
@pytest.mark.parametrize("most", [80, 50, 45, 2])
async def test_requests_shrink_when_refused_and_stay_so(gateway: Gateway, most: int) -> None:
    slave = Slave(most=most)
    registers = neighbours(60, "uint32")
    async with tcp_slave(slave) as port, bridging(gateway, port, registers):
        await until(lambda: len(found(gateway)) == 60)
        learned = len(slave.asked)
        before = len(gateway.broker.messages)
        await until(lambda: len(gateway.broker.messages) > before + 120)
    assert max(count for _, count in slave.asked[learned:]) <= most
    assert gateway.figure("modbus/plc/devices_in_trouble") == 0


async def test_an_answer_that_is_too_short_shrinks_them_too(gateway: Gateway) -> None:
    slave = Slave(short=True)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(4)):
        await until(lambda: found(gateway) == {f"q{place}": place for place in range(4)})


async def test_they_shrink_for_a_device_that_says_nothing_to_large_ones(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ABSENT_FIRST", 0.01)
    slave = Slave(most=3, silent=True)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(10), timeout=0.05):
        await until(lambda: len(found(gateway)) == 10)
        learned = len(slave.asked)
        await until(lambda: len(slave.asked) > learned + 12)
    assert slave.asked[:6] == [(0, 10)] * 4 + [(0, 1), (0, 10)]
    assert max(count for _, count in slave.asked[learned:]) <= 3


@pytest.mark.uncovered
@pytest.mark.parametrize("illegal", [0, 6])
@pytest.mark.parametrize("closes", [False, True])
async def test_a_register_without_an_answer_costs_no_neighbour_and_is_named_once(
    gateway: Gateway,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    illegal: int,
    closes: bool,
) -> None:
    monkeypatch.setattr(requests, "ABSENT_FIRST", 0.01)
    monkeypatch.setattr(requests, "LATE_MAX", 0.1)
    kind = replace(KIND, retry=(0.01, 1.0, 0.01))
    slave = Slave(illegal=frozenset({illegal}), silent=True, closes=closes)
    expected = {f"q{place}": place for place in range(10) if place != illegal}
    async with (
        tcp_slave(slave) as port,
        bridging(gateway, port, neighbours(10), kind, timeout=0.05),
    ):
        await until(lambda: bool(reported(caplog, "does not answer for")), 40)
        asked = slave.asked.count((illegal, 1))
        before = len(gateway.broker.messages)
        await until(lambda: len(gateway.broker.messages) > before + 60)
    (line,) = reported(caplog, "does not answer for")
    assert line.endswith(f"device 1 does not answer for holding {illegal} (q{illegal})")
    assert found(gateway) == expected
    assert slave.asked.count((illegal, 1)) == asked  # it is asked again after a minute
    assert len(caplog.records) < 25


async def test_a_register_that_is_busy_for_good_costs_no_neighbour(gateway: Gateway) -> None:
    slave = Slave(illegal=frozenset({0}), code=6)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(3)):
        await until(lambda: found(gateway) == {"q1": 1, "q2": 2})


async def test_a_table_that_a_device_does_not_have_is_named_once(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    slave = Slave(illegal=frozenset(range(20)), code=1)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(20)):
        await until(lambda: gateway.figure("modbus/plc/devices_in_trouble") == 1)
    (line,) = reported(caplog, "refuses")
    assert "refuses holding 0 to 19 (q0, q1, q2, q3 and 16 more): illegal function" in line
    assert slave.asked == [(0, 20), (0, 1), (0, 20), (19, 1), (0, 20), (10, 1), (0, 20)]


async def test_a_device_that_is_away_is_asked_for_the_same_when_it_comes_back(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ABSENT_FIRST", 0.01)
    slave = Slave(most=0, silent=True)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(10), timeout=0.05):
        await until(lambda: len(slave.asked) >= 7)
        slave.most = 125
        await until(lambda: len(found(gateway)) == 10)
    assert {count for _, count in slave.asked} == {10, 1}  # it was only away


async def test_what_marks_no_value_is_no_reading(gateway: Gateway) -> None:
    async with tcp_slave(Slave()) as port, bridging(gateway, port, neighbours(4, invalid=(2,))):
        await until(lambda: gateway.counters.count("tidegate/modbus/invalid") > 1)
    assert found(gateway) == {"q0": 0, "q1": 1, "q3": 3}


async def test_max_registers_bounds_them_from_the_start(gateway: Gateway) -> None:
    slave = Slave(most=45)
    registers = neighbours(60, "uint32")
    async with tcp_slave(slave) as port, bridging(gateway, port, registers, max_registers=45):
        await until(lambda: len(found(gateway)) == 60)
    assert {count for _, count in slave.asked} == {44, 32}
    assert "tidegate/modbus/refusals" not in gateway.counters.values


async def test_a_busy_device_keeps_a_request_whole(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slave = Slave(illegal=frozenset({1}), code=6)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(3)):
        await until(lambda: gateway.figure("modbus/plc/devices_in_trouble") == 1)
        slave.illegal = frozenset()
        await until(lambda: len(found(gateway)) == 3)
        assert reported(caplog, "answers for holding 0 to 2 (q0, q1, q2)")
    assert {count for _, count in slave.asked} == {3}
    assert len(reported(caplog, "refuses holding 0 to 2")) == 1


async def test_a_device_that_a_gateway_does_not_reach_is_left_alone(gateway: Gateway) -> None:
    slave = Slave(illegal=frozenset({1}), code=11)
    async with tcp_slave(slave) as port, bridging(gateway, port, neighbours(3)):
        await until(lambda: gateway.figure("modbus/plc/devices_in_trouble") == 1)
        await asyncio.sleep(0.3)
    assert slave.asked == [(0, 3)]


LATE = [[1.2, 0.0, 1.2], [2.4, 0.2, 2.4]]
"""Seconds that answers take; the second kind comes while the next question waits for its own."""


@pytest.mark.parametrize("delays", LATE)
async def test_a_late_answer_is_never_another_registers(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, delays: list[float]
) -> None:
    slave = Slave()
    loop = asyncio.get_running_loop()
    left = list(delays)

    def hear(request: bytes) -> None:
        answer = framed(1, slave.answer(request[1:-2]))
        loop.call_later(left.pop(0) if left else 0.0, line.send, answer)

    line = RtuLine(hear)
    registers = [Register(10, "q10", interval=0.3), Register(20, "q20", interval=0.3)]
    settings: dict[str, Any] = {"timeout": 0.3, "parity": "none"}
    async with bridging(gateway, line.path, registers, **settings):
        await until(lambda: len(gateway.broker.messages) >= 8 and len(found(gateway)) == 2, 40)
    line.close()
    values: set[tuple[str, object]] = {
        (topic, each["value"]) for topic, each in gateway.broker.readings
    }
    assert values == {("sensors/plc/q10", 10), ("sensors/plc/q20", 20)}
    assert gateway.counters.count("tidegate/modbus/late_answers") >= 1
    assert len(reported(caplog, "too late: timeout must be longer")) <= 1


@pytest.mark.parametrize("again", [0.03, 0.15])
async def test_a_repeated_answer_is_never_another_registers(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, again: float
) -> None:
    slave = Slave()
    loop = asyncio.get_running_loop()
    sent: list[asyncio.TimerHandle] = []

    def hear(request: bytes) -> None:
        answer = framed(1, slave.answer(request[1:-2]))
        sent.extend(loop.call_later(0.05 + late, line.send, answer) for late in (0.0, again))

    line = RtuLine(hear)
    registers = [Register(address, f"q{address}", interval=0.1) for address in (10, 20, 30)]
    settings: dict[str, Any] = {"timeout": 0.4, "parity": "none"}
    async with bridging(gateway, line.path, registers, **settings):
        await until(lambda: len(gateway.broker.messages) >= 6, 40)
    for each in sent:
        each.cancel()
    line.close()
    assert found(gateway) == {"q10": 10, "q20": 20, "q30": 30}
    values = {(topic, each["value"]) for topic, each in gateway.broker.readings}
    assert len(values) == 3
    assert len(reported(caplog, "answers again")) == 1


@pytest.mark.parametrize("piece", [1, 3, 200])
async def test_what_does_not_answer_the_question_is_dropped(gateway: Gateway, piece: int) -> None:
    slave = Slave()
    refused = framed(1, b"\x84\x02")

    def hear(request: bytes) -> None:
        answer = framed(1, slave.answer(request[1:-2]))
        others = framed(2, answer[1:-2]), framed(1, b"\x03\x04\0\1\0\2"), refused
        noise = b"\xff\x01\x03\x02\0\x09\0\0"
        data = b"".join(others) + noise + answer + answer
        for start in range(0, len(data), piece):
            line.send(data[start : start + piece])

    line = RtuLine(hear)
    async with bridging(gateway, line.path, [Register(10, "q10")], parity="none"):
        await until(lambda: found(gateway) == {"q10": 10})
    line.close()
    assert gateway.counters.count("tidegate/modbus/late_answers") >= 3


NOT_ANSWERS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "another number": lambda head, _: on_tcp(b"\x7f\x7f" + head[2:], b"\x03\x02\0\x63"),
    "another function": lambda head, _: on_tcp(head, b"\x04\x02\0\x63"),
    "another unit": lambda head, _: on_tcp(head[:6] + b"\x09", b"\x03\x02\0\x63"),
    "a refusal of another function": lambda head, _: on_tcp(head, b"\x84\x02"),
    "more registers": lambda head, _: on_tcp(head, b"\x03\x04\0\x63\0\1"),
    "a false size": lambda head, _: on_tcp(head, b"\x03\x06\0\x63"),
    "another protocol": lambda head, _: head[:2] + b"\0\1" + on_tcp(head, b"\x03\x02\0\x63")[4:],
    "noise": lambda _head, _body: b"\xff\xff\xff",
}


@pytest.mark.parametrize("kind", NOT_ANSWERS)
async def test_on_tcp_what_does_not_answer_the_question_is_dropped(
    gateway: Gateway, kind: str
) -> None:
    slave = Slave(before=NOT_ANSWERS[kind])
    registers = [Register(10, "q10", interval=0.05), Register(20, "q20", interval=0.05)]
    async with tcp_slave(slave) as port, bridging(gateway, port, registers):
        await until(lambda: len(gateway.broker.messages) >= 6)
    assert found(gateway) == {"q10": 10, "q20": 20}
    assert {each["value"] for _, each in gateway.broker.readings} == {10, 20}
    assert gateway.figure("modbus/timeouts") is None


async def test_an_answer_that_repeats_the_one_before_is_dropped(gateway: Gateway) -> None:
    last = [b""]

    def before(head: bytes, body: bytes) -> bytes:
        again, last[0] = last[0], on_tcp(head, Slave().answer(body))
        return again

    registers = [Register(10, "q10", interval=0.05), Register(20, "q20", interval=0.05)]
    async with tcp_slave(Slave(before=before)) as port, bridging(gateway, port, registers):
        await until(lambda: len(gateway.broker.messages) >= 6)
    assert {(topic[-3:], each["value"]) for topic, each in gateway.broker.readings} == {
        ("q10", 10),
        ("q20", 20),
    }
    assert gateway.figure("modbus/timeouts") is None


async def test_a_device_on_tcp_that_numbers_no_answer_is_read(gateway: Gateway) -> None:
    registers = [Register(10, "q10", interval=0.05), Register(20, "q20", interval=0.05)]
    async with tcp_slave(Slave(number=0)) as port, bridging(gateway, port, registers):
        await until(lambda: len(gateway.broker.messages) >= 6)
    assert found(gateway) == {"q10": 10, "q20": 20}


def test_a_time_out_follows_from_baud_and_size() -> None:
    slow = ModbusSettings(port="/dev/x", baud=2400, register=tuple(neighbours(40, "float32")))
    (request,) = (each for device in requests.plan(slow.register) for each in device.requests)
    assert request.sizes == (8, 165)
    assert slow.line_time(*request.sizes) == pytest.approx(173 * 11 / 2400)
    for port in ("tcp://192.0.2.1", "rtu+tcp://192.0.2.1"):
        bus = ModbusSettings(port=port, parity="none", register=slow.register)
        assert bus.line_time(8, 165) == (0 if port.startswith("tcp") else 173 * 10 / 19_200)


NOTES: list[tuple[dict[str, Any], str]] = [
    ({}, "a poll of 1 request takes 0.12 s, 1% of the intervals"),
    ({"baud": 2400}, "a poll of 1 request takes 0.83 s, 8% of the intervals"),
    ({"baud": 300}, "a poll of 1 request takes 6.5 s, 65% of the intervals"),
]


@pytest.mark.parametrize(("settings", "expected"), NOTES)
def test_a_check_says_what_a_poll_takes(settings: dict[str, Any], expected: str) -> None:
    registers = tuple(Register(2 * place, "x", type="float32") for place in range(40))
    bus = ModbusSettings(port="/dev/x", register=registers, **settings)
    assert list(KIND.notes(bus)) == [expected]
    busy = tuple(replace(each, interval=0.5) for each in registers)
    (note,) = KIND.notes(replace(bus, register=busy))
    assert ("that is too much" in note) is ("baud" in settings)


async def test_an_answer_that_the_line_needs_long_for_is_no_time_out(gateway: Gateway) -> None:
    """40 floats at 2,400 baud: the line needs 0.8 s, and a device 0.05 s more."""

    def hear(request: bytes) -> None:
        answer = framed(1, Slave().answer(request[1:-2]))
        asyncio.get_running_loop().call_later(0.85, line.send, answer)

    line = RtuLine(hear)
    registers = neighbours(40, "float32")
    async with bridging(gateway, line.path, registers, baud=2400, parity="none"):
        await until(lambda: len(found(gateway)) == 40)
    line.close()
    assert gateway.figure("modbus/timeouts") is None


async def test_rtu_over_tcp_drops_late_answers_too(gateway: Gateway) -> None:
    """An adapter passes frames on: there is no transaction number that tells answers apart."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readexactly(8)
                asked.append(request)
                answer = framed(1, Slave().answer(request[1:-2]))
                if len(asked) == 2:  # the answer to another question stands before this one's
                    writer.write(framed(1, Slave().answer(bytes.fromhex("0300070002"))))
                writer.write(answer[:3])
                await writer.drain()
                writer.write(answer[3:])
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = f"rtu+tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with bridging(gateway, port, neighbours(3)):
        await until(lambda: len(gateway.broker.messages) >= 9)
    server.close()
    assert found(gateway) == {"q0": 0, "q1": 1, "q2": 2}
    assert gateway.figure("modbus/late_answers") == 1
