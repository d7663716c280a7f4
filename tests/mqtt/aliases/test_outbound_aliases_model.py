"""Outbound aliases, whatever is sent."""

from collections import OrderedDict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.mqtt.aliases.outbound_aliases import MAPPING_OVERHEAD
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.publish_encoder import encode_with_alias
from tests.mqtt.framed import body_of
from tests.support.broker.outbound_aliases import DESCRIBED, SIZE, held, opened
from tests.support.broker.publications import publish

TOPICS = st.integers(1, 12).map(lambda n: "site/" + "x" * n * n) | st.sampled_from(["a", "a/b"])


@given(st.lists(TOPICS, max_size=40), st.integers(1, 4), st.integers(20, 200))
def test_every_packet_means_what_it_means_without_an_alias(
    topics: list[str], maximum: int, maximum_packet_size: int
) -> None:
    aliases, reported = opened(maximum), dict[int, str]()
    for topic in topics:
        publication = publish([b"12"], topic=topic, properties=DESCRIBED)
        plain = publication.packets
        packet = encode_with_alias(publication, 0, 0x32, (), 0.0, aliases, maximum_packet_size)
        if packet is plain:
            continue
        assert max(packet.largest, plain.largest) <= maximum_packet_size
        first_byte, body = body_of(bytes(packet.numbered(0, 1, 9)))
        found = decode(body, first_byte, 0, len(body), MQTT_5)
        assert isinstance(found, Publish)
        alias = found.properties.topic_alias
        assert alias is not None
        assert 1 <= alias <= maximum
        assert found.topic or packet.largest < plain.largest
        reported[alias] = found.topic or reported[alias]
        assert reported[alias] == topic
        assert (found.payload, found.packet_id) == (b"12", 9)
        assert found.properties == replace(DESCRIBED, topic_alias=alias)


class Tables(RuleBasedStateMachine):
    """Clients that resolve aliases see the right topic; no bound is passed; the oldest go first."""

    @initialize(
        maximum=st.integers(1, 5),
        client=st.integers(1, 6),
        soft=st.integers(0, 12),
        more=st.integers(0, 4),
    )
    def open(self, maximum: int, client: int, soft: int, more: int) -> None:
        self.maximum = maximum
        self.budget = AliasBudget(client * SIZE, soft * SIZE, (soft + more) * SIZE)
        self.tables = [opened(maximum, self.budget) for _ in range(3)]
        self.reported: list[dict[int, bytes]] = [{} for _ in self.tables]
        self.order: list[OrderedDict[bytes, int]] = [OrderedDict() for _ in self.tables]

    @rule(which=st.integers(0, 2), number=st.integers(0, 9), long=st.integers(0, 2))
    def send(self, which: int, number: int, long: int) -> None:
        topic = write_string(f"site/floor/device-{number:02}" + "x" * long * 100)
        figures, size = self.budget.figures, len(topic) + MAPPING_OVERHEAD
        hits, misses, before = figures.hits, figures.misses, figures.bytes_held
        order = self.order[which]
        known_before = len(order)
        alias, known = self.tables[which].choose(topic)
        assert known == (topic in order)
        assert (figures.hits, figures.misses) == (hits + known, misses + (not known))
        if known:
            assert self.reported[which][alias] == topic
            order.move_to_end(topic)
        elif alias:
            self.reported[which][alias] = topic
            while alias in order.values():
                order.popitem(last=False)
            while sum(map(self.size, order)) + size > self.budget.client_bytes:
                order.popitem(last=False)
            order[topic] = alias
            if before + size > self.budget.soft_bytes:
                assert len(order) <= known_before
        elif not held(self.tables[which]):
            order.clear()
        assert held(self.tables[which]) == list(order)

    @rule(which=st.integers(0, 2))
    def connect_again(self, which: int) -> None:
        self.tables[which].close()
        self.tables[which] = opened(self.maximum, self.budget)
        self.reported[which].clear()
        self.order[which].clear()

    def size(self, topic: bytes) -> int:
        return len(topic) + MAPPING_OVERHEAD

    @invariant()
    def no_bound_is_passed(self) -> None:
        total = 0
        for order in self.order:
            size = sum(map(self.size, order))
            assert size <= self.budget.client_bytes
            assert len(order) <= self.maximum
            assert sorted(order.values()) == sorted(set(order.values()))
            assert all(1 <= alias <= self.maximum for alias in order.values())
            total += size
        assert total == self.budget.figures.bytes_held <= self.budget.hard_bytes


TestTables = pytest.mark.uncovered(Tables.TestCase)
