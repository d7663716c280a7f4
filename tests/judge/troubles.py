"""What may happen to the broker under all clients: other rules, a full outbox, disks, crashes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.judge.messages import Message

if TYPE_CHECKING:
    from tests.judge.judge import Judge


def reload(judge: "Judge", rules: dict[str, str | None]) -> None:
    """Let listeners have other rules from now on."""
    judge.naive.rights.rules.update(rules)
    for session in judge.naive.sessions.values():
        for copy in session.owed:  # it may have been looked at while it might not be sent
            copy.optional = copy.optional or bool(copy.replay) or not copy.qos
    for choice in judge.naive.choices:
        choice.loose = True
    judge.driver.reload(rules)
    judge.exchange()


def fill_uplink(judge: "Judge", *, full: bool) -> None:
    """Let the uplink's outbox refuse messages from now on, or take them again."""
    assert judge.uplink is not None
    judge.uplink.full = judge.naive.uplink_is_full = full
    judge.exchange()


def refuse_commits(
    judge: "Judge", publishes: Sequence[tuple[str, Sequence[tuple[Message, int]]]]
) -> None:
    """Publish while the disk takes nothing, which is not answered before it does again."""
    judge.driver.commits = False
    accepted = [(name, judge.publishing.hand_over(name, messages)) for name, messages in publishes]
    judge.driver.settle()
    for name, messages in accepted:
        judge.publishing.is_not_answered(name, messages)
    judge.driver.commits = True
    judge.driver.settle()
    for name, messages in accepted:
        judge.publishing.taken(name, messages)
    judge.exchange()


def power_cut(
    judge: "Judge", publishes: Sequence[tuple[str, Sequence[tuple[Message, int]]]]
) -> None:
    """Crash while what is published is not on disk."""
    judge.driver.commits = False
    accepted = [(name, judge.publishing.hand_over(name, messages)) for name, messages in publishes]
    judge.driver.settle()
    for name, messages in accepted:
        judge.publishing.taken(name, messages, all_of_them=False)
    judge.exchange()
    judge.driver.commits = True
    crash(judge)


def crash(judge: "Judge") -> None:
    """Let the broker lose what is not on disk, and start again."""
    judge.crashed = True
    for name, player in judge.players.items():
        session = judge.naive.sessions.get(name)
        if session is not None and session.connected:
            judge.leaves(name)
        player.crashed()
    for channel in judge.naive.channels:
        channel.crash()
    judge.driver.crash()
    judge.naive.crash(judge.driver.started)
    judge.tell_time()
    judge.exchange()
