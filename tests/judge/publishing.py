"""What clients publish, and how that is answered."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.conformance.support import wire
from tests.judge.disagreement import check
from tests.judge.listener import read_answer
from tests.judge.messages import Message
from tests.judge.player import Outgoing, Player

if TYPE_CHECKING:
    from tests.judge.judge import Judge

MATCHED, UNMATCHED, FAILURE, REFUSED = 0x00, 0x10, 0x80, 0x97


class Publishing:
    """Publishes for all clients of a judge."""

    def __init__(self, judge: "Judge") -> None:
        self._judge = judge

    def publish(self, name: str, messages: Sequence[tuple[Message, int]], cut: int = 0) -> None:
        """Publish messages in one read, each with a topic alias, or 0."""
        accepted = self.hand_over(name, messages, cut)
        self._judge.driver.settle()
        self.taken(name, accepted)
        self._judge.exchange()

    def hand_over(
        self, name: str, messages: Sequence[tuple[Message, int]], cut: int = 0
    ) -> list[Message]:
        """Publish them, and return them as they were accepted; `taken` compares the answers.

        With `cut` the bytes come in two reads, of which the first has so many, or all but one.
        """
        player = self._judge.players[name]
        assert player.link is not None
        accepted = [replace(message, accepted=self._judge.driver.now) for message, _ in messages]
        aliases = [alias for _, alias in messages]
        data = b"".join(map(player.publish, accepted, aliases))
        if cut:
            place = min(cut, len(data) - 1)
            player.link.hand_over(data[:place])
            self._judge.driver.settle()
            data = data[place:]
        player.link.hand_over(data)
        return accepted

    def taken(self, name: str, messages: Sequence[Message], *, all_of_them: bool = True) -> None:
        """Let the naive broker take what the broker took, and compare the answers."""
        player = self._judge.players[name]
        link = player.link
        assert link is not None
        codes: dict[int, int] = {}
        for packet in [each for each in link.inbox if each[0] & 0xF0 in (wire.PUBACK, wire.PUBREC)]:
            link.inbox.remove(packet)
            packet_id, code = read_answer(packet)
            message = player.heard(packet[0], packet_id, code)
            if message is not None:
                codes[message.number] = code
        for qos in (1, 2):
            asked = [message.number for message in messages if message.qos == qos]
            order = [number for number in codes if number in asked]
            text = f"{name}: {asked} were answered as {order}"
            check(order == asked[: len(order)] if not all_of_them else order == asked, text)
        for message in messages:
            self._compare(player, message, codes.get(message.number))

    def _compare(self, player: Player, message: Message, code: int | None) -> None:
        """Take a message as it was answered; None if it was not."""
        newest = player.version == wire.MQTT_5
        text = f"{player.name}: {message.number} to {message.topic} was answered {code}"
        if self._may_not(player.name, message.topic):
            self._judge.refused += 1
            expected = 0x87 if newest else MATCHED
            check(code is None or code == expected, text)
            return
        if message.topic.startswith("$delay/"):
            self._judge.naive.delay(message)
            check(code is None or code == MATCHED, text)
            return
        if self._judge.naive.uplink_is_full and message.qos:
            self._judge.refused += 1
            check(code in (REFUSED, None), f"{text}, and the uplink is full")
            return
        may, must = self._judge.bounds.refuses(message)
        if code == REFUSED:
            check(may, f"{text}, and nobody is full")
            self._judge.refused += 1
            return
        check(code is None or not must, f"{text}, and somebody is full")
        expected = MATCHED if self._judge.bounds.publish(message) else UNMATCHED
        sure = self._judge.uplink is None and not self._judge.naive.rights.restrict
        if code is not None and newest and sure:
            check(code == expected, f"{text}, not {expected}")
        elif code is None and message.qos:
            self._unanswered(message)

    def _may_not(self, name: str, topic: str) -> bool:
        delayed = topic.startswith("$delay/")
        return (topic.startswith("$") and not delayed) or not self._judge.naive.may_write(
            name, topic
        )

    def is_not_answered(self, name: str, messages: Sequence[Message]) -> None:
        """Make sure that nothing is acknowledged which is promised to somebody who is away."""
        naive, player = self._judge.naive, self._judge.players[name]
        assert player.link is not None
        numbers = {each.message.number: n for n, each in player.outgoing.items()}
        answered = {
            read_answer(packet)[0]
            for packet in player.link.inbox
            if packet[0] & 0xF0 in (wire.PUBACK, wire.PUBREC) and read_answer(packet)[1] < FAILURE
        }
        for message in messages:
            if message.qos and naive.is_kept(name, message):
                text = f"{name}: {message.number} was answered, and is not on disk"
                check(numbers[message.number] not in answered, text)

    def _unanswered(self, message: Message) -> None:
        """Note that nobody is promised this message."""
        for session in self._judge.naive.sessions.values():
            for copy in session.owed:
                copy.optional = copy.optional or copy.message is message
        for choice in self._judge.naive.choices:
            choice.loose = choice.loose or choice.message is message

    def lose_answers(self, name: str, messages: Sequence[tuple[Message, int]]) -> None:
        """Publish, and lose the connection before the answers are read."""
        player = self._judge.players[name]
        for message in self.hand_over(name, messages):
            if self._may_not(name, message.topic):
                self._judge.refused += 1
            else:
                self._judge.bounds.publish(message)
        for outgoing in player.unanswered:
            outgoing.taken = True
        self._judge.drop(name)

    def again(self, name: str, outgoing: Sequence[Outgoing]) -> None:
        """Take messages a second time, which may have been taken the first time."""
        for one in outgoing:
            message = replace(one.message, accepted=self._judge.driver.now)
            self._judge.unrouted += 1  # or routed again: either is right
            if self._may_not(name, message.topic):
                continue
            if not one.taken:
                self._perhaps_again(message)
            elif message.qos == 1:
                self._judge.bounds.publish(message)

    def _perhaps_again(self, message: Message) -> None:
        naive = self._judge.naive
        may_be_refused, _ = self._judge.bounds.refuses(message)
        before = {each.client_id: [*each.owed] for each in naive.sessions.values()}
        choices = len(naive.choices)
        self._judge.bounds.publish(message)
        for session in naive.sessions.values():
            owed = before[session.client_id]
            first = [each for each in owed if each.message.number == message.number]
            for copy in session.owed[len(owed) :]:
                copy.first = first[0] if first else None
                copy.optional = copy.optional or may_be_refused or not first
        for choice in naive.choices[choices:]:
            choice.loose = True
