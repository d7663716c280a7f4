"""Where an attack takes place, and what several attacks begin with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.wire import Attacker, connect, publish_numbered, subscribe


@dataclass
class Scene:
    """The ports of a gateway, how large the attack is (1 at most), and who takes part in it.

    `rules` is the ACL file of the listener at `rules_port`; `reload` has the gateway read it again.
    """

    port: int
    tls_port: int
    websocket_port: int
    rules_port: int
    rules: Path
    reload: Callable[[], None]
    scale: float
    attackers: list[Attacker] = field(default_factory=list)

    def many(self, count: int) -> int:
        return max(1, round(count * self.scale))

    def attacker(self, port: int | None = None, receive_buffer: int | None = None) -> Attacker:
        attacker = Attacker(port or self.port, receive_buffer)
        self.attackers.append(attacker)
        return attacker

    def client(self, name: str, version: int = 4, receive_buffer: int | None = None) -> Attacker:
        return self.attacker(receive_buffer=receive_buffer).login(name, version)

    def close(self) -> None:
        for attacker in self.attackers:
            attacker.close()


Attack = Callable[[Scene], None]
"""Returns when it has done its worst; what it leaves open is closed by its scene."""


def queue_for(scene: Scene, client_id: str, count: int, block: bytes = b"") -> None:
    """Have so many messages of QoS 1 wait for a client that has gone."""
    gone = scene.attacker()
    gone.send(connect(client_id, flags=0))
    assert gone.next()[0] == 0x20
    gone.send(subscribe([f"{client_id}/#"], qos=1))
    assert gone.next()[0] == 0x90
    gone.close()
    publisher = scene.client(f"to {client_id}", 5)
    for first in range(0, count, 100):
        for number in range(first, min(first + 100, count)):
            topic = f"{client_id}/{number % 1_000}"
            publisher.send(publish_numbered(topic, b"x" * 30, number % 1_000 + 1, block))
        for _ in range(first, min(first + 100, count)):
            assert publisher.next()[0] == 0x40


def publish_at_qos_1(scene: Scene, prefix: str, count: int) -> None:
    """Publish so many messages, a hundred at a time, each to a topic of its own."""
    publisher = scene.client("p", 5)
    for first in range(0, count, 100):
        for number in range(100):
            topic = f"{prefix}/{first + number}"
            publisher.send(publish_numbered(topic, b"x" * 30, number + 1, b""))
        for _ in range(100):
            answer = publisher.next()
            assert (answer[0], len(answer)) == (0x40, 4)  # no reason code: a subscriber has it
    publisher.close()
