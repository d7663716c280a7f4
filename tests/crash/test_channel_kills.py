"""A gateway with a channel is killed again and again; what it acknowledged reaches a consumer.

TIDEGATE_CRASH_ROUNDS=50 makes it thorough.
"""

import os
import random
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

ROUNDS = int(os.environ.get("TIDEGATE_CRASH_ROUNDS", "2"))

CHANNEL = """
[[channel]]
name = "jobs"
filter = "jobs/#"
choice = "{choice}"
memory_messages = {memory}
inflight_timeout = 1
"""

LOOK = 0.5
"""Seconds between two comparisons of all that came with all that was acknowledged."""

UP = (0.05, 0.6)
"""Seconds between a start and its end by kill -9."""


class Feeder:
    """Publishes numbers at QoS 1 without a pause, and notes which were acknowledged."""

    def __init__(self, port: int) -> None:
        self.acknowledged: set[int] = set()
        self.number = 0
        self._by_identifier: dict[int, int] = {}
        # taken by the test's thread: paho answers under a lock that `publish` waits for
        self._answers: deque[tuple[int, bool]] = deque()
        self._client = _client("feeder", clean=False)
        self._client.on_publish = self._on_publish
        self._client.connect_async("127.0.0.1", port)
        self._client.loop_start()

    def feed(self, seconds: float) -> None:
        until_second = time.monotonic() + seconds
        while time.monotonic() < until_second:
            sent = self._client.publish(f"jobs/{self.number % 5}", str(self.number), qos=1)
            self._by_identifier[sent.mid] = self.number
            self.number += 1
            self.look()
            if self.number % 20 == 0:
                time.sleep(0.002)

    def look(self) -> set[int]:
        """Take in answers; return what was acknowledged."""
        while self._answers:
            mid, taken = self._answers.popleft()
            number = self._by_identifier.pop(mid, None)
            if number is not None and taken:
                self.acknowledged.add(number)
        return self.acknowledged

    def _on_publish(self, _client: object, _data: object, mid: int, code: Any, _: object) -> None:
        self._answers.append((mid, not code.is_failure))

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Worker:
    """A consumer that acknowledges what it has noted."""

    def __init__(self, name: str, port: int) -> None:
        self.received: set[int] = set()
        self._client = _client(name, clean=True)
        self._client.on_connect = lambda client, *_: client.subscribe("$share/jobs/jobs/#", 1)
        self._client.on_message = lambda _c, _d, message: self.received.add(int(message.payload))
        self._client.connect_async("127.0.0.1", port)
        self._client.loop_start()

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def _client(name: str, *, clean: bool) -> paho.Client:
    client = paho.Client(CallbackAPIVersion.VERSION2, name, clean_session=clean)
    client.reconnect_delay_set(1, 1)
    client.max_inflight_messages_set(100)
    return client


def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    choice = chance.choice(["round_robin", "least_inflight", "sticky", "random"])
    text = CHANNEL.format(choice=choice, memory=chance.choice([1, 10, 1000]))
    gateway = GatewayProcess(tmp_path, text)
    gateway.start()
    feeder = Feeder(gateway.port)
    workers = [Worker(name, gateway.port) for name in ("one", "two")]
    try:
        for _ in range(ROUNDS):
            feeder.feed(chance.uniform(*UP))
            gateway.kill()
            gateway.start()
        feeder.feed(0.2)

        def came() -> int:
            return sum(len(worker.received) for worker in workers)

        def more_came(before: int) -> bool:
            return came() > before

        def all_came() -> bool:
            missing = feeder.look().difference(*[worker.received.copy() for worker in workers])
            return len(feeder.acknowledged) > 0 and not missing

        what = f"another of the messages that were acknowledged, seed {seed}"
        before = came()
        while not all_came():  # a hundred rounds leave a hundred thousand behind
            until(partial(more_came, before), what, gateway.log)
            before = came()
            time.sleep(LOOK)  # or consumers, threads of this process, would get little done
    finally:
        feeder.stop()
        for worker in workers:
            worker.stop()
        gateway.kill()
