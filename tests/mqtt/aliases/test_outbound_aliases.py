"""Which topic aliases the server sets for one client."""

import tracemalloc

from gateway.mqtt.aliases.outbound_aliases import MAXIMUM_PATIENCE, USES_OF_A_GOOD_MAPPING
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.codec.fields import write_string
from tests.support.broker.outbound_aliases import SIZE, held, name, opened
from tests.support.table import table

KNOWN, NEW, NONE = True, False, (0, False)


@table("length", range(10))
def test_only_a_topic_of_five_bytes_or_more_has_an_alias(length: int) -> None:
    alias, _ = opened().choose(write_string("x" * length))
    assert alias == (1 if length >= 5 else 0)


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
