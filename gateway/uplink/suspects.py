"""Finds messages on which the fleet's broker ends the connection, so that they block no others."""

from collections import deque
from collections.abc import Sequence
from itertools import chain

from gateway.mqtt.reason_codes import FAILURE
from gateway.uplink.errors import End
from gateway.uplink.sent import Sent

BLAMED = (End.CLOSED, End.RESET, End.REFUSED, End.TOO_LARGE, End.MALFORMED)
"""Ends for which a message may be rejected."""

DOUBTED = (*BLAMED, End.TOO_FAST)
"""Ends after which a message may have to wait for others."""

SOON_SECONDS = 10.0
"""Seconds after which an end is not attributed to a message that was sent before."""

SLOWEST_LINK = 8 * 1024
"""Bytes per second of the slowest link that is supported."""

LATELY_SECONDS = 600.0
"""Seconds after a find for which the first end already starts a search, not the second."""

STEP = 64
"""Messages answered in a search after which twice as many may be in flight, and again."""

MAXIMUM_STEPS = 10

MAXIMUM_HELD = 16
"""Messages that others may overtake; a further one stays in order, and is tried again there."""

RETRY_FIRST, RETRY_LONGEST = 1.0, 60.0
"""Seconds until a held message is tried again, doubled each time."""

RETRY_PASSED = 2.0
"""The most seconds since its last end, once others have passed: the next end may be the last."""


class Suspect:
    """A packet that was the only one in flight when `ends` connections ended.

    `mid` is its packet identifier in the session at the fleet's broker, 0 if that has none.
    `others_passed` is since the last of these ends.
    """

    __slots__ = (
        "blamed",
        "due",
        "end",
        "ended_at",
        "ends",
        "mid",
        "others_passed",
        "sent",
        "since",
    )

    def __init__(self, mid: int, sent: Sent, now: float) -> None:
        self.mid = mid
        self.sent = sent
        self.since = now
        self.ends = 0
        self.blamed = 0
        self.others_passed = False
        self.end = End.CLOSED
        self.due = self.ended_at = now


class Suspects:
    """Messages that may have ended connections, remembered across connections.

    After the second end with the same messages in flight these are sent one at a time (`searching`,
    with `window` of them in flight). One that was the only one in flight when the connection ended
    is `held`: it is first on the next connection, and after that the others overtake it. It is sent
    separately again when others have passed. If `maximum_ends` connections have ended like this (0:
    never), or it has been tried for `retry_seconds`, it is rejected. A fleet that ends every
    connection, whatever the message, never has one rejected; nor has one that ends each after a
    number of messages. If it ends them at random, each held message that passes raises the number
    of ends by one.
    """

    def __init__(self, maximum_ends: int, retry_seconds: float) -> None:
        self.searching = False
        self.held: list[Suspect] = []
        self.trial: Suspect | None = None
        self.progress = False
        """Whether a message was acknowledged on this connection."""
        self.blamed: Suspect | None = None
        """The messages to which the last end was attributed."""
        self.without_status = False
        """Whether the status message was rejected."""
        self.change(maximum_ends, retry_seconds)
        self._answered = 0
        self._first: Suspect | None = None
        self._before: frozenset[int] = frozenset()
        self._found_at: float | None = None
        self._acquitted = 0

    def change(self, maximum_ends: int, retry_seconds: float) -> None:
        """Apply other bounds from now on."""
        self._maximum_ends = maximum_ends
        self._retry_seconds = retry_seconds

    @property
    def active(self) -> bool:
        """Whether anything is suspected."""
        return self.searching or bool(self.held)

    @property
    def blocks(self) -> bool:
        """Whether others must wait now: for a search, or for one that is tried by itself."""
        return self.searching or self.trial is not None or self._first is not None

    @property
    def window(self) -> int:
        """How many packets may be in flight in a search."""
        return 1 << min(self._answered // STEP, MAXIMUM_STEPS)

    @property
    def rows(self) -> set[int]:
        """The ids of the rows that are held."""
        return {row.id for suspect in self.held for row in suspect.sent.rows}

    @property
    def holds_status(self) -> bool:
        """Whether the status message is held, or was rejected."""
        return self.without_status or any(suspect.sent.is_status for suspect in self.held)

    def begin(self, *, present: bool) -> None:
        """Begin a connection; without the session at the fleet's broker no identifier is known."""
        self.progress = False
        self._answered = 0
        self._first = next((each for each in self.held if each.ends == 1), None)
        if not present:
            for suspect in self.held:
                suspect.mid = 0

    def next_trial(self, now: float, *, idle: bool) -> Suspect | None:
        """Return the suspect to send separately now; others pass before it, if there are any."""
        if self._first is not None:
            return self._first
        if self.searching or not (self.progress or idle):
            return None
        return next((each for each in self.held if each.due <= now), None)

    def try_(self, suspect: Suspect) -> None:
        """Note that a suspect is sent separately."""
        self.trial, self._first = suspect, None

    def clear(self, suspect: Suspect) -> None:
        """Forget a suspect that was accepted or removed."""
        self.held.remove(suspect)
        if self._first is suspect:
            self._first = None

    def answered(self, sent: Sent, code: int) -> None:
        """Note a PUBACK: an answered message did not end the connection."""
        self._answered += 1
        if self.trial is not None and self.trial.sent is sent:
            self.held.remove(self.trial)
            self.trial = None
            # Connections seem to end at random: require more ends to reject others.
            self._acquitted = min(self._acquitted + 1, MAXIMUM_STEPS)
        if sent.rows and code < FAILURE:
            self.progress = True
            for suspect in self.held:
                self._note_passed(suspect)

    def _note_passed(self, suspect: Suspect) -> None:
        if not suspect.others_passed:
            suspect.others_passed = True
            if self._maximum_ends and suspect.end in BLAMED:
                suspect.due = min(suspect.due, suspect.ended_at + RETRY_PASSED)

    def end_search(self) -> None:
        """Note that all suspects were answered, or are held."""
        self.searching = False

    def ended(
        self, inflight: Sequence[tuple[int, Sent]], end: End, now: float
    ) -> tuple[list[tuple[int, Sent]], Suspect | None]:
        """Note how a connection ended; return the packets to repeat, and those to reject.

        `inflight` had no PUBACK.
        """
        trial, self.trial, self._first = self.trial, None, None
        self.blamed = None
        others = [each for each in inflight if trial is None or each[1] is not trial.sent]
        # After a clean end, or with nothing in flight, no message is to blame.
        if end not in DOUBTED or not inflight:
            return others, None
        if trial is not None:
            return others, self._blame(trial, end, now)
        # Nothing else was in flight during a search: only it can have ended the connection.
        if self.searching and len(others) == 1:
            return self._suspect(*others[0], end, now)
        self._compare(others, now)
        return others, None

    def _suspect(
        self, mid: int, sent: Sent, end: End, now: float
    ) -> tuple[list[tuple[int, Sent]], Suspect | None]:
        """Blame the only message in flight; each message of a batch is tried separately."""
        # an end long after the sending has another cause
        if not _is_soon(sent, now):
            return [(mid, sent)], None
        if len(sent.rows) > 1:
            # in new packets: the identifier belongs to the batch
            return [(0, Sent(row.size, (row,), batched=True)) for row in sent.rows], None
        # At the bound this one continues as an ordinary message, and its rows stay on disk.
        if len(self.held) >= MAXIMUM_HELD:
            return [(mid, sent)], None
        suspect = Suspect(mid, sent, now)
        self.held.append(suspect)
        return [], self._blame(suspect, end, now)

    def _blame(self, suspect: Suspect, end: End, now: float) -> Suspect | None:
        """Count an end against a suspect; return it if it is to be rejected."""
        if _is_soon(suspect.sent, now):
            suspect.ends += 1
            suspect.blamed += end in BLAMED
            suspect.end, suspect.ended_at = end, now
            self.blamed = suspect
            self._found_at = now
            passed, suspect.others_passed = suspect.others_passed, False
        else:
            passed = False
        suspect.due = now + min(RETRY_FIRST * 2.0 ** (suspect.ends - 1), RETRY_LONGEST)
        # If no others passed, the fleet itself may be broken.
        if not passed or not self._is_hopeless(suspect, now):
            return None
        self.held.remove(suspect)
        self._acquitted = 0
        return suspect

    def _is_hopeless(self, suspect: Suspect, now: float) -> bool:
        ends = self._maximum_ends + self._acquitted
        if not self._maximum_ends or suspect.ends < ends:
            return False
        return suspect.blamed >= ends or now - suspect.since > self._retry_seconds

    def _compare(self, inflight: Sequence[tuple[int, Sent]], now: float) -> None:
        """Start a search if some of these were in flight at the end before, too."""
        found = frozenset(chain.from_iterable(_keys(sent) for _, sent in inflight))
        lately = self._found_at is not None and now - self._found_at < LATELY_SECONDS
        if not lately:
            self._acquitted = 0
        if lately or found & self._before:
            self.searching = True
        self._before = found


def new_identifiers(unanswered: "deque[tuple[int, Sent]]") -> "deque[tuple[int, Sent]]":
    """Return the same packets, to be sent as if for the first time."""
    return deque((0, sent) for _, sent in unanswered)


def _keys(sent: Sent) -> list[int]:
    """Return numbers that identify the contents of a packet, in whichever packet they are."""
    if sent.own is not None:
        return [-sent.own.number]
    return [row.id for row in sent.rows] or [0]


def _is_soon(sent: Sent, now: float) -> bool:
    return now - sent.at <= SOON_SECONDS + sent.size / SLOWEST_LINK
