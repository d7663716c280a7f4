"""Who subscribes, as small numbers, and at which places: four bytes for a subscription."""

import sys
from array import array

from gateway.routing.subscriptions.subscription import Subscriber
from gateway.routing.trie.held_numbers import HeldNumbers

SUBSCRIBER_OVERHEAD = 44
"""Bytes of a subscriber's places in list and column, their room to grow, and its number."""


class Subscribers:
    """Subscribers with a number from 0, which is theirs while they hold a place or more.

    `total` is how many places all of them hold.

    A place is a number below 2^31 of its owner's; here it says where a subscription is found.
    """

    __slots__ = ("_free", "_held", "_numbers", "_subscribers", "_words", "total")

    def __init__(self) -> None:
        self._numbers: dict[Subscriber, int] = {}
        self._subscribers: list[Subscriber | None] = []
        self._words = array("I")  # what each of them holds
        self._held = HeldNumbers()
        self._free: list[int] = []
        self.total = 0

    def join(self, subscriber: Subscriber) -> int:
        """Return the number of a subscriber, a new one if it has none; `hold` is to follow."""
        number = self._numbers.get(subscriber)
        if number is None:
            number = self._numbers[subscriber] = self._new_number()
            self._subscribers[number] = subscriber
        return number

    def find(self, subscriber: Subscriber) -> int:
        """Return the number of a subscriber, -1 if it holds no place."""
        return self._numbers.get(subscriber, -1)

    def subscriber(self, number: int) -> Subscriber:
        """Return the subscriber with this number; raise KeyError if there is none."""
        subscriber = self._subscribers[number]
        if subscriber is None:
            raise KeyError(number)
        return subscriber

    def hold(self, number: int, index: int) -> None:
        """Let the subscriber hold a place that it does not hold yet."""
        self._words[number] = self._held.including(self._words[number], index)
        self.total += 1

    def holds(self, number: int, index: int) -> bool:
        """Tell whether the subscriber with this number, if there is one, holds the place."""
        return number < len(self._words) and self._held.holds(self._words[number], index)

    def release(self, number: int, index: int) -> None:
        """Take a place back that the subscriber holds; with the last one its number is free."""
        self._words[number] = word = self._held.excluding(self._words[number], index)
        self.total -= 1
        if word == 0:
            self._leave(number)

    def count(self, number: int) -> int:
        """Return how many places the subscriber holds; 0 for the number -1."""
        return 0 if number < 0 else self._held.count(self._words[number])

    def places(self, number: int) -> list[int]:
        """Return the places of a subscriber in their order, in a list of its own."""
        found: list[int] = []
        self._held.gather(self._words[number], found)
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of all subscribers in their order, in a list of its own."""
        return [number for number, word in enumerate(self._words) if word]

    def memory(self) -> int:
        """Return about the bytes that all this takes."""
        return (
            sys.getsizeof(self._numbers)
            + SUBSCRIBER_OVERHEAD * len(self._subscribers)
            + self._held.memory()
        )

    def _new_number(self) -> int:
        if self._free:
            return self._free.pop()
        self._subscribers.append(None)
        self._words.append(0)
        return len(self._subscribers) - 1

    def _leave(self, number: int) -> None:
        del self._numbers[self.subscriber(number)]
        self._subscribers[number] = None
        self._free.append(number)
        if not self._numbers:  # give back what they had grown to
            self._numbers, self._subscribers, self._free = {}, [], []
            self._words = array("I")
