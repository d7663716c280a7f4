"""Groups of subscribers that share a subscription (MQTT 5, section 4.8.2)."""

from collections.abc import Iterator
from itertools import chain

from gateway.routing.topic_trie import TopicTrie


class _Group:
    """The members of one shared subscription, in the order they came, and whose turn it is."""

    __slots__ = ("members", "turn")

    def __init__(self) -> None:
        self.members: list[int] = []
        self.turn = 0

    def take_turns(self) -> Iterator[int]:
        """Give the members from the one whose turn it is, and give the next one the turn.

        Mostly the first is taken: a group of thousands costs no more than one of two.
        """
        turn, members = self.turn, self.members
        self.turn = (turn + 1) % len(members)
        return map(members.__getitem__, chain(range(turn, len(members)), range(turn)))

    def remove(self, subscription: int) -> None:
        """Remove a member; the turn stays with the member that had it, or passes to the next.

        Behind the last member stands whoever joins before the next turn, else the first.
        """
        place = self.members.index(subscription)
        del self.members[place]
        if place < self.turn:
            self.turn -= 1


class SharedSubscriptions:
    """Shared subscriptions by share name and topic filter, found by topic name.

    Equal share names with different topic filters are different groups. A member is a
    subscription's number, which belongs to one group.
    """

    __slots__ = ("_count", "_free", "_groups", "_numbers", "_trie")

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of group numbers
        self._numbers: dict[tuple[str, str], int] = {}
        self._groups: list[_Group] = []
        self._free: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def memory(self) -> int:
        """Return the bytes of the trie that the groups are found by."""
        return self._trie.memory()

    def add(self, share_name: str, topic_filter: str, subscription: int) -> None:
        """Make the subscription a member; nothing changes if it is one already.

        `topic_filter` is what follows `$share/<share name>/`.
        """
        number = self._numbers.get((share_name, topic_filter))
        if number is None:
            number = self._numbers[share_name, topic_filter] = self._new_group()
            self._trie.add(topic_filter, number)
        members = self._groups[number].members
        if subscription not in members:
            members.append(subscription)
            self._count += 1

    def discard(self, share_name: str, topic_filter: str, subscription: int) -> bool:
        """Remove the member, and its group with the last one; return whether it was one."""
        number = self._numbers.get((share_name, topic_filter))
        if number is None or subscription not in self._groups[number].members:
            return False
        group = self._groups[number]
        group.remove(subscription)
        self._count -= 1
        if not group.members:
            del self._numbers[share_name, topic_filter]
            self._trie.discard(topic_filter, number)
            self._free.append(number)
        return True

    def groups(self, topic: str) -> list[int]:
        """Return the numbers of the groups that match, each good for as long as it has members."""
        return self._trie.match(topic) if self._count else []

    def take_turns(self, group: int) -> Iterator[int]:
        """Give the members of a group, the one whose turn it is first.

        The message is for one of them (section 4.8.2). The turn goes to the next member, also
        if another than the first takes the message. No member is to come or go meanwhile.
        """
        return self._groups[group].take_turns()

    def members(self, share_name: str, topic_filter: str) -> Iterator[int]:
        """Give the members of one group as `take_turns`; none if there is no such group."""
        number = self._numbers.get((share_name, topic_filter))
        return iter(()) if number is None else self._groups[number].take_turns()

    def _new_group(self) -> int:
        if self._free:
            return self._free.pop()  # its last member left, so it is as good as new
        self._groups.append(_Group())
        return len(self._groups) - 1
