import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.subscriptions.subscription import Subscribers
from tests.support.broker.subscribers import Someone

EVERYONE = [Someone(name) for name in "abcd"]


class SubscribersAgainstDict(RuleBasedStateMachine):
    """Whoever holds a place has a number of its own, and nobody else has one."""

    def __init__(self) -> None:
        super().__init__()
        self.subscribers = Subscribers()
        self.empty = self.subscribers.memory()
        self.held: dict[Someone, set[int]] = {}

    @rule(one=st.sampled_from(EVERYONE), place=st.integers(0, 9) | st.integers(1 << 30, (1 << 31)))
    def hold(self, one: Someone, place: int) -> None:
        place = min(place, (1 << 31) - 2)
        number = self.subscribers.join(one)
        held = self.held.setdefault(one, set())
        assert self.subscribers.holds(number, place) == (place in held)
        if place not in held:
            self.subscribers.hold(number, place)
            held.add(place)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if not self.held:
            return
        one = data.draw(st.sampled_from([each for each in EVERYONE if each in self.held]))
        place = data.draw(st.sampled_from(sorted(self.held[one])))
        self.subscribers.release(self.subscribers.find(one), place)
        self.held[one].remove(place)
        if not self.held[one]:
            del self.held[one]

    @invariant()
    def each_has_its_places(self) -> None:
        numbers = [self.subscribers.find(one) for one in self.held]
        assert sorted(numbers) == self.subscribers.numbers()
        assert self.subscribers.total == sum(map(len, self.held.values()))
        for number, (one, held) in zip(numbers, self.held.items(), strict=True):
            assert self.subscribers.subscriber(number) is one
            assert self.subscribers.places(number) == sorted(held)
            assert self.subscribers.count(number) == len(held)
        for one in EVERYONE:
            if one not in self.held:
                assert self.subscribers.count(self.subscribers.find(one)) == 0
        assert self.held or self.subscribers.memory() == self.empty


TestSubscribersAgainstDict = pytest.mark.uncovered(SubscribersAgainstDict.TestCase)


def test_a_number_that_is_free_is_nobodys() -> None:
    subscribers = Subscribers()
    for one in EVERYONE:
        subscribers.hold(subscribers.join(one), 7)
    number = subscribers.find(EVERYONE[1])
    subscribers.release(number, 7)
    assert not subscribers.holds(number, 7)
    assert not subscribers.holds(4, 7)
    with pytest.raises(KeyError):
        subscribers.subscriber(number)
    assert subscribers.join(EVERYONE[1]) == number


def test_memory_grows_by_four_bytes_for_a_place() -> None:
    subscribers = Subscribers()
    subscribers.hold(subscribers.join(EVERYONE[0]), 0)
    alone = subscribers.memory()
    for place in range(1, 10_001):
        subscribers.hold(0, place)
    assert 40_000 <= subscribers.memory() - alone < 41_000
