"""Groups of subscribers that share a subscription (MQTT 5, section 4.8.2)."""

from typing import Any, Generic, TypeVar

from gateway.routing.trie.topic_trie import TopicTrie

_Member = TypeVar("_Member")


class Group(Generic[_Member]):
    """The members of one shared subscription, in the order they came, and whose turn it is.

    Its messages go to its `channel` if it has one, which gives them to the members; otherwise each
    goes to a member at once. `picky` counts the members that may not want every message.
    """

    __slots__ = ("channel", "members", "picky", "turn")

    def __init__(self) -> None:
        self.members: list[_Member] = []
        self.turn = 0
        self.picky = 0
        self.channel: Any = None  # a subscriber: routing knows no other kind

    def take_turns(self) -> range:
        """Return the indexes of the members, whose turn it is first, and give the next the turn.

        The message is for one of them (section 4.8.2), mostly the first: a group of thousands
        costs no more than one of two. Indexes that are negative count from the end.
        """
        turn, count = self.turn, len(self.members)
        self.turn = (turn + 1) % count
        return range(turn - count, turn)

    def remove(self, member: _Member) -> None:
        """Remove a member; the turn stays with the member that had it, or passes to the next.

        Behind the last member stands whoever joins before the next turn, else the first.
        """
        place = self.members.index(member)
        del self.members[place]
        if place < self.turn:
            self.turn -= 1


class SharedSubscriptions(Generic[_Member]):
    """Shared subscriptions by share name and topic filter, found by topic name.

    Equal share names with different topic filters are different groups. A member belongs to one.
    """

    __slots__ = ("_count", "_free", "_groups", "_numbers", "_trie")

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of group numbers
        self._numbers: dict[tuple[str, str], int] = {}
        self._groups: list[Group[_Member]] = []
        self._free: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        """Whether there is any group."""
        return bool(self._numbers)

    def memory(self) -> int:
        """Return the bytes of the trie that the groups are found by."""
        return self._trie.memory()

    def add(
        self, share_name: str, topic_filter: str, member: _Member, *, picky: bool = False
    ) -> None:
        """Add a member to its group; nothing changes if it is one already.

        `topic_filter` is what follows `$share/<share name>/`. A member that is `picky` may not want
        every message.
        """
        group = self._reach(share_name, topic_filter)
        if member not in group.members:
            group.members.append(member)
            group.picky += picky
            self._count += 1

    def discard(
        self, share_name: str, topic_filter: str, member: _Member, *, picky: bool = False
    ) -> bool:
        """Remove the member, and its group with the last one; return whether it was one."""
        number = self._numbers.get((share_name, topic_filter))
        if number is None or member not in self._groups[number].members:
            return False
        group = self._groups[number]
        group.remove(member)
        group.picky -= picky
        self._count -= 1
        self._forget_empty(share_name, topic_filter)
        return True

    def attach(self, share_name: str, topic_filter: str, channel: Any) -> Group[_Member]:
        """Give a group's messages to `channel`, which stays without a member; return the group."""
        group = self._reach(share_name, topic_filter)
        group.channel = channel
        return group

    def detach(self, share_name: str, topic_filter: str) -> None:
        """Give the messages of a group that has a channel to its members again."""
        self._groups[self._numbers[share_name, topic_filter]].channel = None
        self._forget_empty(share_name, topic_filter)

    def _reach(self, share_name: str, topic_filter: str) -> Group[_Member]:
        """Return the group, which is made if there is none."""
        number = self._numbers.get((share_name, topic_filter))
        if number is None:
            number = self._numbers[share_name, topic_filter] = self._new_group()
            self._trie.add(topic_filter, number)
        return self._groups[number]

    def _forget_empty(self, share_name: str, topic_filter: str) -> None:
        """Forget the group if it has neither members nor a channel."""
        number = self._numbers[share_name, topic_filter]
        group = self._groups[number]
        if not group.members and group.channel is None:
            del self._numbers[share_name, topic_filter]
            self._trie.discard(topic_filter, number)
            self._free.append(number)

    def groups(self, topic: str) -> list[Group[_Member]]:
        """Return the groups that match, each good for as long as it has members or a channel."""
        if not self._numbers:
            return []
        return [self._groups[number] for number in self._trie.match(topic)]

    def group(self, share_name: str, topic_filter: str) -> Group[_Member] | None:
        """Return one group, None if there is none that has members."""
        number = self._numbers.get((share_name, topic_filter))
        if number is None or not self._groups[number].members:
            return None
        return self._groups[number]

    def _new_group(self) -> int:
        if self._free:
            return self._free.pop()  # its last member left, so it is as good as new
        self._groups.append(Group())
        return len(self._groups) - 1
