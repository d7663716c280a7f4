"""What becomes of a port's lines: published, or counted as refused, lost, garbage or words."""

import logging

from gateway.bridges.readings.name_template import NameTemplate
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.serial.line_decoder import LineDecoder
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample
from gateway.bridges.supervision.host import Host

WORDS_A_MINUTE = 60
"""Lines of a device that go to the log in a minute; further ones are only counted."""

SHOWN_MAX = 200
"""Characters of such a line."""

HARMLESS = dict.fromkeys(map(ord, "\t\x1b"))
"""Control characters that text may have: tabs, and those that begin a colour."""

logger = logging.getLogger(__name__)


class LineIntake:
    """Takes what a port delivers line by line.

    `node` and `instance` are for lines that name none, or say of which of their fields the names
    are made.
    """

    def __init__(self, node: str, host: Host, parse: Parse, instance: str = "") -> None:
        self._node = NameTemplate(node)
        self._instance = NameTemplate(instance)
        self._describing = self._node.fields | self._instance.fields
        self._host = host
        self._parse = parse
        self._decoder = LineDecoder(host.services.counters)
        self._minute = 0.0
        self._words = 0

    def restart(self) -> None:
        """Forget the half of a line that an unplugged port left."""
        self._decoder = LineDecoder(self._host.services.counters)

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrived, in any pieces."""
        for line in self._decoder.feed(data):
            self._receive(line)

    def _receive(self, line: bytes) -> None:
        try:
            sample = self._parse(line)
        except NoReadingError:
            self._hear_words(line)
            return
        except RefusedReadingError as failure:
            self._host.count("lines")
            self._host.publisher.reject(
                str(failure), example=_shown(line.decode("utf-8", "replace"))
            )
            return
        self._host.count("lines")
        self._publish(sample)

    def _publish(self, sample: Sample) -> None:
        own = self._node.fill(sample.fields)
        node = own if self._node.fields or sample.node is None else sample.node
        if not node:
            self._host.publisher.reject("a line that names no node")
            return
        instance = sample.instance or self._instance.fill(sample.fields)
        if sample.reading is not None:
            quantity, value, unit = sample.reading
            self._host.read(node, quantity, value, unit, sample.time, instance=instance, lossy=True)
            return
        fields = {
            name: value for name, value in sample.fields.items() if name not in self._describing
        }
        self._host.read_fields(
            node, fields, sample.time, units=sample.units, instance=instance, lossy=True
        )

    def _hear_words(self, line: bytes) -> None:
        """Tell what a board prints when it starts from noise: text goes to the log."""
        try:
            text = line.strip().decode()
        except UnicodeDecodeError:
            text = "\0"
        if not text.translate(HARMLESS).isprintable():
            self._host.count("garbage_bytes", len(line))
            return
        self._host.count("text_lines")
        now = self._host.services.clock.monotonic()
        if now - self._minute >= 60:
            self._minute, self._words = now, 0
        self._words += 1
        if self._words <= WORDS_A_MINUTE:
            logger.info("%s says: %s", self._host.title, _shown(text))


def _shown(text: str) -> str:
    """Return the beginning of a line as the log can show it."""
    return "".join(each if each.isprintable() else "?" for each in text[:SHOWN_MAX])
