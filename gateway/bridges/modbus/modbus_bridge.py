"""A Modbus bus to readings, and what is published to `…/set` to coils and holding registers."""

import asyncio
import contextlib
import json
import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Any

from gateway.bridges.kind import BridgeKind
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register, is_news
from gateway.bridges.modbus.requests import Device, Request, plan
from gateway.bridges.readings.reading import Value
from gateway.bridges.serial.serial_settings import port_name
from gateway.bridges.supervision.errors import BridgeError
from gateway.bridges.supervision.host import Host
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.evaluation.message import Message

if TYPE_CHECKING:
    from pymodbus.client import AsyncModbusSerialClient, AsyncModbusTcpClient

    Client = AsyncModbusSerialClient | AsyncModbusTcpClient

WRITES_MAX = 32
"""Writes that wait for the bus; a further one is refused."""

DEAF_AFTER = 10.0
"""Seconds without any answer of any device, after which the connection is made anew."""

WORDS = {"on": 1.0, "true": 1.0, "off": 0.0, "false": 0.0}

logger = logging.getLogger(__name__)


class ModbusBridge:
    """Asks one device after the other; one that does not answer is left alone for a while."""

    def __init__(self, settings: ModbusSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._devices = plan(settings.register)
        self._published: dict[Register, tuple[Value, float]] = {}
        self._writes: deque[tuple[Register, float]] = deque()
        self._write_asked = asyncio.Event()
        for register in settings.register:
            if register.writable:
                self._accept_writes(register)

    async def run(self) -> None:
        """Poll until the connection is lost, for which BridgeError is raised."""
        client = await self._connect()
        loop = asyncio.get_running_loop()
        self._answered = loop.time()
        try:
            self._host.working()
            while True:
                if self._writes:
                    await self._write(client, *self._writes.popleft())
                else:
                    await self._poll(client)
                await asyncio.sleep(self._settings.quiet)
                if loop.time() - self._answered > self._patience:
                    raise BridgeError("no device answers")
        finally:
            client.close()

    @property
    def _patience(self) -> float:
        quickest = min(
            request.first.interval for each in self._devices for request in each.requests
        )
        return DEAF_AFTER + 2 * quickest

    async def _connect(self) -> "Client":
        client = self._client()
        client.set_max_no_responses(1_000_000_000)  # a dead device is no reason to hang up
        try:
            connected = await client.connect()
        except OSError as failure:
            raise BridgeError(str(failure)) from failure
        if not connected:
            client.close()
            raise BridgeError(f"{self._settings.port} cannot be opened")
        return client

    def _client(self) -> "Client":
        from pymodbus import FramerType
        from pymodbus.client import AsyncModbusSerialClient, AsyncModbusTcpClient

        from gateway.bridges.serial.serial_port import find_device

        logging.getLogger("pymodbus").setLevel(logging.CRITICAL)  # what it tells is told here
        settings, port = self._settings, self._settings.port
        common: dict[str, Any] = {
            "timeout": settings.timeout,
            "retries": 0,  # the next poll is one
            "reconnect_delay": 0,  # the supervisor does that
        }
        if "://" in port:
            host, _, number = port.removeprefix("tcp://").rpartition(":")
            if not number.isdecimal():
                host, number = port.removeprefix("tcp://"), "502"
            return AsyncModbusTcpClient(host.strip("[]"), port=int(number), **common)
        return AsyncModbusSerialClient(
            find_device(port),
            framer=FramerType.RTU,
            baudrate=settings.baud,
            parity=settings.parity[0].upper(),
            stopbits=settings.stop_bits,
            **common,
        )

    async def _poll(self, client: "Client") -> None:
        """Ask for what is due first, or wait for it or for something to write."""
        loop = asyncio.get_running_loop()
        device = min(self._devices, key=Device.due)
        wait = device.due() - loop.time()
        if wait > 0:
            self._write_asked.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._write_asked.wait(), min(wait, 1.0))
            return
        request = device.next()
        request.due = max(request.due + request.first.interval, loop.time())
        await self._read(client, device, request)

    async def _read(self, client: "Client", device: Device, request: Request) -> None:
        read = {
            "coil": client.read_coils,
            "discrete": client.read_discrete_inputs,
            "input": client.read_input_registers,
            "holding": client.read_holding_registers,
        }[request.first.table]
        answer = await self._ask(
            client,
            device,
            read(request.first.address, count=request.count, device_id=device.number),
        )
        if answer is None:
            return
        words = answer.bits if request.first.is_bit else answer.registers
        for register in request.registers:
            start = register.address - request.first.address
            part = words[start : start + register.size]
            if len(part) == register.size:
                self._publish(register, register.value(part))

    async def _ask(self, client: "Client", device: Device, question: Any) -> Any:
        """Return the answer, None if there is none or it is a refusal; both are counted."""
        from pymodbus.exceptions import ModbusException

        loop = asyncio.get_running_loop()
        try:
            answer = await question
        except ModbusException as failure:
            if not client.connected:
                raise BridgeError("the connection was lost") from failure
            self._host.count("timeouts")
            device.silent(loop.time())
            self._note(device, f"does not answer; asked again in {device.wait:g} s")
            return None
        self._answered = loop.time()
        device.answered()
        self._host.heard()
        if answer.isError():
            self._host.count("refusals")
            self._note(device, f"refuses: {answer}")
            return None
        self._host.count("answers")
        self._note(device, "")
        return answer

    def _note(self, device: Device, trouble: str) -> None:
        """Show what is wrong with a device, and log each beginning and end."""
        if bool(device.trouble) != bool(trouble):
            text = trouble or "answers"
            logger.warning("%s: device %d %s", self._host.title, device.number, text)
        device.trouble = trouble
        absent = sum(bool(each.trouble) for each in self._devices)
        self._host.show("devices_in_trouble", absent)

    def _publish(self, register: Register, value: Value) -> None:
        loop = asyncio.get_running_loop()
        last, at = self._published.get(register, (None, 0.0))
        if is_news(register, last, value) or loop.time() - at >= register.refresh:
            node = register.node or self._host.name
            if self._host.read(node, register.quantity, value, register.unit):
                self._published[register] = (value, loop.time())

    def _accept_writes(self, register: Register) -> None:
        node = register.node or self._host.name

        def accept(message: Message) -> ReasonCode:
            try:
                value = _number(bytes(message.payload))
                if not register.is_bit:
                    register.words(value)
            except ValueError:
                return ReasonCode.PAYLOAD_FORMAT_INVALID
            if len(self._writes) >= WRITES_MAX:
                self._host.count("writes_refused")
                return ReasonCode.QUOTA_EXCEEDED
            self._writes.append((register, value))
            self._write_asked.set()
            return ReasonCode.SUCCESS

        self._host.listen(f"sensors/{node}/{register.quantity}/set", accept)

    async def _write(self, client: "Client", register: Register, value: float) -> None:
        """Write, then read back what the device has made of it."""
        device = next(each for each in self._devices if each.number == register.device)
        if register.is_bit:
            question = client.write_coil(register.address, bool(value), device_id=device.number)
        elif register.size == 1:
            word = register.words(value)[0]
            question = client.write_register(register.address, word, device_id=device.number)
        else:
            words = register.words(value)
            question = client.write_registers(register.address, words, device_id=device.number)
        if await self._ask(client, device, question) is None:
            self._host.count("writes_failed")
            return
        self._host.count("writes")
        self._published.pop(register, None)
        await asyncio.sleep(self._settings.quiet)
        await self._read(client, device, Request([register]))


def _number(payload: bytes) -> float:
    """Return the number that a payload says: JSON, or on and off; raise ValueError."""
    text = payload.decode().strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    value = json.loads(text)
    if isinstance(value, dict):
        value = value.get("value")
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{text}: only a number, on or off is allowed")
    return float(value)


KIND = BridgeKind(
    name="modbus",
    summary="registers of devices on a Modbus bus, RTU or TCP",
    settings=ModbusSettings,
    make=ModbusBridge,
    needs=("pymodbus", "serial"),
    requirement="tidegate[modbus]",
    counters={
        "answers": "Answers of devices.",
        "timeouts": "Requests that a device did not answer in time.",
        "refusals": "Requests that a device refused.",
        "writes": "Writes that a device took.",
        "writes_failed": "Writes that a device did not take.",
        "writes_refused": "Writes refused because too many waited.",
    },
    gauges={"devices_in_trouble": "Devices that do not answer, or refuse."},
    default_name=lambda settings: port_name(settings.port),
)
