"""Numbers held by the nodes of a trie: one inline, several in a list."""

from array import array
from bisect import bisect_left

CHECKED = 0x3F
"""The spare capacity of a list is checked at lengths with these bits 0."""

LIST = 0x8000_0000
"""The bit that marks a list's index; below it are numbers, from 1."""

# Compiled, these are C names that no other module sees.
_LIST = LIST
_CHECKED = CHECKED
_NOTHING = array("I")


class HeldNumbers:
    """Sorted lists of numbers from 0, for owners that may hold more than one.

    An owner stores a word: 0 for no number, `number + 1` for one, LIST and the index of a list for
    more.
    """

    __slots__ = ("_free", "_listed", "_lists")

    def __init__(self) -> None:
        self._lists: list[array[int]] = []  # _NOTHING in a free place
        self._free = array("I")
        self._listed = 0  # numbers in all lists

    def including(self, word: int, number: int) -> int:
        """Return the word of what is held with one number more."""
        if word == 0:
            return number + 1
        if word < _LIST:
            return _LIST | self._store(array("I", sorted((word - 1, number))))
        numbers = self._lists[word & ~_LIST]
        numbers.insert(bisect_left(numbers, number), number)
        self._listed += 1
        return word

    def excluding(self, word: int, number: int) -> int:
        """Return the word of what is held without one of its numbers."""
        if word < _LIST:
            return 0
        numbers = self._lists[word & ~_LIST]
        del numbers[bisect_left(numbers, number)]
        self._listed -= 1
        count = len(numbers)
        if count > 1:
            if not count & _CHECKED and 4 * numbers.__sizeof__() > 5 * NUMBER * count:
                self._lists[word & ~_LIST] = numbers[:]  # a copy: an array does not shrink
            return word
        self._drop(word & ~_LIST)
        return numbers[0] + 1

    def holds(self, word: int, number: int) -> bool:
        """Return whether the number is held."""
        if word < _LIST:
            return word == number + 1
        numbers = self._lists[word & ~_LIST]
        index = bisect_left(numbers, number)
        return index < len(numbers) and numbers[index] == number

    def first(self, word: int, minimum: int) -> int:
        """Return the first held number from `minimum` on, -1 if there is none."""
        if word == 0:
            return -1
        if word < _LIST:
            return word - 1 if word > minimum else -1
        numbers = self._lists[word & ~_LIST]
        index = bisect_left(numbers, minimum)
        return numbers[index] if index < len(numbers) else -1

    def count(self, word: int) -> int:
        """Return how many are held."""
        if word < _LIST:
            return 1 if word else 0
        return len(self._lists[word & ~_LIST])

    def gather(self, word: int, found: list[int]) -> None:
        """Append everything that is held."""
        if word >= _LIST:
            found.extend(self._lists[word & ~_LIST])
        elif word:
            found.append(word - 1)

    def memory(self) -> int:
        """Return the bytes of the lists."""
        lists = len(self._lists) - len(self._free)
        places = POINTER * len(self._lists) + NUMBER * len(self._free)
        return places + LIST_OVERHEAD * lists + NUMBER * self._listed

    def _store(self, numbers: "array[int]") -> int:
        self._listed += len(numbers)
        if self._free:
            index = self._free.pop()
            self._lists[index] = numbers
            return index
        self._lists.append(numbers)
        return len(self._lists) - 1

    def _drop(self, index: int) -> None:
        self._listed -= 1  # the last one is back in its word
        self._lists[index] = _NOTHING
        self._free.append(index)
        if len(self._free) == len(self._lists):
            self._lists, self._free = [], array("I")


NUMBER = 4
POINTER = 8
LIST_OVERHEAD = 96
"""Bytes of a list beside its numbers, its spare capacity included."""
