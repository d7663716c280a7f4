"""Commands from a client to the node's own code and back, over a line that loses what it likes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from node.loop import Node

from gateway.bridges.serial import node_commands
from gateway.bridges.serial.command_body import Command, decode_answer
from gateway.bridges.serial.frame_body import MalformedFrameError
from gateway.bridges.serial.node_commands import ATTEMPTS, NODES_MAX, WAITING_MAX
from gateway.bridges.serial.node_order import parse_order
from gateway.bridges.serial.serial_bridge import SerialBridge
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.bridges import Gateway
from tests.support.clocks import NOW, ManualClock
from tests.support.storage import until
from tests.support.table import table

TOPIC = "sensors/n1/command"
BOOT = 0x0A1B2C3D


class Line:
    """Joins a node to the bridge; `lost` pieces of each direction do not arrive."""

    def __init__(self) -> None:
        self.to_node: list[bytes] = []
        self.to_gateway: asyncio.Queue[bytes] = asyncio.Queue()
        self.lost_to_node = 0
        self.lost_answers = 0
        self.sent: list[bytes] = []

    # the node's end
    def read_node(self) -> bytes:
        heard, self.to_node = b"".join(self.to_node), []
        return heard

    # the gateway's end, as a port
    async def read(self) -> bytes:
        return await self.to_gateway.get()

    def write(self, data: bytes) -> bool:
        self.sent.append(data)
        if self.lost_to_node:
            self.lost_to_node -= 1
        else:
            self.to_node.append(data)
        return True

    def close(self) -> None:
        self.to_node.clear()


class NodeEnd:
    def __init__(self, line: Line) -> None:
        self._line = line

    def read(self) -> bytes:
        return self._line.read_node()

    def write(self, data: bytes) -> None:
        if len(data) < 30 and self._line.lost_answers:
            self._line.lost_answers -= 1
        else:
            self._line.to_gateway.put_nowait(data)


class Sensor:
    def read(self) -> list[tuple[str, int, None]]:
        return [("count", 7, None)]


class Ticks:
    def ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


class Board:
    def __init__(self) -> None:
        self.identified: list[int] = []
        self.restarted = False

    def identify(self, seconds: int) -> None:
        self.identified.append(seconds)

    def restart(self) -> None:
        self.restarted = True


class Rig:
    """A gateway, its bridge, and a node that a task steps."""

    def __init__(self) -> None:
        self.gateway = Gateway.make()
        self.line = Line()
        self.board = Board()
        self.boot(BOOT)
        self.host = self.gateway.host("serial", "tty")
        self.bridge = SerialBridge(SerialSettings(port="tty"), self.host)

    def boot(self, boot: int, name: str = "n1") -> None:
        self.board.restarted = False
        self.node = Node(
            name, boot, NodeEnd(self.line), Sensor(), Ticks(), 60_000, resend_ms=20,
            board=self.board,
        )  # fmt: skip

    async def live(self) -> None:
        """Step the node; a restarted one gets another boot id."""
        while True:
            self.node.step()
            if self.board.restarted:
                self.boot(BOOT + 1)
            await asyncio.sleep(0.001)

    def tell(self, **fields: Any) -> list[ReasonCode]:
        return self.gateway.subscriptions.publish(TOPIC, json.dumps(fields).encode())

    @property
    def answers(self) -> list[dict[str, Any]]:
        messages = self.gateway.broker.messages
        return [json.loads(each.payload) for each in messages if each.topic == f"{TOPIC}/answer"]


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    rig = Rig()
    monkeypatch.setattr(node_commands, "RESEND_SECONDS", 0.02)

    async def open_port(_path: str, _baud: int) -> Line:
        return rig.line

    monkeypatch.setattr("gateway.bridges.serial.serial_bridge.open_port", open_port)
    tasks = [asyncio.create_task(rig.bridge.run()), asyncio.create_task(rig.live())]
    await until(lambda: bool(rig.gateway.subscriptions.receivers))
    yield rig
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_command_is_carried_out_and_answered(rig: Rig) -> None:
    assert rig.tell(command="identify", seconds=7, id="a") == [ReasonCode.SUCCESS]
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"id": "a", "command": "identify", "status": "done"}]
    assert rig.board.identified == [7]


async def test_commands_of_a_node_go_one_after_the_other(rig: Rig) -> None:
    for number in range(1, 6):
        rig.tell(command="identify", seconds=number, id=number)
    await until(lambda: len(rig.answers) == 5)
    assert [each["id"] for each in rig.answers] == rig.board.identified == [1, 2, 3, 4, 5]


async def test_what_is_lost_is_sent_again_and_carried_out_once(rig: Rig) -> None:
    rig.line.lost_to_node, rig.line.lost_answers = 2, 3
    rig.tell(command="identify")
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"command": "identify", "status": "done"}]
    assert rig.board.identified == [10]
    assert len(rig.line.sent) >= 6


async def test_without_an_answer_the_client_is_told_and_the_next_one_goes(rig: Rig) -> None:
    rig.line.lost_to_node = ATTEMPTS
    rig.tell(command="read")
    rig.tell(command="identify")
    await until(lambda: len(rig.answers) == 2)
    assert rig.answers[0] == {
        "command": "read",
        "status": "no answer",
        "reason": f"sent {ATTEMPTS} times",
    }
    assert rig.answers[1]["status"] == "done"


async def test_a_gateway_that_starts_anew_goes_on_behind_the_last_number(rig: Rig) -> None:
    rig.tell(command="identify")
    rig.tell(command="identify")
    await until(lambda: len(rig.answers) == 2)
    for known in rig.bridge._intake._on_node.__self__._nodes.values():  # type: ignore[attr-defined]  # what a restart forgets
        known.number = 0
    rig.tell(command="identify", seconds=9)
    await until(lambda: len(rig.answers) == 3)
    assert rig.board.identified == [10, 10, 9]


async def test_a_restart_is_done_when_the_node_is_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_commands, "RESEND_SECONDS", 0.2)
    rig.line.lost_answers = 1_000_000
    rig.tell(command="restart")
    await until(lambda: rig.board.restarted or rig.node._boot == BOOT + 1)
    await until(lambda: bool(rig.answers))
    assert rig.answers == [{"command": "restart", "status": "done"}]


async def test_an_update_is_the_gateways_and_the_next_command_waits_for_it(rig: Rig) -> None:
    """The node restarts meanwhile, which neither begins it again nor ends it."""
    ended = asyncio.get_running_loop().create_future()
    updates: list[str] = []

    async def update(port: str) -> str:
        updates.append(port)
        return "" if len(updates) > 1 else await ended

    object.__setattr__(rig.host.services, "update", update)
    rig.tell(command="update", id=1)
    rig.tell(command="identify", seconds=7, id=2)
    rig.tell(command="update", id=3)
    rig.boot(BOOT + 1)
    await until(lambda: rig.gateway.counters.count("tidegate/serial/frames") > 1)
    assert (updates, rig.answers, rig.board.identified) == (["tty"], [], [])
    ended.set_result("no board")
    await until(lambda: len(rig.answers) == 3)
    assert rig.answers == [
        {"id": 1, "command": "update", "status": "failed", "reason": "no board"},
        {"id": 2, "command": "identify", "status": "done"},
        {"id": 3, "command": "update", "status": "done"},
    ]


async def test_an_update_ends_with_its_bridge(rig: Rig) -> None:
    cancelled = asyncio.Event()

    async def update(_port: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    object.__setattr__(rig.host.services, "update", update)
    rig.tell(command="update")
    await asyncio.sleep(0)
    rig.host.close()
    await cancelled.wait()


async def test_a_gateway_without_updates_says_so(rig: Rig) -> None:
    rig.tell(command="update")
    await until(lambda: bool(rig.answers))
    assert rig.answers[0]["reason"] == "tty: this gateway updates no nodes"


async def test_what_waits_goes_to_the_next_start_of_the_node(rig: Rig) -> None:
    rig.line.lost_to_node = 1
    rig.tell(command="identify", seconds=3)
    rig.boot(BOOT + 5)
    await until(lambda: bool(rig.answers))
    assert rig.board.identified == [3]


async def test_a_node_refuses_what_its_board_cannot(rig: Rig) -> None:
    rig.node._board = None
    rig.tell(command="identify")
    await until(lambda: bool(rig.answers))
    assert (rig.answers[0]["status"], rig.answers[0]["reason"]) == (
        "refused",
        "the node does not allow it",
    )


async def test_too_many_that_wait_are_refused(rig: Rig) -> None:
    rig.line.lost_to_node = 1_000_000
    codes = [rig.tell(command="read")[0] for _ in range(WAITING_MAX + 1)]
    assert codes == [ReasonCode.SUCCESS] * WAITING_MAX + [ReasonCode.QUOTA_EXCEEDED]
    assert rig.gateway.figure("serial/commands_refused") == 1


async def test_only_so_many_nodes_are_given_commands(rig: Rig) -> None:
    for number in range(NODES_MAX + 5):
        rig.boot(number, f"node{number}")
        rig.node.step()
        await until(rig.line.to_gateway.empty)
    assert len(rig.gateway.subscriptions.receivers) == NODES_MAX


async def test_answers_that_nobody_takes_are_counted(rig: Rig) -> None:
    rig.gateway.broker.code = ReasonCode.QUOTA_EXCEEDED
    rig.tell(command="read")
    await until(lambda: rig.gateway.figure("serial/answers_lost") == 1)


def install(**fields: object) -> bytes:
    order = {"command": "install", "quantity": "count", "version": 1, **fields}
    return json.dumps(order).encode()


INSTALLS = [
    ({"where": "value > 20", "guard": 5}, b"\5\0\0\0\5count\1\x24\0\5\x14" + b"\0" * 7),
    ({"where": "topic = 'sensors/n1/count'", "guard": 0}, b"\0\0\0\0\5count"),
    ({"program": "0110 00"}, b"\x10\x0e\0\0\5count\1\x10\0"),
]


@table("fields, expected", INSTALLS)
def test_what_a_filter_becomes(fields: dict[str, object], expected: bytes) -> None:
    assert parse_order(install(**fields), "n1").program == b"\1\0\0\0" + expected


async def test_a_filter_is_installed_and_refused_by_the_node(rig: Rig) -> None:
    for payload in (install(id=0, where="value > 20"), install(version=2, program="0132")):
        rig.gateway.subscriptions.publish(TOPIC, payload)
    await until(lambda: len(rig.answers) == 2)
    assert rig.node.programs.version == 1
    assert rig.answers[0] == {"id": 0, "command": "install", "status": "done"}
    assert rig.answers[1]["reason"] == "the program does not verify"


ORDERS = [
    (b'{"command":"read"}', (Command.READ, None, 0)),
    (b'{"command":"interval","seconds":0.1,"id":7}', (Command.INTERVAL, 7, 0.1)),
    (b'{"command":"identify"}', (Command.IDENTIFY, None, 10)),
    (b'{"command":"clock","id":"x"}', (Command.CLOCK, "x", 0)),
    (b'{"command":"update","id":8}', (None, 8, 0)),
]


@table("payload, expected", ORDERS)
def test_orders_that_are_understood(payload: bytes, expected: tuple[object, ...]) -> None:
    order = parse_order(payload, "n1")
    assert (order.command, order.id, order.seconds) == expected


MISTAKES = [
    (b"", "a JSON object"),
    (b"[" * 500, "a JSON object"),
    (b'"read"', "a JSON object"),
    (b"{}", "command None: there are read, interval, clock, identify, restart, install, update"),
    (b'{"command":["read"]}', "there are read"),
    (b'{"command":"read","seconds":1}', "seconds: not known of read"),
    (b'{"command":"interval"}', "seconds: a number must be given"),
    (b'{"command":"interval","seconds":true}', "a number must be given"),
    (b'{"command":"interval","seconds":0.01}', "0.1 to 86400 are allowed"),
    (b'{"command":"interval","seconds":NaN}', "are allowed"),
    (b'{"command":"identify","seconds":61}', "1 to 60 are allowed"),
    (b'{"command":"read","id":1.5}', "a text or a whole number"),
    (b'{"command":"read","id":"' + b"x" * 65 + b'"}', "at most 64 characters"),
    (b'{"command":"install"}', "quantity: a text of 1 to 64 bytes"),
    (install(version=0), "version 0: a whole number, 1 to 4294967295"),
    (install(version=None), "version None"),
    (install(guard=86_401), "guard 86401: a whole number, 0 to 86400"),
    (install(), "where (an expression) or program"),
    (install(where="TRUE", program=""), "where (an expression) or program"),
    (install(where=7), "an expression is expected"),
    (install(where="value >"), "where: "),
    (install(where="LENGTH(value) = 2"), "a node can decide nothing of it"),
    (install(where="value IN (" + ",".join(map(str, range(99))) + ")"), "a program of"),
    (install(program="0g"), "hexadecimal digits"),
    (install(program="00" * 220), "at most 229 fit a frame"),
    (install(where="TRUE", colour=1), "colour: not known of install"),
    (b" " * 4097, "4097 bytes: at most 4096"),
]


@table("payload, reason", MISTAKES)
async def test_orders_that_are_not_understood(rig: Rig, payload: bytes, reason: str) -> None:
    before = len(rig.answers)
    assert rig.gateway.subscriptions.publish(TOPIC, payload) == [ReasonCode.PAYLOAD_FORMAT_INVALID]
    await until(lambda: len(rig.answers) > before)
    assert rig.answers[-1]["status"] == "refused"
    assert reason in rig.answers[-1]["reason"]


async def test_a_gateway_that_knows_the_time_sets_the_clocks_of_nodes(rig: Rig) -> None:
    """At a node's start and each hour; nobody asked, so nobody is answered."""
    clock = ManualClock()
    object.__setattr__(rig.host.services, "clock", clock)
    rig.boot(BOOT + 6)

    async def heard() -> None:
        frames = len(rig.gateway.broker.messages)
        rig.node.read_now()
        await until(lambda: len(rig.gateway.broker.messages) > frames)

    def ahead() -> int | None:
        return None if rig.node._ahead is None else rig.node._ahead + Ticks().ms()

    await heard()
    assert ahead() is None
    clock.synchronize(NOW)
    clock.step(node_commands.CLOCK_LOOK_SECONDS)
    await heard()
    await until(lambda: ahead() is not None)
    assert abs((ahead() or 0) - clock.wall_ms()) < 60_000
    clock.step(node_commands.CLOCK_SECONDS - 1)
    await heard()
    assert rig.gateway.figure("serial/commands") == 1
    clock.step(1)
    await heard()
    await until(lambda: abs((ahead() or 0) - clock.wall_ms()) < 60_000)
    rig.boot(BOOT + 7)
    await heard()
    await until(lambda: ahead() is not None)
    assert rig.gateway.figure("serial/commands") == 3
    assert rig.answers == []


async def test_a_refusal_names_its_order(rig: Rig) -> None:
    """As far as it can be told; half of a character is no text that can be sent."""
    for payload in (
        b'{"command":"interval","seconds":0,"id":7}',
        b'{"command":"nonsense","id":"a"}',
        b'{"command":"read","id":8,"\\ud800":1}',
        b'{"command":"read","id":"\\ud800"}',
    ):
        rig.gateway.subscriptions.publish(TOPIC, payload)
    await until(lambda: len(rig.answers) == 4)
    named = [(each.get("id"), each.get("command"), each["status"]) for each in rig.answers]
    assert set(named) == {
        (7, "interval", "refused"),
        (8, "read", "refused"),
        ("?", "read", "done"),
        ("a", None, "refused"),
    }


@table("body", [b"\1\4", b"\1\4\7" + b"\0" * 12, b"\1\4\0" + b"\0" * 13])
def test_answers_that_are_none_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedFrameError, match="answer to a command"):
        decode_answer(body)
