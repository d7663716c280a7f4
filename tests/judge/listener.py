"""Hears what clients are sent, compares it with what they are owed, and lets them answer."""

from typing import TYPE_CHECKING

from gateway.session.inflight import MAXIMUM_BYTES
from tests.conformance.support import wire
from tests.conformance.support.answers import Publish, body, read_publish
from tests.judge.disagreement import DisagreementError, check
from tests.judge.messages import Copy
from tests.judge.player import Player
from tests.judge.sight import is_seen, resolve

if TYPE_CHECKING:
    from tests.judge.judge import Judge

ANSWERS = (wire.PUBACK, wire.PUBREC, wire.PUBCOMP)


class Listener:
    """Listens for all clients of a judge."""

    def __init__(self, judge: "Judge") -> None:
        self._judge = judge

    def exchange(self) -> None:
        """Let all clients read and answer until nothing more comes."""
        self._judge.tell_time()
        busy = True
        while busy:
            busy = False
            for player in self._judge.players.values():
                busy = self._hear(player) or busy
            for player in self._judge.players.values():
                if player.idle and player.due:
                    self.answer(player, len(player.due))
                    busy = True

    def answer(self, player: Player, most: int, code: int = 0) -> None:
        """Send the answers that are due first."""
        packets = player.answer(most, code)
        reads = packets if player.profile.one_by_one else [b"".join(packets)]
        for data in reads:
            assert player.link is not None
            player.link.say(data)

    def _hear(self, player: Player) -> bool:
        link = player.link
        if link is None or not link.inbox:
            return False
        packets, link.inbox = link.inbox, []
        for packet in packets:
            kind = packet[0] & 0xF0
            if kind == wire.PUBLISH:
                self._hear_publish(player, read_publish(packet, player.version), len(packet))
            elif kind in ANSWERS:
                player.heard(kind, *read_answer(packet))
            elif kind == wire.PUBREL & 0xF0:
                packet_id = int.from_bytes(body(packet)[:2], "big")
                player.open.setdefault(packet_id, 0)
                if packet_id in player.held:  # since a crash nobody knew
                    player.released[packet_id] = player.held.pop(packet_id)
                player.due.append((wire.PUBCOMP, packet_id))
            else:
                expected = player.awaited.pop(0) if player.awaited else b""
                check(packet == expected, f"{player.name}: {packet!r}, not {expected!r}")
        check(not link.closed, f"{player.name}: closed")
        return True

    def _hear_publish(self, player: Player, publish: Publish, size: int) -> None:
        profile = player.profile
        limit = profile.maximum_packet_size
        check(not limit or size <= limit, f"{player.name}: a packet of {size} bytes")
        publish = resolve(player, publish)
        packet_id = publish.packet_id
        if packet_id in player.held or packet_id in player.released:
            copy = (player.held if packet_id in player.held else player.released)[packet_id]
            check(publish.dup, f"{player.name}: {packet_id} again without DUP")
            check(packet_id not in player.open, f"{player.name}: {packet_id} twice")
            check(self._is_seen(player, copy, publish), f"{player.name}: {packet_id} is another")
            check(packet_id in player.held, f"{player.name}: {packet_id} after its PUBREC")
        else:
            copy = self._take(player, publish)
        allowed = player.stale or self._judge.may_be_sent(player, copy)
        check(allowed, f"{player.name}: {copy.message.topic}, which it may not read")
        if publish.qos:
            player.held[packet_id] = copy
            player.open[packet_id] = len(publish.payload)
            kind = wire.PUBACK if publish.qos == 1 else wire.PUBREC
            player.due.append((kind, packet_id))
            limit = self._judge.limit(player)
            check(len(player.open) <= limit, f"{player.name}: {len(player.open)} unacknowledged")
            total = sum(player.open.values())
            most = MAXIMUM_BYTES + max(player.open.values())
            check(total <= most, f"{player.name}: {total} bytes unacknowledged")

    def _take(self, player: Player, publish: Publish) -> Copy:
        """Return the copy that came, which is owed no more."""
        again = self._sent_again(player, publish)
        if again is not None:
            return again
        found = self._take_from_all(player, publish) or self._take_from_channel(player, publish)
        if found is None:
            shown = publish._replace(payload=publish.payload[:60])
            raise DisagreementError(f"{player.name}: not owed, or before others: {shown}")
        found.came = True
        return found

    def _sent_again(self, player: Player, publish: Publish) -> Copy | None:
        """Return the copy that comes once more since the broker crashed, None if it is another.

        A message that was published twice, since the first answer was lost, looks the same both
        times. What comes without DUP is then the one that is owed next. Where that cannot be told
        the one that is owed may have been it, and need not come.
        """
        if not (publish.dup or player.unmarked):
            return None
        again = next((each for each in player.again if self._is_seen(player, each, publish)), None)
        if again is None:
            return None
        owed, passed = self._find_own(player, publish, skip=True)
        if owed is not None and not (publish.dup or passed):
            return None
        player.again.remove(again)
        again.came = True
        if owed is not None and owed.first is None:
            owed.first = again
        return again

    def _take_from_all(self, player: Player, publish: Publish) -> Copy | None:
        """Return a copy that is owed to the client alone, or is one for a member of its group.

        One without a payload may be any, and so is better looked for among all that come next.
        What is optional is not taken before what must come.
        """
        shared = self._judge.shared
        for skip in (bool(publish.payload), True):
            own, passed = self._find_own(player, publish, skip=skip)
            if own is not None and own.optional:
                due = shared.take(player, publish, only_due=True)
                if due is not None:
                    return due
            if own is not None:
                self._take_own(player, own, passed)
                return own
            found = shared.take(player, publish, only_due=False)
            if found is not None:
                return found
        return None

    def _take_from_channel(self, player: Player, publish: Publish) -> Copy | None:
        session = self._judge.naive.sessions[player.name]
        for channel in self._judge.naive.channels:
            if channel.name in session.subscriptions:
                return channel.give(player.name, publish.topic, publish.payload, publish.qos)
        return None

    def _find_own(
        self, player: Player, publish: Publish, *, skip: bool
    ) -> tuple[Copy | None, list[Copy]]:
        """Return a copy that is owed, and those before it, of which optional ones may `skip`."""
        before: dict[tuple[str, str, int], list[Copy]] = {}
        for copy in self._judge.naive.sessions[player.name].owed:
            passed = before.setdefault(copy.key, [])
            may_come = all(
                (skip or not each.optional) and self._judge.may_stay_out(player, each)
                for each in passed
            )
            if may_come and self._is_seen(player, copy, publish):
                return copy, passed
            passed.append(copy)
        return None, []

    def _take_own(self, player: Player, copy: Copy, passed: list[Copy]) -> None:
        """Owe a copy no more, nor those of its order that can come no more."""
        session = self._judge.naive.sessions[player.name]
        gone = [*passed, copy]
        if copy.message.qos == 2 and copy.qos == 2 and not copy.replay:
            gone += [each for each in session.owed if each.first is copy]
            gone.append(copy.first or copy)
        session.owed = [each for each in session.owed if each not in gone]

    def _is_seen(self, player: Player, copy: Copy, publish: Publish) -> bool:
        return is_seen(player, copy, publish, self._judge.driver.now)


def read_answer(packet: bytes) -> tuple[int, int]:
    """Return packet identifier and code of an answer to PUBLISH or PUBREL."""
    fields = body(packet)
    return int.from_bytes(fields[:2], "big"), fields[2] if len(fields) > 2 else 0
