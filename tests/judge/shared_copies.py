"""Which member of a shared subscription got which message."""

from typing import TYPE_CHECKING

from tests.conformance.support.answers import Publish
from tests.judge.disagreement import check
from tests.judge.messages import Choice, Copy
from tests.judge.player import Player
from tests.judge.sight import is_seen

if TYPE_CHECKING:
    from tests.judge.judge import Judge


class SharedCopies:
    """Finds the choice that what came to a client is one of.

    Where several choices look alike to a client, an earlier finding may be changed.
    """

    def __init__(self, judge: "Judge") -> None:
        self._judge = judge
        self._last: dict[tuple[str, str, str, str, int], int] = {}  # place
        self._choices: dict[tuple[bytes, bytes], list[Choice]] = {}  # by topic and payload
        self._indexed = 0  # of the naive broker's choices

    def take(self, player: Player, publish: Publish, *, only_due: bool) -> Copy | None:
        """Return the copy that this is, None if it is none, or none that must come to somebody."""
        name = player.name
        for place, choice in enumerate(self._judge.naive.choices[self._indexed :], self._indexed):
            choice.place = place
            self._choices.setdefault(_content(choice), []).append(choice)
        self._indexed = len(self._judge.naive.choices)
        found = self._choices.get((publish.topic, publish.payload), [])
        for choice in sorted(found, key=self._rank):
            copy = self._copy_of(choice, name)
            if only_due and not (choice.open and not self.may_be_lost(choice)):
                continue
            if copy is None or not is_seen(player, copy, publish, self._judge.driver.now):
                continue
            if self._may_be_had(choice, []):
                self._check_order(choice, copy, name)
                choice.taken, choice.copies[name] = name, copy
                copy.done = not copy.qos
                return copy
        return None

    def may_be_lost(self, choice: Choice) -> bool:
        """Return whether a choice may come to nobody."""
        return choice.loose or any(
            self._judge.may_stay_out(self._judge.players[name], copy)
            for name, copy in choice.copies.items()
        )

    def has_come(self, choice: Choice, tried: list[Choice]) -> bool:
        """Return whether a choice is taken, or what was taken for one that may be lost is it."""
        if not choice.open or self.may_be_lost(choice):
            return True
        tried.append(choice)
        for other in self._choices.get(_content(choice), []):
            taken = other.taken
            its = None if taken is None else choice.copies.get(taken)
            if other in tried or taken is None or its is None or not its.like(other.copies[taken]):
                continue
            choice.taken, choice.copies[taken], other.taken = taken, other.copies[taken], None
            if self.has_come(other, tried):
                return True
            choice.taken, other.taken = None, taken
        return False

    def _rank(self, choice: Choice) -> tuple[bool, bool]:
        """Return what sorts what is still open first, and of that what must arrive."""
        return not choice.open, self.may_be_lost(choice)

    def _may_be_had(self, choice: Choice, tried: list[Choice]) -> bool:
        """Return whether a choice is open, perhaps since who had it had another that is alike."""
        if choice.open:
            return True
        tried.append(choice)
        assert choice.taken is not None
        copy = choice.copies[choice.taken]
        others = self._choices[_content(choice)]
        for other in sorted(others, key=self._rank):
            its = other.copies.get(choice.taken)
            if other in tried or its is None or not its.like(copy):
                continue
            if self._may_be_had(other, tried):
                other.taken, other.copies[choice.taken] = choice.taken, copy
                return True
        return False

    def _check_order(self, choice: Choice, copy: Copy, name: str) -> None:
        """Compare with what came before, but for what looks like another: an empty message, or one
        that was published twice, which may be its member's own copy of the other time."""
        message = choice.message
        alike = [each for each in self._choices[_content(choice)] if each.share == choice.share]
        if choice.loose or not message.payload or len(alike) > 1:
            return
        key = name, choice.share, *copy.key
        place = choice.place
        last = self._last.get(key, place)
        check(last <= place, f"{name}: {message.number} of {choice.share} came late")
        self._last[key] = place

    def _copy_of(self, choice: Choice, name: str) -> Copy | None:
        copy = choice.copies.get(name)
        session = self._judge.naive.sessions.get(name)
        if copy is None and choice.loose and session is not None:
            one = session.subscriptions.get(choice.share)
            if one is not None and session.wants(one, choice.message):
                return session.copy(
                    choice.message, [one], choice.message.retain and one.retain_as_published
                )
        return copy


def _content(choice: Choice) -> tuple[bytes, bytes]:
    return choice.message.topic.encode(), choice.message.payload
