"""The course of some figures over ten minutes, three hours and a day, in 317 KiB: `series`."""

import math
from array import array
from collections.abc import Callable, Iterator
from operator import add
from time import process_time

from gateway.app.parts import Core, Run
from gateway.app.responder import Answer, Request, RequestError, Responder

RINGS = {1: 600, 10: 1_080, 60: 1_440}
"""Seconds of a step, and the number of stored steps: 3,120 numbers of four bytes for each
figure."""

MAXIMUM_VALUES = 8_192
"""Numbers in one answer: some 64 KiB."""

CATCH_UP = 3
"""Seconds for which a late sample counts; after a longer gap the values are unknown."""

RATES = {
    "dropped": "publish/messages/dropped",
    "commits": "tidegate/storage/commits",
    "rows_written": "tidegate/storage/rows",
    "acknowledged": "tidegate/uplink/acknowledged",
    "accepted": "tidegate/rules/accepted",
    "filtered": "tidegate/rules/filtered",
    "refused": "tidegate/clients/refused",
    "sys_messages_out": "tidegate/sys/messages_sent",
    "readings": "tidegate/bridges/readings",
    "queries": "tidegate/queries/answered",
}
"""Figures that are the increase of a counter in a second."""

GAUGES = {
    "outbox_messages": "tidegate/outbox/rows",
    "outbox_bytes": "tidegate/outbox/bytes",
    "uplink_inflight": "tidegate/uplink/inflight",
    "puback_ms": "tidegate/uplink/puback_ms",
}
"""Figures that are the value of a gauge."""

Source = Callable[[], float]


class Ring:
    """The last values of every figure at one step, NaN if unknown; it grows to its size."""

    def __init__(self, step: int, size: int, figures: int, second: int = 0) -> None:
        self.step = step
        self._size = size
        self._values = array("f")  # the figures of a step side by side
        self._stored = 0  # steps, since the ring was empty
        self._sums = [0.0] * figures
        self._count = 0
        self.at = second // step
        """The number of the present step, from the clock's zero."""

    def add(self, second: int, values: list[float]) -> None:
        """Add the values of a second; when a step is complete, store its means."""
        at = second // self.step
        if at != self.at:
            self._store(at)
        self._sums = [*map(add, self._sums, values)]
        self._count += 1

    def _store(self, at: int) -> None:
        figures, count = len(self._sums), self._count
        unknown = array("f", [math.nan]) * figures
        if at - self.at < self._size:
            self._append(array("f", [total / count for total in self._sums]) if count else unknown)
            for _ in range(self.at + 1, at):
                self._append(unknown)
        else:
            self._values, self._stored = array("f"), 0
        self._sums = [0.0] * figures
        self._count, self.at = 0, at

    def _append(self, step: "array[float]") -> None:
        begin = self._stored % self._size * len(step)
        self._values[begin : begin + len(step)] = step
        self._stored += 1

    def course(self, index: int, last: int) -> list[float | None]:
        """Return the last complete values of a figure, the oldest first."""
        known = min(last, self._stored, self._size)
        steps = range(self._stored - known, self._stored)
        places = [at % self._size * len(self._sums) + index for at in steps]
        found = [self._values[place] for place in places]
        return [None] * (last - known) + [
            None if math.isnan(value) else float(f"{value:.5g}") for value in found
        ]


class Series:
    """Samples every figure once a second."""

    def __init__(self, run: Run, core: Core) -> None:
        self._clock, self._counters = run.clock, run.counters
        rates, gauges = dict(_rates(run, core)), dict(_gauges(run, core))
        self.names = (*rates, *gauges)
        self._rates, self._gauges = [*rates.values()], [*gauges.values()]
        self._before = [source() for source in self._rates]
        self._sampled = run.clock.monotonic()
        self._second = math.floor(self._sampled)
        count, second = len(self.names), self._second
        self.rings = {step: Ring(step, size, count, second) for step, size in RINGS.items()}
        run.every(1.0, self.sample)

    def sample(self) -> None:
        """Sample the figures."""
        now = self._clock.monotonic()
        elapsed, second = now - self._sampled, math.floor(now)
        if second <= self._second or elapsed <= 0:
            return
        self._counters.refresh()
        counts = [source() for source in self._rates]
        rises = zip(counts, self._before, strict=True)
        values = [(count - before) / elapsed for count, before in rises]
        values += [source() for source in self._gauges]
        first = self._second + 1 if second - self._second <= CATCH_UP else second
        for each in range(first, second + 1):
            for ring in self.rings.values():
                ring.add(each, values)
        self._before, self._sampled, self._second = counts, now, second

    def answer(self, responder: Responder) -> None:
        """Answer the query `series`."""
        responder.know("series", self._series, "figures", "step", "last")

    async def _series(self, request: Request) -> Answer:
        step = request.whole("step", 1, max(RINGS), 1)
        if step not in RINGS:
            steps = ", ".join(map(str, RINGS))
            raise RequestError(f"step is {step}, not one of {steps} seconds")
        last = request.whole("last", 1, RINGS[step] - 1, 300)
        wanted = request.text("figures")
        names = self.names if wanted is None else tuple(dict.fromkeys(wanted.split(",")))
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names)
                raise RequestError(f"there is no figure {name[:80]!r}; there are: {known}")
        if len(names) * last > MAXIMUM_VALUES:
            most = MAXIMUM_VALUES // len(names)
            raise RequestError(f"last is {last}; of {len(names)} figures at most {most} at a time")
        ring, courses = self.rings[step], {}
        for name in names:
            await request.breathe()
            courses[name] = ring.course(self.names.index(name), last)
        until = self._clock.wall_ms() - round(1000 * (self._clock.monotonic() - ring.at * step))
        return {"step": step, "until": until, "figures": courses}


def _rates(run: Run, core: Core) -> Iterator[tuple[str, Source]]:
    """Yield sources of rising values; shown is the increase in a second."""
    traffic, broker, count = core.broker.traffic, core.broker, run.counters.count
    yield "messages_in", lambda: traffic.messages_received
    yield "messages_out", lambda: traffic.messages_sent
    yield "bytes_in", lambda: traffic.network_received
    yield "bytes_out", lambda: traffic.network_sent
    yield "connects", lambda: broker.connects
    yield "evaluated", lambda: broker.budget.evaluated
    yield "cpu_percent", lambda: 100 * process_time()
    for name, counter in RATES.items():
        yield name, lambda counter=counter: count(counter)  # type: ignore[misc]  # mypy/15459


def _gauges(run: Run, core: Core) -> Iterator[tuple[str, Source]]:
    broker, values, queues = core.broker, run.counters.values, core.broker.queue_memory
    yield "clients", lambda: len(broker.clients)
    yield "subscriptions", lambda: len(broker.router)
    yield "retained", lambda: len(broker.retained)
    yield "waiting_messages", lambda: queues.deliveries + queues.paged
    yield "waiting_bytes", lambda: queues.bytes + queues.paged_bytes
    for name, gauge in GAUGES.items():
        yield name, lambda gauge=gauge: float(values.get(gauge, 0))  # type: ignore[misc]  # the same
