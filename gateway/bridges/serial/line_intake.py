"""What becomes of a port's JSON lines: published, or counted as refused, lost or garbage."""

from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.reading_publisher import ReadingPublisher
from gateway.bridges.serial.json_lines import LineDecoder, NoReadingError, parse_line
from gateway.clock import Clock
from gateway.counters import Counters


class LineIntake:
    """Takes what a port in the format `json` delivers; `node` is whose a line without a name is."""

    def __init__(
        self, node: str, publisher: ReadingPublisher, *, counters: Counters, clock: Clock
    ) -> None:
        self._node = node
        self._publisher = publisher
        self._counters = counters
        self._clock = clock
        self._decoder = LineDecoder(counters)

    def restart(self) -> None:
        """Forget the half of a line that an unplugged port left."""
        self._decoder = LineDecoder(self._counters)

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrived, in any pieces."""
        for line in self._decoder.feed(data):
            self._receive(line)

    def _receive(self, line: bytes) -> None:
        try:
            reading = parse_line(line, self._node, self._clock.wall_ms())
        except NoReadingError:
            self._counters.add("tidegate/serial/garbage_bytes", len(line))
            return
        except RefusedReadingError as failure:
            self._counters.add("tidegate/serial/lines")
            self._publisher.reject(str(failure))
            return
        self._counters.add("tidegate/serial/lines")
        if not self._publisher.publish(reading):
            self._counters.add("tidegate/serial/lost")
