from collections import Counter
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.trie import nodes as trie_nodes
from gateway.routing.trie.columns import LARGE
from gateway.routing.trie.nodes import (
    A_CHILD,
    FIRST_EDGES,
    HAS_PLUS,
    HAS_REST,
    MANY,
    MANY_OVERHEAD,
    ROOT,
    TrieNodes,
)


class NodesAgainstDict(RuleBasedStateMachine):
    """Every edge that grew is found until it is cut, and nothing else is."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = TrieNodes()
        self.edges: dict[tuple[int, int], int] = {}

    def children(self, parent: int) -> list[int]:
        return [level for (above, level) in self.edges if above == parent]

    @rule(data=st.data(), level=st.integers(1, 5))
    def grow(self, data: st.DataObject, level: int) -> None:
        parent = data.draw(st.sampled_from([ROOT, *self.edges.values()]))
        if (parent, level) in self.edges:
            return
        node = self.nodes.grow(parent, level)
        assert node not in {ROOT, *self.edges.values()}
        assert self.nodes.held(node) == 0
        self.nodes.hold(node, node + 7)
        self.edges[parent, level] = node

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        leaves = [edge for edge, node in self.edges.items() if not self.children(node)]
        if not leaves:
            return
        edge = data.draw(st.sampled_from(leaves))
        node = self.edges.pop(edge)
        self.nodes.hold(node, 0)
        self.nodes.cut(node)

    @rule(parent=st.integers(0, 20), level=st.integers(1, 6))
    def look(self, parent: int, level: int) -> None:
        assert self.nodes.child(parent, level) == self.edges.get((parent, level), 0)

    @invariant()
    def every_edge_is_found(self) -> None:
        assert self.nodes.count == len(self.edges)
        for (parent, level), node in self.edges.items():
            assert self.nodes.child(parent, level) == node
            assert (self.nodes.parent(node), self.nodes.level(node)) == (parent, level)
            assert self.nodes.held(node) == node + 7
        for node in (ROOT, *self.edges.values()):
            levels = self.children(node)
            kinds = sum({*levels} & {HAS_PLUS, HAS_REST})
            assert self.nodes.children(node) == A_CHILD * len(levels) + kinds


TestNodesAgainstDict = pytest.mark.uncovered(NodesAgainstDict.TestCase)


def grown(nodes: TrieNodes, count: int) -> list[int]:
    return [nodes.grow(ROOT, 10 + number) for number in range(count)]


def test_memory_is_in_proportion_to_the_nodes() -> None:
    nodes = TrieNodes()
    empty = nodes.memory()
    numbers = grown(nodes, 3_000)
    assert 3_000 * 18 < nodes.memory() - empty < 3_000 * 23
    for node in numbers:
        nodes.cut(node)
    assert nodes.memory() == empty


def test_of_large_columns_only_what_was_written_to_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie_nodes, "LARGE", 1_000)
    nodes = TrieNodes()
    empty = nodes.memory()
    grown(nodes, 3_000)
    assert 3_000 * 18 < nodes.memory() - empty < 3_000 * 23


def test_memory_is_given_back_around_the_nodes_that_stay() -> None:
    nodes = TrieNodes()
    numbers = grown(nodes, 3_000)
    full = nodes.memory()
    stay = numbers[1_000:1_500:100]
    for node in reversed(numbers):
        if node not in stay:
            nodes.cut(node)
    assert nodes.memory() < full / 2
    assert [nodes.child(ROOT, 10 + 1_000 + 100 * place) for place in range(5)] == stay
    fresh = [nodes.grow(stay[0], 10 + number) for number in range(2_900)]
    assert len({*fresh, *stay}) == 2_905


def test_a_single_node_left_high_up_does_not_cost_a_walk_for_each_cut() -> None:
    nodes = TrieNodes()
    numbers = grown(nodes, 5_000)
    for node in numbers[:-1]:  # with a walk each this would take minutes
        nodes.cut(node)
    assert nodes.child(ROOT, 10 + 4_999) == numbers[-1]


@pytest.mark.parametrize("wildcard_first", [True, False])
def test_children_are_counted_beyond_what_a_byte_says(wildcard_first: bool) -> None:
    nodes = TrieNodes()
    parent = nodes.grow(ROOT, 9)
    wildcards = [] if wildcard_first else [nodes.grow(parent, 1)]
    children = [nodes.grow(parent, 10 + number) for number in range(MANY + 20)]
    wildcards += [nodes.grow(parent, 2)]
    crowded = nodes.memory()
    assert nodes.children(parent) == MANY * A_CHILD + HAS_REST + (not wildcard_first) * HAS_PLUS
    for node in children[5:]:
        nodes.cut(node)
    for node in reversed(wildcards):
        nodes.cut(node)
    assert nodes.children(parent) == 5 * A_CHILD
    assert nodes.memory() <= crowded - MANY_OVERHEAD
    for node in [*children[:5], parent]:
        nodes.cut(node)
    assert nodes.count == 0


@pytest.mark.uncovered
def test_nodes_are_told_apart_in_columns_of_pages() -> None:
    nodes = TrieNodes()
    numbers = grown(nodes, 2 * LARGE)
    assert 19 < nodes.memory() / (2 * LARGE) < 23
    assert [nodes.child(ROOT, 10 + number) for number in range(2 * LARGE)] == numbers
    for node in reversed(numbers[LARGE // 8 :]):
        nodes.cut(node)
    assert nodes.memory() < LARGE * 10
    assert nodes.child(ROOT, 10 + 7) == numbers[7]


@pytest.mark.uncovered
@pytest.mark.parametrize("step", [1, -1])
def test_what_is_cut_last_gives_the_columns_ends_back(step: int) -> None:
    nodes = TrieNodes()
    few = grown(nodes, 10)
    begin = nodes.memory()
    numbers = [nodes.grow(few[0], 10 + number) for number in range(3_000)]
    for node in numbers[::step]:
        nodes.cut(node)
    assert nodes.memory() < 3 * begin
    again = [nodes.grow(few[1], 10 + number) for number in range(3_000)]
    assert sorted(again) == numbers
    assert [nodes.child(few[1], 10 + number) for number in range(3_000)] == again


@pytest.mark.uncovered
def test_nodes_that_move_step_by_step_are_found_all_the_while() -> None:
    nodes, random = TrieNodes(at_once=0), Random(7)
    edges: dict[tuple[int, int], int] = {}
    parents: Counter[int] = Counter()
    for turn in range(15_000):
        growing = turn % 7_500 < 4_500
        if growing or not edges:
            parent = random.choice([ROOT, *random.sample(list(edges.values()), min(3, len(edges)))])
            level = random.randrange(1, 2_000)
            if (parent, level) not in edges:
                edges[parent, level] = nodes.grow(parent, level)
                parents[parent] += 1
        else:
            edge = next(each for each in edges if not parents[edges[each]])
            nodes.cut(edges.pop(edge))
            parents[edge[0]] -= 1
        if turn % 500 < 3:
            assert all(nodes.child(*edge) == node for edge, node in edges.items())
            assert nodes.child(ROOT, 2_000) == 0
    assert nodes.count == len(edges)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_there_is_not_found_in_either_table_while_nodes_move(seed: int) -> None:
    """Levels are random, so that some searches go on at a table's beginning for any hash factors.

    Levels in sequence lie in clumps for one factor in some thousand.
    """
    random = Random(seed)
    nodes, slots = TrieNodes(at_once=0), FIRST_EDGES
    for count, level in enumerate(random.sample(range(1, 1 << 30), 3_000), 1):
        grown = nodes.grow(ROOT, level)
        if 4 * count > 3 * slots:  # a larger table was made just now
            slots += slots >> 1
            absent = (random.randrange(1 << 30, 1 << 31) for _ in range(4 * slots))
            assert not any(nodes.child(ROOT, each) for each in absent)
            assert nodes.child(ROOT, level) == grown
