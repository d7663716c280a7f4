"""The unsent bytes of a connection, parts of which may wait until rows are on disk."""

from collections.abc import Callable
from math import inf

from gateway.mqtt.delivery_policy import DeliveryPolicy


class Barrier:
    """Lets an answer be sent before its commit, once every receiver has acknowledged the message.

    `outstanding` is how many receivers have the message and have not acknowledged it. Code that
    delivers a message calls `add` for each receiver before the answer is queued, and `settle` once
    for each that acknowledged it or will not get it. The last calls `on_settled`, which the
    connection sets when it queues the answer.
    """

    __slots__ = ("on_settled", "outstanding")

    def __init__(self) -> None:
        self.outstanding = 0
        self.on_settled: Callable[[], None] | None = None

    def add(self) -> None:
        """Wait for one more receiver."""
        self.outstanding += 1

    def settle(self) -> None:
        """Wait for one receiver less."""
        self.outstanding -= 1
        if not self.outstanding and self.on_settled is not None:
            self.on_settled()


class Pending:
    """Counts what answers wait for; both numbers only rise.

    `changes` are rows and changes that become rows. `deferred` are writes that an answer waits for
    unless every receiver acknowledges before.
    """

    __slots__ = ("changes", "deferred")

    def __init__(self) -> None:
        self.changes = 0
        self.deferred = 0


class _Part:
    """Bytes that are sent together, with the number of exchanges that they finish."""

    __slots__ = ("acknowledgements", "barrier", "commit", "data")

    def __init__(self, commit: int, data: bytes | bytearray, barrier: Barrier | None) -> None:
        self.commit = commit
        self.data = data if type(data) is bytearray else bytearray(data)  # more may be added
        self.barrier = barrier
        self.acknowledgements = 0

    def held(self, committed: int) -> bool:
        """Return True while the bytes may not be sent."""
        return self.commit > committed and (self.barrier is None or self.barrier.outstanding > 0)

    def covers(self, commit: int, barrier: Barrier | None) -> bool:
        """Return True if what waits for `commit` or `barrier` may be sent with this part."""
        return not commit or (
            commit <= self.commit and (self.barrier is None or self.barrier is barrier)
        )


class Buffered:
    """What a delivery policy holds: all of an output that had `size` bytes, until second `due`.

    `arrivals` are the monotonic seconds at which its `messages` arrived, each with their number.
    """

    __slots__ = ("arrivals", "due", "messages", "size")

    def __init__(self) -> None:
        self.size = 0
        self.due = inf
        self.messages = 0
        self.arrivals: list[tuple[float, int]] = []


class Output:
    """A queue of bytes in which each part may wait for a batch of rows to be on disk.

    Commit numbers never fall along the queue: what follows waiting bytes waits with them
    (ARCHITECTURE.md, "The turn"). `acknowledgements` is how many were sent since the beginning.
    `buffered` is what a delivery policy holds; anything appended later releases it.
    """

    __slots__ = ("_free", "_noted", "_parts", "acknowledgements", "buffered", "size")

    def __init__(self) -> None:
        self._free: bytes | bytearray | None = None  # everything, if nothing waits
        self._noted = 0  # acknowledgements in it
        self._parts: list[_Part] | None = None  # everything, if some of it waits
        self.buffered: Buffered | None = None
        self.size = 0
        self.acknowledgements = 0

    def append(
        self,
        data: bytes | bytearray,
        commit: int = 0,
        barrier: Barrier | None = None,
        acknowledgements: int = 0,
    ) -> None:
        """Queue `data`; it is sent once every batch up to `commit` is on disk.

        `acknowledgements` of it are counted when it is sent.

        With a `barrier` it is also sent, in its place in the queue, when that has nothing
        outstanding any more. A bytearray belongs to the output from now on; bytes, which many
        receivers may share, are not copied for one that has nothing else to send.
        """
        # every receiver has acknowledged: the rows are not needed for this answer
        if barrier is not None and not barrier.outstanding:
            commit = 0
        self.size += len(data)
        parts = self._parts
        if parts is None:
            if not commit:
                self._noted += acknowledgements
                if self._free is None:
                    self._free = data
                elif type(self._free) is bytearray:
                    self._free += data
                else:
                    self._free = bytearray(self._free)
                    self._free += data
                return
            parts = self._begin_parts()
        if parts:
            last = parts[-1]
            # fewer parts: bytes that may be sent no later than those before are joined to them
            if last.covers(commit, barrier):
                last.data += data
                last.acknowledgements += acknowledgements
                return
        part = _Part(commit, data, barrier)
        part.acknowledgements = acknowledgements
        parts.append(part)

    def hold(
        self, before: int, count: int, policy: DeliveryPolicy, now: float, latest: float
    ) -> None:
        """Hold the messages that were appended since there were `before` bytes.

        They are sent as `policy` says, at second `latest` in any case, or with the bytes before
        them if those are not held.
        """
        buffered = self.buffered
        if self.size == before:
            return
        if buffered is None:
            # what is already queued is sent at the end of the turn, and these with it
            if before:
                return
            buffered = self.buffered = Buffered()
        # other output has released what was held, and is sent with these
        elif buffered.size != before:
            return
        buffered.messages += count
        buffered.arrivals.append((now, count))
        if buffered.messages < policy.count and self.size < policy.size:
            buffered.size = self.size
            step = policy.step
            buffered.due = min(buffered.due, int((now + policy.delay) / step) * step, latest)

    def release(self) -> None:
        """Release what a delivery policy held."""
        if self.buffered is not None:
            # no output has this size
            self.buffered.size = -1

    def held_until(self, now: float) -> float:
        """Return the second until which a delivery policy holds all of it, 0 if none does."""
        buffered = self.buffered
        held = buffered is not None and buffered.size == self.size and buffered.due > now
        return buffered.due if buffered is not None and held else 0.0

    def _begin_parts(self) -> list[_Part]:
        """Begin the list of parts with what did not wait."""
        self._parts = parts = []
        if self._free is not None:
            part = _Part(0, self._free, None)
            part.acknowledgements, self._noted = self._noted, 0
            parts.append(part)
            self._free = None
        return parts

    def append_all(self, other: "Output") -> None:
        """Queue another output's bytes and drop that output; it has no acknowledgements."""
        if other._free is not None:  # noqa: SLF001 - of this class
            self.append(other._free)  # noqa: SLF001
        for part in other._parts or ():  # noqa: SLF001
            self.append(part.data, part.commit, part.barrier)

    def pop(self, committed: int, now: float = inf) -> bytes | bytearray | None:
        """Remove and return the bytes that may be sent at second `now`; None if there are none.

        A bytearray belongs to the caller.
        """
        if self.buffered is not None and self.held_until(now):
            return None
        data = self._free
        if data is not None:
            self._free = self.buffered = None
            self.acknowledgements += self._noted
            self.size = self._noted = 0
            return data
        parts = self._parts
        if parts is None:
            return None
        free = 0
        for part in parts:
            if part.held(committed):
                break
            self.acknowledgements += part.acknowledgements
            free += 1
        if not free:
            return None
        self.buffered = None
        first = parts[0]
        data = first.data
        for part in parts[1:free]:
            data += part.data
        if free == len(parts):
            self._parts = None
        else:
            del parts[:free]
        self.size -= len(data)
        return data

    @property
    def waiting_for(self) -> int:
        """The batch that the first queued byte waits for; 0 when nothing is queued."""
        return 0 if self._parts is None else self._parts[0].commit
