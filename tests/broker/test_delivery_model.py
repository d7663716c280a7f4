"""Messages that delivery policies hold, beside a model: in order, in time, until acknowledged."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.mqtt.packets import Disconnect, PingReq, PingResp, PubAck, Publish, Subscribe
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request

DELAY = 0.2
LATE = DELAY + 1e-6
"""Seconds after which a message has left, whatever became of the last digits of a sum."""

POLICY = DeliveryClassSettings("buffered", 3, 200, round(1000 * DELAY))
DELIVER = (None, "each", "n=2,ms=50", "n=1000,ms=200,bytes=60")
"""Policies of the subscription, none of which holds longer than the class's."""


class HeldMessages(RuleBasedStateMachine):
    """A persistent subscriber at QoS 1 acknowledges, pings, is lost and comes back."""

    client: MemoryClient

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(
            BrokerSettings(delivery=DeliverySettings(device=POLICY, device_persistent=POLICY))
        )
        self.publisher = self.harness.connect("p")
        self.number = 0
        self.owed: dict[int, float] = {}  # when each QoS 1 message was published
        self.unacknowledged: dict[int, int] = {}  # numbers by packet identifier, here
        self.here: dict[int, list[int]] = {0: [], 1: []}  # what came on this connection, by QoS
        self.expected: dict[int, float] = {}  # QoS 0 messages that are to come, and since when

    @initialize(deliver=st.sampled_from(DELIVER), window=st.sampled_from([2, 100]))
    def begin(self, deliver: str | None, window: int) -> None:
        self.window = window
        self.client = self._connect()
        pairs = () if deliver is None else (("$deliver", deliver),)
        self.client.send(Subscribe(9, [request("t", 1)], Properties(user_properties=pairs)))
        self.client.take()

    def _connect(self) -> MemoryClient:
        self.unacknowledged, self.here, self.expected = {}, {0: [], 1: []}, {}
        return self.harness.persistent("c", receive_maximum=self.window)

    def _read(self) -> list[object]:
        packets: list[object] = list(self.client.take())
        for packet in packets:
            if isinstance(packet, Publish):
                number = int(packet.payload)
                self.here[packet.qos].append(number)
                if packet.qos:
                    assert packet.packet_id is not None
                    assert number in self.owed, "sent after its acknowledgement"
                    self.unacknowledged[packet.packet_id] = number
                else:
                    self.expected.pop(number, None)
        return packets

    @rule(qos=st.sampled_from([0, 1]), count=st.integers(1, 4), expires=st.booleans())
    def publish(self, qos: int, count: int, expires: bool) -> None:
        properties = Properties(message_expiry_interval=1000 if expires else None)
        for _ in range(count):
            self.number += 1
            payload = b"%d" % self.number
            packet_id = 7 if qos else 0
            if qos:
                self.owed[self.number] = self.harness.now
            elif len(self.owed) < self.window:  # behind a full window it may be dropped
                self.expected[self.number] = self.harness.now
            self.publisher.send(
                Publish("t", payload, qos, packet_id=packet_id, properties=properties)
            )
            self.publisher.take()

    @rule(seconds=st.sampled_from([0.01, 0.05, 0.1, LATE]))
    def pass_time(self, seconds: float) -> None:
        self.harness.pass_time(seconds)

    @rule(data=st.data())
    @precondition(lambda self: self.unacknowledged)
    def acknowledge(self, data: st.DataObject) -> None:
        packet_id = data.draw(st.sampled_from(sorted(self.unacknowledged)))
        del self.owed[self.unacknowledged.pop(packet_id)]
        self.client.send(PubAck(packet_id))

    @rule()
    def ping(self) -> None:
        self.client.send(PingReq())
        assert self._read()[-1] == PingResp()
        assert not self.expected, "something held stays behind a PINGRESP"

    @rule(how=st.sampled_from(["lost", "goodbye", "take-over"]))
    def come_back(self, how: str) -> None:
        before, old = list(self.owed), self.client
        if how == "lost":
            old.drop()
        elif how == "goodbye":
            old.send(Disconnect())
            self._read()
            assert not self.expected
            assert old.closed()
        self.client = self._connect()
        self._read()
        assert self.here[1] == before[: self.window], "not all that was not acknowledged, at once"

    @invariant()
    def everything_comes_in_its_order_and_in_time(self) -> None:
        if not hasattr(self, "client"):
            return
        self._read()
        for numbers in self.here.values():
            assert numbers == sorted(set(numbers))
        late = self.harness.now - LATE
        waiting = [number for number in self.owed if number not in self.here[1]]
        if len(self.owed) >= self.window:
            assert len(self.unacknowledged) == self.window, "a full window holds something"
        else:
            assert all(self.owed[number] > late for number in waiting)
        assert all(since > late for since in self.expected.values())

    def teardown(self) -> None:
        if hasattr(self, "client"):
            while self.owed:
                self.harness.pass_time(LATE)
                self._read()
                assert self.unacknowledged, "a message is held for ever"
                for packet_id, number in self.unacknowledged.items():
                    del self.owed[number]
                    self.client.send(PubAck(packet_id))
                self.unacknowledged = {}


TestHeldMessages = pytest.mark.uncovered(HeldMessages.TestCase)
