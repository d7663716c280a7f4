"""What a bounded queue may refuse, and what it must."""

from typing import TYPE_CHECKING

from tests.judge.messages import Message
from tests.judge.naive_broker import Session

if TYPE_CHECKING:
    from tests.judge.judge import Judge


class QueueBounds:
    """Tells what a session may hold at most, and what it holds at least.

    Where the policy is to refuse publishers, a message of QoS 1 or 2 that a session which stays has
    no room for is refused, and nobody gets it. Otherwise nobody is refused: that session alone
    loses the newest or the oldest. Whatever else there is no room for is lost.
    """

    def __init__(self, judge: "Judge") -> None:
        self._judge = judge
        self._maximum = judge.driver.settings.maximum_queued_messages
        self._policy = judge.driver.settings.queue_when_full

    def may_be_full(self, session: Session, copies: int = 1) -> bool:
        """Tell whether there may be no room for so many copies of a message."""
        name, judge = session.client_id, self._judge
        most = self._maximum - copies
        if most >= len(session.owed) + len(judge.naive.choices) + len(judge.players[name].again):
            return False
        choices = sum(1 for each in judge.naive.choices if each.open and name in each.copies)
        return len(session.owed) + choices + len(judge.players[name].again) > most

    def _is_full(self, session: Session) -> bool:
        judge, player = self._judge, self._judge.players[session.client_id]
        if player.link is not None and not player.reads:
            return False  # nobody knows how much it was sent
        if player.uncertain:
            return False
        sure = [each for each in session.owed if each.qos and not judge.may_stay_out(player, each)]
        room = judge.limit(player) - len(player.open)
        if player.link is None:
            room = judge.limit(player) if player.unseen else 0
        return len(sure) - max(0, room) >= self._maximum

    def refuses(self, message: Message) -> tuple[bool, bool]:
        """Return whether a message may be refused, and whether it must be."""
        may = must = False
        if self._policy != "reject":
            return may, must
        for session in self._judge.naive.sessions.values():
            wanted = [one for one in session.subscriptions.values() if session.wants(one, message)]
            if not message.qos or not session.expiry or not any(one.qos for one in wanted):
                continue
            own = any(one.qos for one in wanted if not one.share)
            shared = sum(1 for one in wanted if one.qos and one.share)
            may = may or self.may_be_full(session, own + shared)
            must = must or (own and self._is_full(session))
        return may, must

    def publish(self, message: Message) -> bool:
        """Let the naive broker take a message; what may find no room is optional."""
        naive = self._judge.naive
        sessions = naive.sessions.values()
        full = [each for each in sessions if self.may_be_full(each)]
        before = [(each, len(each.owed)) for each in full]
        choices = len(naive.choices)
        found = naive.publish(message)
        for session, length in before:
            for copy in session.owed[length:]:
                kept = copy.qos and session.expiry and self._policy == "reject"
                copy.optional = not kept
            if self._policy == "drop-oldest":
                for copy in session.owed[:length]:
                    copy.optional = True
        names = {each.client_id for each in full}
        for choice in naive.choices[choices:]:
            choice.loose = not names.isdisjoint(choice.copies)
        return found
