"""A node and a gateway on a bad line: every sample is stored once, or counted as dropped."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from node.loop import Node

from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.bridges.supervision.host import Host
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.clocks import ManualClock
from tests.support.nodes import bridges as nodes
from tests.support.nodes.bridges import Disk, MemoryFrames


class Wire:
    """Carries bytes to the node; `noise` is how often a piece is damaged on its way."""

    def __init__(self, chance: random.Random, noise: float) -> None:
        self._chance = chance
        self.noise = noise
        self.to_gateway: list[bytes] = []
        self.to_node: list[bytes] = []

    def read(self) -> bytes:
        heard, self.to_node = b"".join(self.to_node), []
        return heard

    def write(self, data: bytes) -> None:
        self.to_gateway.append(self.carried(data))

    def answer(self, data: bytes) -> None:
        self.to_node.append(self.carried(data))

    def carried(self, data: bytes) -> bytes:
        """Return what arrives: as it was, cut, changed, doubled, or behind noise."""
        if self._chance.random() >= self.noise:
            return data
        place = self._chance.randrange(len(data))
        noise = self._chance.randbytes(self._chance.randrange(1, 300))
        return self._chance.choice(
            [b"", data[:place], data[place:], data[:place] + noise + data[place:], data * 2, noise]
        )


class Gateway:
    """Stores readings and frame names together at a commit; a crash loses what came after it."""

    def __init__(self, wire: Wire, chance: random.Random) -> None:
        self._wire = wire
        self._chance = chance
        self.refusing = 0.0
        self.stored: list[str] = []
        self.frames = MemoryFrames()
        self._committed_names: list[tuple[str, int, int]] = []
        self.crash()

    def crash(self) -> None:
        """Lose what was not committed, and start again."""
        self._gathered: list[str] = []
        self.disk = Disk()
        self.disk.waits = True
        self.frames.remembered = list(self._committed_names)
        gateway = nodes.Gateway.make(ManualClock())
        gateway.disk, gateway.frames = self.disk, self.frames
        services = replace(gateway.services, publish=self._publish)
        self.intake = FrameIntake(Host("serial", "port", services), self._wire.answer)

    def _publish(self, message: Message) -> ReasonCode:
        if self._chance.random() < self.refusing:
            return ReasonCode.QUOTA_EXCEEDED
        self._gathered.append(message.payload.decode())
        return ReasonCode.SUCCESS

    def hear(self) -> None:
        pieces, self._wire.to_gateway = self._wire.to_gateway, []
        for piece in pieces:
            self.intake.feed(piece)

    def commit(self) -> None:
        self.stored += self._gathered
        self._gathered = []
        self._committed_names = list(self.frames.remembered)
        self.disk.commit()


class Counter:
    """A sensor that gives a new number each time, and the node's clock in one."""

    def __init__(self) -> None:
        self.samples = 0
        self.now = 0

    def read(self) -> list[tuple[str, int, str | None]]:
        self.samples += 1
        return [("count", self.samples, None)]

    def ms(self) -> int:
        return self.now


@given(st.integers(), st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0, 0.2), st.integers(1, 1500))
def test_every_sample_is_stored_once_or_counted_as_dropped(
    seed: int, noise: float, refusing: float, crashes: float, interval_ms: int
) -> None:
    chance = random.Random(seed)
    wire, sensor = Wire(chance, noise), Counter()
    gateway = Gateway(wire, chance)
    gateway.refusing = refusing
    node = Node("n1", 7, wire, sensor, sensor, interval_ms, wall=lambda: sensor.samples)
    for _ in range(200):
        sensor.now += chance.randrange(500)
        node.step()
        gateway.hear()
        if chance.random() < crashes:
            gateway.crash()
        elif chance.random() < 0.5:
            gateway.commit()
    settle(node, wire, gateway, sensor)
    assert len(set(gateway.stored)) == len(gateway.stored) == sensor.samples - node.buffer.dropped


def settle(node: Node, wire: Wire, gateway: Gateway, sensor: Counter) -> None:
    """Repair everything and give the node the time to send what it still has."""
    wire.noise = gateway.refusing = 0.0
    node._interval_ms = node._next_sample = 1 << 40  # no more samples
    for _ in range(100):
        sensor.now += 1000
        node.step()
        gateway.hear()
        gateway.commit()
    assert node.buffer.next_due() is None
