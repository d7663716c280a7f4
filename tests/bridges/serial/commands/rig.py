"""A node's own code and the gateway's bridge, joined by a line that loses what it likes."""

import asyncio
import json
from typing import Any

from node.loop import Node

from gateway.bridges.serial.serial_bridge import SerialBridge
from gateway.bridges.serial.serial_settings import SerialSettings
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.nodes.bridges import Gateway

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


def install(**fields: object) -> bytes:
    order = {"command": "install", "quantity": "count", "version": 1, **fields}
    return json.dumps(order).encode()
