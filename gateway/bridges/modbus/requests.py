"""Groups registers into requests, and decides when each device's next request is due."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.bridges.modbus.register import Register

WORDS_MAX = 120
"""Registers of one request; Modbus allows 125."""

BITS_MAX = 1_000
"""Coils of one request; Modbus allows 2,000."""

QUESTION_BYTES = 8
ANSWER_BYTES = 5
"""Bytes of a question, and of an answer without its registers (device, function, size, CRC)."""

ABSENT_FIRST = 2.0
"""Seconds for which a device that did not answer is skipped; doubled each time."""

ABSENT_MAX = 60.0
"""Most seconds of it: the longest delay after a device is switched on again."""

REFUSED_FIRST = 60.0
"""Seconds after which a refused request is repeated; doubled each time."""

REFUSED_MAX = 3_600.0
"""Most seconds of it: the longest delay after a device begins to support a value."""

LATE_MAX = 10.0
"""Seconds after which an answer on a serial line cannot arrive any more."""

LISTEN_EVERY = 60.0
"""After so many seconds a serial line is silent after an answer, for as long as one may take. An
answer that the device repeats, or sends late, then belongs to no question."""

REPEAT_MAX = 1.0
"""Seconds from an answer to its repetition; what comes later, another master may have asked."""

FADING = 0.9
"""The part of the pause that remains if an answer is repeated sooner: a board may be busy once."""

EARLY = 0.8
"""The part of a device's shortest time before which an answer may be that to another question."""

QUICK = 0.005
"""Seconds of an answer that is never too early."""

ILLEGAL = (2, 3)
"""Exception codes that concern the request: a register that does not exist, or too many."""

FAILURE = 4
"""Exception code of a failed device, which some also send for a refused register."""

FAILURES_MAX = 3
"""Failures in a row after which a request is split: a starting device may fail for a while."""

FOR_NOW = (FAILURE, 5, 6)
"""Exception codes that may be over when the next question is due: failed, needs longer, busy."""

BUSY_MAX = 12
"""Such exceptions in a row after which they may concern only a part of a request."""

SILENCES_MAX = 4
"""Questions in a row without an answer, after which a device is asked for one value instead."""

SILENCES_OF_LOSS = 2
"""Such questions for which one counts after which the device closed the connection."""

IGNORED_MAX = 3
"""Such questions for one value, with answers to others between them, after which it is refused."""

PROBES = 3
"""Values that are asked for in turn: the first, the last and the middle one of a request."""

NAMES_MAX = 4
"""Quantities of a request that are named."""


@dataclass(slots=True)
class Request:
    """Adjacent registers of one device and table that are polled at one interval."""

    registers: list[Register]
    due: float = 0.0
    trouble: str = ""
    refused: int = 0
    """Exceptions in a row."""
    silences: int = 0
    """Unanswered questions in a row."""
    answers_before: int = 0
    """Answers of the device before the last of them."""
    ignored: int = 0
    """Those before which the device answered another question."""
    probed: int = 0
    """Values that were asked for instead, since it was refused."""
    proven: bool = False
    """Whether one of these was answered, so that it is split unless it is answered now."""

    @property
    def first(self) -> Register:
        """The first register of the request."""
        return self.registers[0]

    @property
    def count(self) -> int:
        """Registers or bits from the first to the end of the last."""
        return max(each.address + each.size for each in self.registers) - self.first.address

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the question and of the answer in RTU."""
        data = (self.count + 7) // 8 if self.first.is_bit else 2 * self.count
        return QUESTION_BYTES, ANSWER_BYTES + data

    @property
    def title(self) -> str:
        """The registers in the notation of a manual."""
        first, last = self.first.address, self.first.address + self.count - 1
        where = f"{first}" if first == last else f"{first} to {last}"
        names = list(dict.fromkeys(each.quantity for each in self.registers))
        more = len(names) - NAMES_MAX
        shown = ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
        return f"{self.first.table} {where} ({shown})"

    def may_split(self, code: int) -> bool:
        """Return whether an exception may concern only a part of it."""
        illegal = code in ILLEGAL or (code == FAILURE and self.refused >= FAILURES_MAX)
        return (illegal or self.proven) and len(self.registers) > 1

    def may_probe(self, code: int) -> bool:
        """Return whether a value of it may be answered although it was refused with this code."""
        lasting = code not in FOR_NOW or self.refused >= BUSY_MAX
        return lasting and len(self.registers) > 1 and self.probed < PROBES

    def value(self, place: int) -> list[Register]:
        """Return its first, its last or its middle register, in turn."""
        middle = len(self.registers) // 2
        return [self.registers[(0, -1, middle)[place % PROBES]]]

    def answered(self) -> None:
        """Record values."""
        self.refused = self.silences = self.ignored = self.probed = 0
        self.proven = False

    def refuse(self, now: float) -> None:
        """Record that it is refused: it is polled less and less often."""
        wait = min(REFUSED_FIRST * 2.0 ** min(self.refused - 1, 10), REFUSED_MAX)
        self.due = now + max(wait, self.first.interval)
        self.probed = 0


@dataclass(slots=True)
class Device:
    """A device on the bus with its requests; one that does not answer is skipped for a while.

    On a serial line nothing in an answer identifies its question. After an unanswered question
    (`unanswered`) the same one is repeated until it is answered. Then the device is skipped for as
    long as a late answer may arrive, so that it is not matched to another question.
    """

    number: int
    requests: list[Request] = field(default_factory=list)
    absent_until: float = 0.0
    wait: float = 0.0
    trouble: str = ""
    unanswered: Request | None = None
    late_expected: int = 0
    """Answers that may still arrive."""
    first_request_at: float = 0.0
    last_request_at: float = 0.0
    """When the first and the last of the unanswered questions were sent."""
    doubted: Request | None = None
    """The request that may be too large for it or contain an unknown register."""
    probe: Request | None = None
    """One value of that request, which shows whether the device answers for a part of it."""
    answers: int = 0
    """Answers so far."""
    answered_at: float = -math.inf
    listened_at: float = -math.inf
    """When the line was last silent after an answer."""
    quickest: float = math.inf
    """The shortest time of an answer, seconds."""
    pause: float = 0.0
    """Seconds of silence after each answer, since it repeated one."""

    def next(self, now: float = 0.0) -> Request:
        """Return the request that is due first, or the one that has to be repeated."""
        waiting = now < self.last_request_at + LATE_MAX
        late = self.unanswered if waiting else None
        if self.probe is not None and (late is None or late.count != self.probe.count):
            return self.probe  # an answer to the other has another length
        if late is not None:
            return late
        return min(self.requests, key=lambda request: request.due)

    def due(self, now: float = 0.0) -> float:
        """Return when the next request is due."""
        return max(self.next(now).due, self.absent_until)

    @property
    def in_trouble(self) -> bool:
        """True for a device that does not answer, or refuses a request."""
        return bool(self.trouble) or any(each.trouble for each in self.requests)

    @property
    def earliest(self) -> float:
        """Seconds from a question before which an answer may be that to another question."""
        early = EARLY * self.quickest
        return early if QUICK < early < math.inf else 0.0

    def answered(self, now: float = 0.0, *, named: bool = False, listen: float = 0.0) -> None:
        """Record an answer, and that one more may arrive, unless answers name their questions.

        `listen` is how long the line is silent now and then.
        """
        self.answers += 1
        self.wait, self.absent_until = 0.0, 0.0
        if not named and self.late_expected and now < self.last_request_at + LATE_MAX:
            self.absent_until = now + min(2 * (now - self.first_request_at), LATE_MAX)
        else:
            self.late_expected = 0
        self.unanswered = None
        if not named:
            due = now >= self.listened_at + LISTEN_EVERY
            self.listened_at = now if due else self.listened_at
            wait = max(self.pause, listen if due else 0.0)
            self.absent_until = max(self.absent_until, now + wait)
        self.answered_at = now

    def repeats(self, now: float) -> bool:
        """Record an answer to no question; return whether it is the first one repeated."""
        after = now - self.answered_at
        if self.late_expected or after > REPEAT_MAX:
            return False
        first = not self.pause
        self.pause = max(2 * after, FADING * self.pause)
        self.absent_until = max(self.absent_until, now + self.pause)
        return first

    def silent(self, now: float) -> None:
        """Record a missing answer: the other devices must not wait for this one repeatedly."""
        self.wait = min(self.wait * 2 or ABSENT_FIRST, ABSENT_MAX)
        self.absent_until = now + self.wait

    def expect_late(self, request: Request | None, requested_at: float) -> None:
        """Record that an answer may arrive late.

        `request` is None for a write, whose answer echoes what was written.
        """
        if not self.late_expected or requested_at > self.last_request_at + LATE_MAX:
            self.late_expected, self.first_request_at = 0, requested_at
        self.late_expected += 1
        self.last_request_at = requested_at
        if request is not None:
            self.unanswered = request
            request.due = self.absent_until

    def late(self) -> None:
        """Record that a late answer arrived."""
        self.late_expected = max(self.late_expected - 1, 0)
        if self.late_expected == 0:
            self.unanswered = None
            self.absent_until = self.absent_until if self.wait else 0.0

    def doubt(self, request: Request, silences: int = 1) -> bool:
        """Record an unanswered request: some devices do not answer one that is too large.

        Nor do some answer for a register that they do not have. Returns True if that is the only
        one of the request, while others are answered.
        """
        self.probe = self.doubted = None
        request.silences += silences
        request.ignored += self.answers > request.answers_before
        request.answers_before = self.answers
        if len(request.registers) == 1:
            return request.ignored >= IGNORED_MAX
        if request.proven:
            self.split(request, self.absent_until)
            self.unanswered = None  # an answer to all of it fits no part
        elif request.silences >= SILENCES_MAX:
            self.suspect(request, self.absent_until)
        return False

    def suspect(self, request: Request, now: float) -> None:
        """Ask for one value of a request instead.

        It may be too large, or contain a register that the device does not have.
        """
        self.doubted, self.probe = request, Request(request.value(request.probed), now)
        request.probed += 1

    def believe(self, now: float, *, refused: bool) -> None:
        """Record an answer for the value that was asked for instead of a request.

        The request is asked for once more, and split if it is not answered: the device may only
        have been away.
        """
        if self.doubted is None:
            return
        if refused and self.doubted.refused:
            self.doubted.refused -= 1
        else:
            self.doubted.proven = True
        self.doubted.due = now
        self.doubted = self.probe = None

    def split(self, request: Request, now: float) -> None:
        """Replace a request by its two halves."""
        middle = len(request.registers) // 2
        parts = request.registers[:middle], request.registers[middle:]
        place = self.requests.index(request)
        failing = request.refused if request.refused >= FAILURES_MAX else 0
        silent = min(request.silences, SILENCES_MAX - 1)
        self.requests[place : place + 1] = [
            Request(part, now, refused=failing, silences=silent, answers_before=self.answers)
            for part in parts
        ]


def plan(registers: Iterable[Register], most: int = WORDS_MAX) -> list[Device]:
    """Return the devices of a register map, with adjacent registers in one request.

    A request has at most `most` registers, unless a single value has more.
    """
    devices: dict[int, Device] = {}
    ordered = sorted(
        registers, key=lambda each: (each.device, each.table, each.interval, each.address)
    )
    for register in ordered:
        device = devices.setdefault(register.device, Device(register.device))
        if register.press is not None:  # it is only written
            continue
        if device.requests and _is_adjacent(device.requests[-1], register, most):
            device.requests[-1].registers.append(register)
        else:
            device.requests.append(Request([register]))
    return list(devices.values())


def _is_adjacent(request: Request, register: Register, most_words: int) -> bool:
    """Return whether a register directly follows a request, or lies within it."""
    first = request.first
    if (first.table, first.interval) != (register.table, register.interval):
        return False
    end = first.address + request.count
    most = BITS_MAX if register.is_bit else most_words
    return register.address <= end and register.address + register.size - first.address <= most
