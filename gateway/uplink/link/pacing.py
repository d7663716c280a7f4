"""Adapts the rate of the backlog to the link, without delaying live messages."""

from gateway.settings.uplink import UplinkSettings

BURST = 0.1
"""Seconds' worth of the rate that may be sent in one burst."""

INTERVAL = 1.0
"""Seconds between two steps up after trouble, and between two steps down."""

DELAY_TARGET = 0.25
"""Seconds that a PUBACK may take beyond the fastest of its connection: what waits ahead of a live
message. A quarter of a live message's limit leaves the rest for other delays."""

START_MESSAGES, START_BYTES = 1_000.0, 64.0 * 1024
"""The rates a second with which a connection begins; each step doubles them (slow start)."""

QUICK_INTERVAL = 0.05
"""The least seconds between two doublings: each must show its effect before the next. On a slower
link they are twice the time of a PUBACK, up to INTERVAL."""

LEAST_STEP_MESSAGES, LEAST_STEP_BYTES = 50.0, 8.0 * 1024

STEPS = 8
"""After trouble each second adds this much to the rates, or 1/STEPS of what they fell to if that is
more. Growth is linear; the old rate is tried again after 8 s or later."""

REFUSED, LATE = 0.5, 0.75
"""The part of the rates that trouble leaves: half after a refusal, a lost connection or a very late
PUBACK, more after a PUBACK that is only late."""

LEAST_MESSAGES, LEAST_BYTES = 1.0, 256.0
"""The minimum rates of the backlog: it always advances."""

LEAST_INFLIGHT = 8 * 1024
"""Bytes of the backlog that may always be in flight, while nothing is known of the link."""

UNLIMITED = float("inf")


class TokenBucket:
    """Provides `rate` tokens a second, of which `burst` seconds' worth can be saved up.

    Something may be sent as soon as there is a whole token, whatever its size; its cost is known
    afterwards. So the balance can be negative, and sending waits until it is positive. In any span
    of t seconds no more is spent than `rate * (t + burst)`, one token and the last cost. All times
    are monotonic seconds.
    """

    __slots__ = ("_balance", "_burst", "_most", "_rate", "_then")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._then = now
        self._most = self._balance = max(1.0, rate * burst)

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._rate

    def set_rate(self, rate: float, now: float) -> None:
        """Set the rate from `now` on; a debt remains, saved tokens are capped."""
        self._fill(now)
        self._rate = rate
        self._most = max(1.0, rate * self._burst)
        self._balance = min(self._balance, self._most)

    def ready(self, now: float) -> bool:
        """Return whether a token is available."""
        if now > self._then:
            self._fill(now)
        return self._balance >= 1.0

    def wait(self, now: float) -> float:
        """Return the seconds until a token is available."""
        self._fill(now)
        return max(0.0, (1.0 - self._balance) / self._rate)

    def spend(self, tokens: float) -> None:
        """Spend tokens; the balance may become negative."""
        self._balance -= tokens

    def _fill(self, now: float) -> None:
        if now > self._then:
            self._balance = min(self._most, self._balance + (now - self._then) * self._rate)
            self._then = now


def lately(before: float, amount: float, seconds: float) -> float:
    """Return the recent rate a second, given `amount` in the last `seconds`.

    A quarter of a second in which nothing could be sent does not make it 0: `before` counts until
    INTERVAL has passed, a little less with each step.
    """
    if before == UNLIMITED:
        return amount / seconds
    return max(amount / seconds, before * max(0.0, 1.0 - seconds / INTERVAL))


class AdaptiveRate:
    """A rate that grows while it limits the backlog and is cut when delays rise (AIMD).

    Below the threshold, the rate after the last cut, it doubles with each step; above it, it grows
    by a fixed amount. It stays between `minimum` and `maximum`.
    """

    def __init__(
        self, start: float, step: float, minimum: float, maximum: float, now: float
    ) -> None:
        self._start = start
        self._minimum_step = step
        self._minimum = min(minimum, maximum)
        self._maximum = maximum
        self._threshold = UNLIMITED
        self._spent = 0.0
        self._used = UNLIMITED  # a second, in the last interval
        self._short = False
        self.bucket = TokenBucket(min(start, maximum), BURST, now)

    def begin(self, now: float) -> None:
        """Begin a connection: at the start rate, or lower if it was lower."""
        self._used, self._spent, self._short = UNLIMITED, 0.0, False
        self.bucket.set_rate(min(self._start, self.bucket.rate), now)

    def ready(self, now: float) -> bool:
        """Return whether something may be sent now; remember a refusal, so that the rate grows."""
        if self.bucket.ready(now):
            return True
        self._short = True
        return False

    def spend(self, amount: float) -> None:
        """Count what was sent."""
        self.bucket.spend(amount)
        self._spent += amount

    def cut(self, share: float, now: float) -> None:
        """Reduce the rate to a share of what was used, or of what was allowed if that is less."""
        used = max(self._used, self._start)  # capacity that was not needed proves nothing
        rate = max(self._minimum, min(self.bucket.rate, used) * share)
        self._threshold = rate
        self._short = False
        self.bucket.set_rate(rate, now)

    def grow(self, seconds: float, now: float) -> None:
        """End an interval of `seconds` without delays; raise the rate if it was the limit."""
        self._used = lately(self._used, self._spent, seconds)
        self._spent = 0.0
        if self._short:
            rate = self.bucket.rate
            self.bucket.set_rate(min(self._maximum, 2 * rate, self._next(rate)), now)
        self._short = False

    @property
    def starting(self) -> bool:
        """Whether the rate is below its threshold, or was never cut."""
        return self.bucket.rate < self._threshold

    def _next(self, rate: float) -> float:
        if rate < self._threshold:
            return self._threshold
        return rate + max(self._minimum_step, self._threshold / STEPS)


class Pacing:
    """Limits the backlog in messages and bytes a second; live messages are not limited.

    It steps down when the fleet's broker requests it (`slow_down`), when a connection is `lost`
    that had some of the backlog in flight, and when PUBACKs become slow. Slow PUBACKs are the first
    sign of a full link. It steps down at most once in an interval. Bytes of the backlog in flight
    are limited to what the rate, and twice the recent throughput, deliver within the fastest
    PUBACK's time and DELAY_TARGET. `last_delay` is the time of the last PUBACK. All times are
    monotonic seconds.
    """

    def __init__(self, settings: UplinkSettings, now: float) -> None:
        self.slowdowns = 0
        self.last_delay = 0.0
        self._messages = AdaptiveRate(
            START_MESSAGES,
            LEAST_STEP_MESSAGES,
            LEAST_MESSAGES,
            settings.backlog_messages_per_second or UNLIMITED,
            now,
        )
        self._bytes = AdaptiveRate(
            START_BYTES,
            LEAST_STEP_BYTES,
            LEAST_BYTES,
            settings.backlog_bytes_per_second or UNLIMITED,
            now,
        )
        self._inflight = 0
        self._acknowledged = 0
        self._carried = 0.0  # bytes a second, in the last interval
        self._quickest = UNLIMITED
        self._step_at = now
        self._calm_until = now

    @property
    def _interval(self) -> float:
        """Seconds between two steps up."""
        if self._messages.starting and self._bytes.starting:
            return min(INTERVAL, max(QUICK_INTERVAL, 2 * self.last_delay))
        return INTERVAL

    @property
    def messages_per_second(self) -> float:
        """Current limit of the backlog in messages a second."""
        return self._messages.bucket.rate

    @property
    def bytes_per_second(self) -> float:
        """Current limit of the backlog in bytes a second."""
        return self._bytes.bucket.rate

    def begin(self, delay: float, now: float) -> None:
        """Begin a connection whose CONNACK took `delay` seconds."""
        self._messages.begin(now)
        self._bytes.begin(now)
        self._inflight = self._acknowledged = 0
        self._carried = 0.0
        self._quickest = self.last_delay = delay
        self._step_at = now

    def ready(self, now: float) -> bool:
        """Return whether a backlog message may be sent now."""
        self._grow(now)
        # both, without short-circuiting: each must note a refusal to be able to grow
        messages, size = self._messages.ready(now), self._bytes.ready(now)
        return messages and size and self._fits()

    def wait(self, now: float) -> float | None:
        """Return the seconds until a backlog message may be sent; None until the next PUBACK."""
        if not self._fits():
            return None
        return max(self._messages.bucket.wait(now), self._bytes.bucket.wait(now))

    def sent(self, messages: int, size: int) -> None:
        """Count backlog messages and bytes that were sent."""
        self._messages.spend(messages)
        self._bytes.spend(size)
        self._inflight += size

    def answered(self, size: int, delay: float, now: float) -> None:
        """Handle a PUBACK after `delay` seconds, of a message with `size` bytes of backlog."""
        self._inflight -= size
        self._acknowledged += size
        self.last_delay = delay
        excess = delay - self._quickest
        if excess < 0.0:
            self._quickest = delay
        elif excess > DELAY_TARGET:
            share = LATE if excess < 2 * DELAY_TARGET else REFUSED
            self.slow_down(now, share, max(INTERVAL, delay))

    def lost(self, now: float) -> None:
        """Step down after a lost connection, unless none of the backlog was in flight.

        In that case an outage has begun, which says nothing about the rate at which it may drain.
        """
        if self._inflight:
            self.slow_down(now)

    def slow_down(self, now: float, share: float = REFUSED, calm: float = INTERVAL) -> None:
        """Cut both rates to a share, unless they just were; `calm` seconds begin now.

        Packets sent before the step are answered within about that time, and their delays are
        expected.
        """
        if now < self._calm_until:
            return
        self.slowdowns += 1
        self._messages.cut(share, now)
        self._bytes.cut(share, now)
        self._step_at = now
        self._calm_until = now + calm

    def _fits(self) -> bool:
        rate = min(self._bytes.bucket.rate, 2 * self._carried)
        most = max(LEAST_INFLIGHT, rate * (self._quickest + DELAY_TARGET))
        return not self._inflight or self._inflight < most

    def _grow(self, now: float) -> None:
        seconds = now - self._step_at
        if seconds >= QUICK_INTERVAL and seconds >= self._interval:
            self._messages.grow(seconds, now)
            self._bytes.grow(seconds, now)
            self._carried = lately(self._carried, self._acknowledged, seconds)
            self._acknowledged = 0
            self._step_at = now
