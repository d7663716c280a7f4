"""Handles a node's frames: publishes, stores, and acknowledges them after the commit."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from gateway.bridges.readings.reading import Reading, RefusedReadingError
from gateway.bridges.serial.frame_body import (
    Answer,
    MalformedFrameError,
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.bridges.supervision.host import Host

NODES_MAX = 64
"""Nodes of one port that are watched and have figures; further ones have none."""

DROPPED = "dropped"
"""Part of every frame; the other figures are quantities of heartbeats."""

STARTS_MAX = 16
"""Starts of one name that are stored; beyond it the earliest is forgotten."""

SILENT_SECONDS = 60.0
"""Seconds without a frame after which a start is over."""

HEARTBEAT = ("suppressed", "sensor_failures", "failed_starts", "safe_mode")
SAFE_MODE = HEARTBEAT[-1]

logger = logging.getLogger(__name__)


class NodeFigures:
    """Adds up the figures of the nodes since their starts, as gauges; raises their alarms."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._boots: dict[str, int] = {}
        self._values: dict[str, dict[str, int]] = {name: {} for name in (DROPPED, *HEARTBEAT)}
        host.at_end(self.close)

    def close(self) -> None:
        """End the alarms."""
        for node, safe in self._values[SAFE_MODE].items():
            if safe:
                self._host.services.alarm(f"node-{node}", "")

    def note_dropped(self, node: str, boot: int, dropped: int) -> None:
        """Add a frame's figure; after a new boot id the node counts from zero."""
        if node not in self._boots and len(self._boots) == NODES_MAX:
            return
        if self._boots.get(node) != boot:
            self._boots[node] = boot
            for name in HEARTBEAT:
                self._set(name, node, 0)
        if self._values[DROPPED].get(node) != dropped:
            self._set(DROPPED, node, dropped)

    def note(self, readings: Iterable[Reading]) -> None:
        """Add the figures of a heartbeat of a known node."""
        for each in readings:
            known = each.quantity in HEARTBEAT and each.node in self._boots
            if known and isinstance(each.value, int):
                self._set(each.quantity, each.node, int(each.value))

    def _set(self, name: str, node: str, value: int) -> None:
        values = self._values[name]
        before = values.get(node)
        values[node] = value
        self._host.show(name, sum(values.values()))
        if name == SAFE_MODE and value != (before or 0):
            self._report_safe_mode(node, safe=bool(value))

    def _report_safe_mode(self, node: str, *, safe: bool) -> None:
        text = "failed several times in a row, and runs without its sensors" if safe else ""
        if safe:
            logger.warning("%s: node %s %s", self._host.title, node, text)
        else:
            logger.info("%s: node %s has left its safe mode", self._host.title, node)
        self._host.services.alarm(f"node-{node}", text)


@dataclass(slots=True)
class Starts:
    """The starts of one name in their order, with when each was last heard."""

    received_at_of: dict[int, float] = field(default_factory=dict)
    apart: dict[int, str] = field(default_factory=dict)
    """The instances of all starts but the first."""
    several: bool = False


class NodeStarts:
    """Separates nodes of one name: a start heard again after a later one is another node's.

    While both are heard, the later one has its boot id as an instance: a frame has no other
    identity of the board. A start without another beside it is a restarted node.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Starts] = {}

    def instance(self, node: str, boot: int, now: float) -> str:
        """Return the instance of a start among those of its name; empty for the only one."""
        starts = self._nodes.get(node)
        if starts is None:
            if len(self._nodes) == NODES_MAX:
                return ""
            starts = self._nodes[node] = Starts()
        for each, received_at in list(starts.received_at_of.items()):
            if now - received_at > SILENT_SECONDS:
                del starts.received_at_of[each]
                starts.apart.pop(each, None)
        if len(starts.received_at_of) < 2:
            starts.several = False
        latest = next(reversed(starts.received_at_of), boot)
        starts.several |= boot in starts.received_at_of and boot != latest
        starts.received_at_of[boot] = now
        if len(starts.received_at_of) > STARTS_MAX:
            starts.apart.pop(next(iter(starts.received_at_of)), None)
            del starts.received_at_of[next(iter(starts.received_at_of))]
        if starts.several:
            for each in list(starts.received_at_of)[1:]:
                starts.apart.setdefault(each, f"{each:08x}")
        return starts.apart.get(boot, "")


GROUP_MAX = 8
"""Frames of a node that wait for their commit; that many start it at once in any class: a node
sends no more before it has an answer."""

WAITING_MAX = 512
"""Frames of a port that wait for their commit; that many start it at once."""

PARTLY_MAX = 64
"""Frames of which only the first readings were accepted; beyond it the oldest is forgotten."""

FrameName = tuple[str, int, int]
"""Node id, boot id and sequence number."""


class FrameIntake:
    """Handles the bytes of a port in the format `frames`.

    A frame is acknowledged through `answer` once it is on disk, and again whenever it is repeated
    after that. A frame that the broker rejects is not answered, so that the node repeats it. The
    durability class of the readings decides when the commit begins. `on_node` is called with the
    node and boot id of an accepted frame, `on_answer` with a node's answer to a command.
    """

    def __init__(
        self,
        host: Host,
        answer: Callable[[bytes], None],
        *,
        on_node: Callable[[str, int], None] = lambda _node, _boot: None,
        on_answer: Callable[[Answer], None] = lambda _answer: None,
    ) -> None:
        self._host = host
        self._answer = answer
        self._on_node = on_node
        self._on_answer = on_answer
        self._when_on_disk = host.services.when_on_disk
        self._frames = host.services.frames
        self._clock = host.services.clock
        self._figures = NodeFigures(host)
        self._decoder = FrameDecoder(host.count)
        self._partly: dict[FrameName, int] = {}
        self._waiting: set[FrameName] = set()
        self._waiting_of_node: Counter[str] = Counter()
        self._starts = NodeStarts()

    def restart(self) -> None:
        """Discard a partial frame of an unplugged port."""
        self._decoder = FrameDecoder(self._host.count)

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive, in any pieces."""
        for body in self._decoder.feed(data):
            try:
                frame = decode_frame(body)
            except MalformedFrameError as failure:
                self._refuse(failure)
                continue
            if isinstance(frame, ReadingsFrame):
                self._receive(frame)
            elif frame is not None:
                self._on_answer(frame)

    def _refuse(self, failure: MalformedFrameError) -> None:
        """Answer a frame that no repetition can correct, so that it does not block later ones."""
        self._host.publisher.reject(str(failure))
        if failure.boot is not None and failure.sequence is not None:
            self._acknowledge(Status.REFUSED, failure.boot, failure.sequence)

    def _receive(self, frame: ReadingsFrame) -> None:
        self._host.count("frames")
        name = (frame.node, frame.boot, frame.sequence)
        if not frame.earlier:
            self._figures.note_dropped(frame.node, frame.boot, frame.dropped)
        if self._frames.seen(*name):
            self._host.count("duplicates")
            if name not in self._waiting:  # else it is acknowledged with the commit
                self._acknowledge(Status.STORED, frame.boot, frame.sequence)
            return
        readings, refusals = self._check(frame)
        accepted, within = self._publish(name, readings)
        if not accepted:
            return
        for reason in refusals:
            self._host.publisher.reject(reason)
        self._remember(name, Status.REFUSED if refusals else Status.STORED, within)
        if readings and not frame.earlier:  # the name is valid in a topic
            self._on_node(frame.node, frame.boot)
            self._figures.note(readings)

    def _check(self, frame: ReadingsFrame) -> tuple[list[Reading], list[str]]:
        """Return the readings that can be published, and the reasons against the others."""
        now = self._clock.wall_ms()
        time = max(now - frame.age, 0) if frame.wall is None else frame.wall
        apart = ""
        if not frame.earlier:
            apart = self._starts.instance(frame.node, frame.boot, self._clock.monotonic())
        readings = []
        refusals = ["unknown quantity or unit number"] * frame.unknown
        for found in frame.readings:
            try:
                instance = found.instance
                if apart:
                    instance = f"{instance}-{apart}" if instance else apart
                reading = Reading(
                    frame.node, found.quantity, found.value, found.unit, time, instance
                )
            except RefusedReadingError as failure:
                refusals.append(str(failure))
            else:
                readings.append(reading)
        return readings, refusals

    def _publish(self, name: FrameName, readings: list[Reading]) -> tuple[bool, float | None]:
        """Publish what an earlier sending of the frame did not; return whether all is accepted.

        Also return the shortest time until a reading has to be on disk, None for `memory`.
        """
        published = self._partly.pop(name, 0)
        classes = []
        for reading in readings[published:]:
            if not self._host.publish(reading):
                self._remember_partly(name, published)
                return False, None
            classes.append(self._host.publisher.commit_within)
            published += 1
        deadlines = [each for each in classes if each is not None]
        return True, min(deadlines, default=None if classes else 0.0)

    def _remember(self, name: FrameName, status: Status, within: float | None) -> None:
        """Store the frame, and acknowledge it with the commit; a full group starts that."""
        node, boot, sequence = name
        of_node = self._waiting_of_node
        of_node[node] += 1
        self._waiting.add(name)
        if of_node[node] >= GROUP_MAX or len(self._waiting) >= WAITING_MAX:
            within = 0.0
        self._frames.remember(node, boot, sequence, within)
        self._when_on_disk(partial(self._acknowledge_waiting, name, status))

    def _acknowledge_waiting(self, name: FrameName, status: Status) -> None:
        node, boot, sequence = name
        self._waiting.discard(name)
        self._waiting_of_node[node] -= 1
        if not self._waiting_of_node[node]:
            del self._waiting_of_node[node]
        self._answer(encode_frame(encode_acknowledgement(status, boot, sequence)))

    def _remember_partly(self, name: FrameName, published: int) -> None:
        if published == 0:
            return
        if len(self._partly) == PARTLY_MAX:
            del self._partly[next(iter(self._partly))]
        self._partly[name] = published

    def _acknowledge(self, status: Status, boot: int, sequence: int) -> None:
        acknowledgement = encode_frame(encode_acknowledgement(status, boot, sequence))
        self._when_on_disk(partial(self._answer, acknowledgement))
