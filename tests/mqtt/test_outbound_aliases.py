"""Which topic aliases the server sets for one client."""

import tracemalloc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.mqtt.alias_budget import AliasBudget
from gateway.mqtt.decode import decode
from gateway.mqtt.fields import write_string
from gateway.mqtt.outbound_aliases import (
    MAPPING_OVERHEAD,
    MAXIMUM_PATIENCE,
    SHORTEST_TOPIC,
    USES_OF_A_GOOD_MAPPING,
    OutboundAliases,
)
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publish_template import PublishTemplate
from tests.mqtt.framed import body_of

NO_LIMIT = 0xFFFFFFFF
KNOWN, NEW, NONE = True, False, (0, False)


def opened(maximum: int = 2, budget: AliasBudget | None = None) -> OutboundAliases:
    return OutboundAliases(maximum, NO_LIMIT, budget or AliasBudget())


def name(number: int) -> bytes:
    """A topic name of 20 bytes, behind its length."""
    return write_string(f"site/floor/device-{number:02}")


SIZE = len(name(0)) + MAPPING_OVERHEAD
"""What one mapping of such a topic counts."""


def held(aliases: OutboundAliases) -> list[bytes]:
    """The topics that have an alias, the one used least recently first."""
    return list(aliases._mappings)


def test_a_topic_has_an_alias_from_its_first_packet_on() -> None:
    aliases = opened()
    assert aliases.choose(name(1)) == (1, NEW)
    assert aliases.choose(name(2)) == (2, NEW)
    assert aliases.choose(name(1)) == (1, KNOWN)
    assert aliases.choose(name(2)) == (2, KNOWN)


def test_an_alias_goes_over_from_the_topic_used_least_recently() -> None:
    aliases = opened()
    for number in (1, 2, 1):
        aliases.choose(name(number))
    assert aliases.choose(name(3)) == (2, NEW)
    assert aliases.choose(name(1)) == (1, KNOWN)
    assert aliases.choose(name(3)) == (2, KNOWN)


@pytest.mark.parametrize("length", range(10))
def test_only_a_topic_of_five_bytes_or_more_has_an_alias(length: int) -> None:
    alias, _ = opened().choose(write_string("x" * length))
    assert alias == (1 if length >= 5 else 0)


def test_the_shortest_topic_with_an_alias_saves_bytes_whatever_its_properties() -> None:
    for size in range(300):
        properties = Properties(content_type="x" * size)
        topic = "x" * (SHORTEST_TOPIC - 2)
        template = PublishTemplate(topic, b"", properties, MQTT_5)
        without = template.wire(0, False, False, 0)
        assert len(template.wire_with_alias(0, False, 0, 1, False)) < len(without)


def test_topics_that_come_round_in_a_circle_are_not_all_replaced_in_vain() -> None:
    budget = AliasBudget()
    aliases, rounds = opened(10, budget), 100
    for _ in range(rounds):
        for number in range(20):
            aliases.choose(name(number))
    figures = budget.figures
    assert figures.hits > 0.35 * 20 * rounds  # half of them would be the best
    assert figures.evictions == figures.mappings - 10 < figures.misses / 4


def test_topics_that_never_come_again_cost_next_to_nothing() -> None:
    budget = AliasBudget()
    aliases, packets = opened(10, budget), 3_200
    for number in range(packets):
        aliases.choose(write_string(f"requests/{number}"))
    assert budget.figures.mappings < 10 + packets / MAXIMUM_PATIENCE + MAXIMUM_PATIENCE
    assert budget.figures.hits == 0


def test_a_new_set_of_topics_takes_over_again() -> None:
    aliases = opened(10)
    for number in range(1_000):  # patience is at its end
        aliases.choose(write_string(f"requests/{number}"))
    for _ in range(100):
        for number in range(10):
            aliases.choose(name(number))
    assert sorted(held(aliases)) == [name(number) for number in range(10)]


def test_a_mapping_that_was_used_well_makes_way_at_once() -> None:
    aliases = opened(1)
    for number in range(50):
        assert aliases.choose(name(number)) == (1, NEW)
        for _ in range(USES_OF_A_GOOD_MAPPING):
            assert aliases.choose(name(number)) == (1, KNOWN)


def test_how_many_topics_pass_between_two_replacements() -> None:
    aliases, numbers = opened(1), iter(range(1_000))
    aliases.choose(name(0))

    def passed(*, uses: int) -> int:
        """Use the mapping so often, then count the topics until it is replaced."""
        (topic,) = held(aliases)
        for _ in range(uses):
            aliases.choose(topic)
        for count in range(1, 100):
            if aliases.choose(write_string(f"requests/{next(numbers)}")) != NONE:
                return count
        raise AssertionError

    for little in (0, USES_OF_A_GOOD_MAPPING - 1):
        assert [passed(uses=little) for _ in range(7)] == [1, 2, 4, 8, 16, 32, 32]
        well = [passed(uses=USES_OF_A_GOOD_MAPPING) for _ in range(7)]
        assert well == [32, 16, 8, 4, 2, 1, 1]


def test_bytes_of_one_connection_are_bounded() -> None:
    budget = AliasBudget(client_bytes=3 * SIZE)
    aliases = opened(100, budget)
    for number in range(4):
        assert aliases.choose(name(number)) != NONE
    assert held(aliases) == [name(1), name(2), name(3)]
    assert budget.figures.bytes_held == 3 * SIZE
    for number in (1, 2, 3):
        aliases.choose(name(number))
    longer = name(0) + b"x"
    for _ in range(2):  # the last replacement was of a mapping that was little used
        chosen = aliases.choose(longer)
    assert chosen == (3, NEW), "two had to go"
    assert held(aliases) == [name(3), longer]
    assert aliases.choose(write_string("short")) == (2, NEW), "the other alias is free again"
    assert aliases.choose(write_string("x" * 3 * SIZE)) == NONE
    assert budget.figures.evictions == 1 + 2


def test_at_the_soft_limit_nobody_gets_a_further_alias() -> None:
    budget = AliasBudget(soft_bytes=3 * SIZE)
    first, second, third = (opened(5, budget) for _ in range(3))
    for number in range(2):
        assert first.choose(name(number)) == (number + 1, NEW)
    assert second.choose(name(1)) == (1, NEW)
    assert third.choose(name(1)) == NONE
    assert budget.figures.refused_soft == 1
    assert first.choose(name(2)) == (1, NEW), "it takes over an alias that the client has"
    assert budget.figures.refused_soft == 2
    assert budget.figures.bytes_held == 3 * SIZE
    second.close()
    assert third.choose(name(1)) == (1, NEW)


def test_up_to_the_hard_limit_a_longer_topic_takes_over() -> None:
    budget = AliasBudget(soft_bytes=SIZE, hard_bytes=SIZE + 1)
    aliases = opened(5, budget)
    aliases.choose(name(1))
    assert aliases.choose(name(1) + b"x") == (1, NEW)
    assert budget.figures.bytes_held == SIZE + 1


def test_at_the_hard_limit_a_connection_gives_up_every_alias() -> None:
    longer = name(0) + b"xx"
    budget = AliasBudget(soft_bytes=3 * SIZE, hard_bytes=3 * SIZE + 1)
    first, second = opened(5, budget), opened(5, budget)
    first.choose(name(1))
    first.choose(name(2))
    second.choose(name(1))
    assert first.choose(longer) == NONE
    assert budget.figures.refused_hard == 1
    assert budget.figures.evictions == 2
    assert budget.figures.bytes_held == SIZE
    assert second.choose(name(1)) == (1, KNOWN)
    assert first.choose(name(2)) == (1, NEW), "below the soft limit it begins anew"


def test_after_the_hard_limit_no_two_topics_share_an_alias() -> None:
    budget = AliasBudget(client_bytes=3 * SIZE)
    aliases = opened(5, budget)
    for number in range(3):
        for _ in range(2):
            aliases.choose(name(number))
    assert aliases.choose(name(0) + b"x") == (2, NEW), "1 is free"
    budget.hard_bytes = 0
    for _ in range(2):  # the second time it would replace
        assert aliases.choose(name(0) + b"xx") == NONE
    assert budget.figures.refused_hard == 1
    budget.hard_bytes = 10 * SIZE
    assert {aliases.choose(name(number)) for number in range(3)} == {(1, NEW), (2, NEW), (3, NEW)}


def test_what_a_mapping_counts_is_what_it_occupies() -> None:
    budget = AliasBudget()
    aliases = opened(1_000, AliasBudget(client_bytes=1_000_000, figures=budget.figures))
    tracemalloc.start()
    try:
        for number in range(1_000):
            aliases.choose(write_string(f"site/floor/device/{number}"))
        occupied, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held(aliases)) == 1_000
    assert 0.7 * budget.figures.bytes_held < occupied <= budget.figures.bytes_held


def test_figures() -> None:
    budget = AliasBudget()
    aliases = opened(1, budget)
    for number in (1, 1, 1, 2, 2):
        aliases.choose(name(number))
    aliases.choose(write_string("abc"))
    assert budget.figures.values() == {
        "hits": 3,
        "misses": 3,
        "mappings": 2,
        "evictions": 1,
        "refused_soft": 0,
        "refused_hard": 0,
        "bytes_saved": 3 * (20 - 3) - 2 * 3,
        "bytes_held": SIZE,
        "hit_rate": 50.0,
    }
    for _ in range(2):
        aliases.close()
    assert budget.figures.bytes_held == 0


DESCRIBED = Properties(content_type="text/plain", message_expiry_interval=60)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("properties", [NO_PROPERTIES, DESCRIBED])
@pytest.mark.parametrize("identifiers", [(), (7, 300)])
def test_no_packet_is_larger_than_the_client_takes(
    qos: int, properties: Properties, identifiers: tuple[int, ...]
) -> None:
    template = PublishTemplate("a/b/c/d/e", b"x" * 100, properties, MQTT_5)
    plain = template.wire(qos, False, False, 1, identifiers)
    with_alias = set()
    for maximum in range(len(plain), len(plain) + 40):
        aliases = OutboundAliases(1, maximum, AliasBudget())
        packets = [aliases.wire(template, qos, False, 1, identifiers) for _ in range(2)]
        assert max(map(len, packets)) <= maximum
        if packets != [plain, plain]:
            with_alias.add(maximum)
    assert max(with_alias) == len(plain) + 39
    too_small = OutboundAliases(1, len(plain) - 1, AliasBudget())
    for _ in range(2):
        assert too_small.wire(template, qos, False, 1, identifiers) == plain


def read(packet: bytes) -> Publish:
    first_byte, body = body_of(packet)
    publish = decode(body, first_byte, 0, len(body), MQTT_5)
    assert isinstance(publish, Publish)
    return publish


TOPICS = st.integers(1, 12).map(lambda n: "site/" + "x" * n * n) | st.sampled_from(["a", "a/b"])


@given(
    st.lists(st.tuples(TOPICS, st.integers(0, 2), st.booleans()), max_size=40),
    st.integers(1, 4),
    st.integers(20, 200),
)
def test_every_packet_means_what_it_means_without_an_alias(
    steps: list[tuple[str, int, bool]], maximum: int, maximum_packet_size: int
) -> None:
    aliases = OutboundAliases(maximum, maximum_packet_size, AliasBudget())
    told: dict[int, str] = {}
    for topic, qos, retain in steps:
        template = PublishTemplate(topic, b"12", DESCRIBED, MQTT_5)
        plain = template.wire(qos, retain, False, 9)
        packet = aliases.wire(template, qos, retain, 9)
        if packet == plain:
            continue
        assert max(len(packet), len(plain)) <= maximum_packet_size
        publish = read(packet)
        alias = publish.properties.topic_alias
        assert alias is not None
        assert 1 <= alias <= maximum
        assert publish.topic or len(packet) < len(plain)
        told[alias] = publish.topic or told[alias]
        expected = read(plain)
        assert (publish.qos, publish.retain, publish.payload, publish.packet_id) == (
            expected.qos,
            expected.retain,
            expected.payload,
            expected.packet_id,
        )
        assert told[alias] == expected.topic
        assert publish.properties == Properties(
            topic_alias=alias, content_type="text/plain", message_expiry_interval=60
        )


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
        self.told: list[dict[int, bytes]] = [{} for _ in self.tables]
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
            assert self.told[which][alias] == topic
            order.move_to_end(topic)
        elif alias:
            self.told[which][alias] = topic
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
        self.told[which].clear()
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


TestTables = Tables.TestCase
