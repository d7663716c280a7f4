"""A Modbus bus to readings, and messages on `…/set` to coils and holding registers."""

import asyncio
import contextlib
import logging
import math
import termios
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gateway.bridges.kind import BridgeKind, FoundTable, ScanOptions
from gateway.bridges.modbus.answer_filter import AnswerFilter, Framing, RtuFraming, TcpFraming
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.register import Register, is_news
from gateway.bridges.modbus.requests import (
    FAILURES_MAX,
    FOR_NOW,
    SILENCES_OF_LOSS,
    Device,
    Request,
    plan,
)
from gateway.bridges.readings.reading import Value
from gateway.bridges.serial.serial_settings import port_name
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from pymodbus.client import AsyncModbusSerialClient, AsyncModbusTcpClient

    Client = AsyncModbusSerialClient | AsyncModbusTcpClient

WRITES_MAX = 32
"""Writes that wait for the bus; further ones are refused."""

DEAF_AFTER = 10.0
"""Seconds without an answer of any device, after which the connection is renewed."""

REFUSALS = {
    1: "illegal function",
    2: "illegal address",
    3: "illegal value or number of registers",
    4: "the device failed",
    5: "the device needs longer",
    6: "the device is busy",
    8: "parity error in the device",
}
"""Codes of the specification (Modbus Application Protocol, 7)."""

NOT_REACHED = (10, 11)
"""Exceptions of a gateway in between that does not reach the device."""

WRITE_MAX = 17
"""Bytes of a write request, at least as many as of its answer."""

TOO_SHORT = 3
"""An answer with too few registers counts as an exception with this code."""

logger = logging.getLogger(__name__)


class ModbusBridge:
    """Polls one device after the other; one that does not answer is skipped for a while."""

    def __init__(self, settings: ModbusSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._devices = plan(settings.registers, settings.max_registers)
        self._polled = [each for each in self._devices if each.requests]
        self._published: dict[Register, tuple[Value, float]] = {}
        self._writes: deque[tuple[Register, float]] = deque()
        self._write_requested = asyncio.Event()
        self._filter = self._filter_of(TcpFraming())
        self._earliest = self._early_at = 0.0
        """Before when no answer to the question can arrive, and when one did."""
        self._late_logged: set[int] = set()
        for register in settings.registers:
            if register.is_written:
                self._accept_writes(register)
            within = register.interval if register.deadband is None else register.refresh
            host.set_longest_gap(register.topic(host.name), within)

    async def run(self) -> None:
        """Poll until the connection is lost, then raise BridgeError."""
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
                _end_if_cancelled()
                if loop.time() - self._answered > self._patience:
                    raise BridgeError("no device answers")
        finally:
            client.close()

    @property
    def _patience(self) -> float:
        polled = [request for each in self._polled for request in each.requests]
        quickest = min((each.first.interval for each in polled), default=math.inf)
        return DEAF_AFTER + 2 * quickest

    async def _connect(self) -> "Client":
        self._filter = self._filter_of(TcpFraming())
        if self._settings.is_rtu:
            from pymodbus.framer import FramerRTU

            self._filter = self._filter_of(RtuFraming(FramerRTU.compute_CRC))
        client = make_client(self._settings, self._filter)
        try:
            connected = await client.connect()
        except (OSError, termios.error) as failure:  # such as a parity that the adapter lacks
            raise BridgeError(str(failure)) from failure
        if not connected:
            client.close()
            raise BridgeError(f"{self._settings.port} cannot be opened")
        return client

    def _filter_of(self, framing: Framing) -> AnswerFilter:
        return AnswerFilter(framing, self._on_late_answer, self._is_early)

    def _is_early(self) -> bool:
        """Return whether an answer that arrives now may be that to another question."""
        now = asyncio.get_running_loop().time()
        if now >= self._earliest:
            return False
        self._early_at = now
        return True

    async def _poll(self, client: "Client") -> None:
        """Send the request that is due first; else wait for one or for a write."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        device = min(self._polled, key=lambda each: each.due(now), default=None)
        wait = math.inf if device is None else device.due(now) - now
        if device is None or wait > 0:
            self._write_requested.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._write_requested.wait(), min(wait, 1.0))
            return
        request = device.next(now)
        request.due = max(request.due + request.first.interval, loop.time())
        await self._read(client, device, request)

    async def _read(self, client: "Client", device: Device, request: Request) -> None:
        read = {
            "coil": client.read_coils,
            "discrete": client.read_discrete_inputs,
            "input": client.read_input_registers,
            "holding": client.read_holding_registers,
        }[request.first.table]
        question = read(request.first.address, count=request.count, device_id=device.number)
        is_probe = request is device.probe
        answer = await self._ask(client, device, question, request)
        if answer is None:
            return
        if is_probe:
            device.believe(asyncio.get_running_loop().time(), refused=answer.isError())
        words = [] if answer.isError() else answer.registers or answer.bits
        if len(words) < request.count:
            if not is_probe:
                code = answer.exception_code if answer.isError() else TOO_SHORT
                self._refused(device, request, code)
            return
        request.answered()
        self._note_request(device, request, "")
        for register in request.registers:
            start = register.address - request.first.address
            self._on_words(register, words[start : start + register.size])

    async def _ask(
        self, client: "Client", device: Device, question: Any, request: Request | None = None
    ) -> Any:
        """Return the answer, which may be an exception, or None if there is none.

        All are counted.
        """
        from pymodbus.exceptions import ModbusException

        loop = asyncio.get_running_loop()
        polled = loop.time()
        self._earliest = polled + device.earliest
        sizes = request.sizes if request is not None else (WRITE_MAX, WRITE_MAX)
        client.ctx.comm_params.timeout_connect = self._settings.timeout + self._settings.line_time(
            *sizes
        )
        try:
            answer = await question
        except asyncio.CancelledError:
            device.expect_late(request, polled)
            raise
        except ModbusException as failure:
            if not client.connected:
                self._doubt(device, request, SILENCES_OF_LOSS)
                raise BridgeError("the connection was lost") from failure
            if self._filter.held and request is not None:  # it was the answer, sooner than usual
                device.quickest, request.due = self._early_at - polled, loop.time()
                return None
            self._host.count("timeouts")
            self._miss(device, request, polled)
            return None
        finally:
            client.ctx.recv_buffer = b""
            self._filter.expect_nothing()
        if answer.isError() and answer.exception_code in NOT_REACHED:
            self._host.count("refusals")
            self._miss(device, request, polled, late=False)
            return None
        self._answered = loop.time()
        device.quickest = min(device.quickest, self._answered - polled)
        named = bool(self._filter.numbered)
        device.answered(self._answered, named=named, listen=self._settings.timeout)
        self._host.received()
        self._host.count("refusals" if answer.isError() else "answers")
        self._note(device, "")
        return answer

    def _miss(
        self, device: Device, request: Request | None, polled: float, *, late: bool = True
    ) -> None:
        """Skip a device for a while that did not answer."""
        device.silent(asyncio.get_running_loop().time())
        if late and not self._filter.numbered:
            device.expect_late(request, polled)
        device.last_request_at = polled
        self._note(device, f"does not answer; polled again in {device.wait:g} s")
        self._doubt(device, request)

    def _doubt(self, device: Device, request: Request | None, silences: int = 1) -> None:
        """Ask for less than a request without an answer; report a value that has none."""
        if request is not None and device.doubt(request, silences):
            request.refused += 1
            request.refuse(asyncio.get_running_loop().time())
            self._note_request(device, request, f"does not answer for {request.title}")

    def _on_late_answer(self, number: int) -> None:
        """Drop an answer on a serial line that came too late, and wait for fewer."""
        self._host.count("late_answers")
        device = next((each for each in self._devices if each.number == number), None)
        if device is None:
            return
        now = asyncio.get_running_loop().time()
        if device.repeats(now):
            logger.warning(
                "%s: device %d answers again %.2g s after an answer: it is polled less often",
                *(self._host.title, number, now - device.answered_at),
            )
        if device.wait and number not in self._late_logged:
            self._late_logged.add(number)
            elapsed = now - device.last_request_at
            logger.warning(
                "%s: device %d answers %.1f s after the request, too late: timeout must be longer",
                self._host.title,
                number,
                elapsed,
            )
        device.late()

    def _refused(self, device: Device, request: Request, code: int) -> None:
        """Split the request if one part may be refused; else report it and poll it less often."""
        now = asyncio.get_running_loop().time()
        request.refused += 1
        reason = REFUSALS.get(code, f"code {code}")
        if code in FOR_NOW and request.refused < FAILURES_MAX:
            return
        if request.may_split(code):
            text = f"device {device.number} refuses {request.title} ({reason}): requested in halves"
            self._host.log(logging.INFO, text, f"device {device.number} halves")
            device.split(request, now)
            self._host.trouble(f"device {device.number}, {request.title}", "")
            return
        if request.may_probe(code):
            device.suspect(request, now)
            return
        if code not in FOR_NOW:
            request.refuse(now)
        self._note_request(device, request, f"refuses {request.title}: {reason}")

    def _note(self, device: Device, trouble: str) -> None:
        """Show a device's problem, and log when it begins and ends."""
        if bool(device.trouble) != bool(trouble):
            kind = f"device {device.number} {'misses' if trouble else 'answers'}"
            text = f"device {device.number} {trouble or 'answers'}"
            self._host.log(logging.WARNING, text, kind)
        device.trouble = trouble
        self._host.trouble(f"device {device.number}", trouble)
        self._show_trouble()

    def _note_request(self, device: Device, request: Request, trouble: str) -> None:
        """Show that a device refuses a request, and log when that begins and ends."""
        if bool(request.trouble) != bool(trouble):
            text = trouble or f"answers for {request.title}"
            self._host.log(logging.WARNING, f"device {device.number} {text}")
        request.trouble = trouble
        self._host.trouble(f"device {device.number}, {request.title}", trouble)
        self._show_trouble()

    def _show_trouble(self) -> None:
        troubled = sum(each.in_trouble for each in self._devices)
        self._host.show("devices_in_trouble", troubled)

    def _on_words(self, register: Register, words: Sequence[int]) -> None:
        if register.is_invalid(words):
            self._host.count("invalid")
        else:
            self._publish(register, register.value(words))

    def _publish(self, register: Register, value: Value) -> None:
        loop = asyncio.get_running_loop()
        last, at = self._published.get(register, (None, 0.0))
        if is_news(register, last, value) or loop.time() - at >= register.refresh:
            node = register.node or self._host.name
            instance = register.instance or ""
            if self._host.read(node, register.quantity, value, register.unit, instance=instance):
                self._published[register] = (value, loop.time())

    def _accept_writes(self, register: Register) -> None:
        def accept(message: Message) -> ReasonCode:
            try:
                value = register.number_of(bytes(message.payload))
                if not register.is_bit:
                    register.words(value)
            except ValueError:
                return ReasonCode.PAYLOAD_FORMAT_INVALID
            if len(self._writes) >= WRITES_MAX:
                self._host.count("writes_refused")
                return ReasonCode.QUOTA_EXCEEDED
            self._writes.append((register, value))
            self._write_requested.set()
            return ReasonCode.SUCCESS

        self._host.offer(register.topic(self._host.name), register.control, accept)

    async def _write(self, client: "Client", register: Register, value: float) -> None:
        """Write a value, then read it back as the device stored it."""
        device = next(each for each in self._devices if each.number == register.device)
        if register.is_bit:
            question = client.write_coil(register.address, bool(value), device_id=device.number)
        elif register.size == 1:
            word = register.words(value)[0]
            question = client.write_register(register.address, word, device_id=device.number)
        else:
            words = register.words(value)
            question = client.write_registers(register.address, words, device_id=device.number)
        answer = await self._ask(client, device, question)
        if answer is None or answer.isError():
            self._host.count("writes_failed")
            return
        self._host.count("writes")
        if register.press is not None:
            return
        self._published.pop(register, None)
        await asyncio.sleep(max(self._settings.quiet, device.pause))
        await self._read(client, device, Request([register]))


def make_client(settings: ModbusSettings, answer_filter: AnswerFilter | None = None) -> "Client":
    """Return a pymodbus client that asks once and connects once."""
    client = _make_client(settings, answer_filter)
    client.set_max_no_responses(1_000_000_000)  # a dead device is no reason to close the connection
    return client


def _make_client(settings: ModbusSettings, answer_filter: AnswerFilter | None) -> "Client":
    from pymodbus import FramerType
    from pymodbus.client import AsyncModbusSerialClient, AsyncModbusTcpClient

    from gateway.bridges.serial.port import find_device

    logging.getLogger("pymodbus").setLevel(logging.CRITICAL)  # its errors are reported here
    port = settings.port
    common: dict[str, Any] = {
        "timeout": settings.timeout,
        "retries": 0,  # the next poll retries
        "reconnect_delay": 0,  # the supervisor reconnects
        "trace_packet": answer_filter,
    }
    if settings.is_rtu:
        common["framer"] = FramerType.RTU
    if "://" in port:
        address = port.partition("://")[2]
        host, _, number = address.rpartition(":")
        if not number.isdecimal():
            host, number = address, "502"
        return AsyncModbusTcpClient(host.strip("[]"), port=int(number), **common)
    return AsyncModbusSerialClient(
        find_device(port),
        baudrate=settings.baud,
        parity=settings.parity[0].upper(),
        stopbits=settings.stop_bits,
        **common,
    )


def _end_if_cancelled() -> None:
    """Raise CancelledError if the bridge was cancelled while an answer arrived.

    pymodbus waits with asyncio.wait_for, which then returns the answer (Python 3.11).
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _series(settings: ModbusSettings, name: str) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(settings.register):
        yield f"register[{index}].quantity", each.topic(name)
    for index, device in enumerate(settings.mapped):
        for each in device.registers:
            yield f"device[{index}].node", each.topic(name)


def _notes(settings: ModbusSettings) -> Iterator[str]:
    """Yield the load of the bus, and what cannot be polled as often as configured."""
    devices = plan(settings.registers, settings.max_registers)
    requests = [request for device in devices for request in device.requests]
    if not requests:
        return
    load = sum(settings.poll_time(each) / each.first.interval for each in requests)
    longest = sum(map(settings.poll_time, requests))
    many = f"{len(requests)} request{'s' if len(requests) > 1 else ''}"
    text = f"a poll of {many} takes {longest:.2g} s, {load:.0%} of the intervals"
    if load > 1.0:
        text += ": that is too much; give a longer interval, or a higher baud"
    yield text


async def _scan(options: ScanOptions) -> list[FoundTable]:
    from gateway.bridges.modbus.scan import scan_buses

    return await scan_buses(options)


KIND = BridgeKind(
    name="modbus",
    summary="registers of devices on a Modbus bus, RTU or TCP",
    settings=ModbusSettings,
    make=ModbusBridge,
    needs=("pymodbus", "serial"),
    extra="modbus",
    counters={
        "answers": "Answers of devices.",
        "late_answers": "Answers that were late, of another device, or to no question; dropped.",
        "invalid": 'Values that mean "no value".',
        "timeouts": "Requests that a device did not answer in time.",
        "refusals": "Requests that a device refused.",
        "writes": "Writes that a device accepted.",
        "writes_failed": "Writes that a device did not accept.",
        "writes_refused": "Writes refused because too many waited.",
    },
    gauges={"devices_in_trouble": "Devices that do not answer, or refuse."},
    default_name=lambda settings: port_name(settings.port),
    series=_series,
    notes=_notes,
    place=lambda settings: settings.port,
    scan=_scan,
)
