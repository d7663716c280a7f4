"""Handles the bytes of a port: as lines, telegrams, or unchanged pieces."""

import logging
from collections.abc import Callable

from gateway.bridges.readings.name_template import NameTemplate
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.written import text_of
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample, Telegram, TelegramDecoder
from gateway.bridges.serial.serial_frames import LineDecoder
from gateway.bridges.supervision.host import Host
from gateway.mqtt.reason_codes import FAILURE

TEXT_LINES_A_MINUTE = 60
"""Lines of a device that are logged in a minute; further ones are only counted."""

SHOWN_MAX = 200
"""Characters of such a line."""

HARMLESS = dict.fromkeys(map(ord, "\t\x1b"))
"""Control characters that text may have: tabs, and the start of colour codes."""

logger = logging.getLogger(__name__)


class LineIntake:
    """Handles the lines of a port.

    `node` and `instance` apply to lines without these, or name the fields they are made of.
    """

    def __init__(self, node: str, host: Host, parse: Parse, instance: str = "") -> None:
        self._node = NameTemplate(node)
        self._instance = NameTemplate(instance)
        self._describing = self._node.fields | self._instance.fields
        self._host = host
        self._parse = parse
        self._decoder = LineDecoder(host.count)
        self._minute = 0.0
        self._text_lines = 0

    def restart(self) -> None:
        """Discard a partial line of an unplugged port."""
        self._decoder = LineDecoder(self._host.count)

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive, in any pieces."""
        for line in self._decoder.feed(data):
            self._receive(line)

    def _receive(self, line: bytes) -> None:
        try:
            sample = self._parse(line)
        except NoReadingError:
            self._log_text(line)
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

    def _log_text(self, line: bytes) -> None:
        """Log a board's text, such as at its start; anything else is noise and counted."""
        try:
            text = text_of(line).strip()
        except ValueError:
            text = "\0"
        if not text.translate(HARMLESS).isprintable():
            self._host.count("garbage_bytes", len(line))
            return
        self._host.count("text_lines")
        now = self._host.services.clock.monotonic()
        if now - self._minute >= 60:
            self._minute, self._text_lines = now, 0
        self._text_lines += 1
        if self._text_lines <= TEXT_LINES_A_MINUTE:
            logger.info("%s says: %s", self._host.title, _shown(text))


def _shown(text: str) -> str:
    """Return the beginning of a line in a form for the log."""
    return "".join(each if each.isprintable() else "?" for each in text[:SHOWN_MAX])


class TelegramIntake:
    """Handles the telegrams of a port; all are of `node`, and of `instance` if there is one."""

    def __init__(
        self, node: str, host: Host, make: Callable[[], TelegramDecoder], instance: str = ""
    ) -> None:
        self._node = node
        self._host = host
        self._make = make
        self._instance = instance
        self._decoder = make()

    def restart(self) -> None:
        """Discard a partial telegram of an unplugged port."""
        self._decoder = self._make()

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive, in any pieces."""
        decoder = self._decoder
        for telegram in decoder.feed(data):
            self._publish(telegram)
        if decoder.failed:
            self._host.count("crc_errors", decoder.failed)
        if decoder.skipped:
            self._host.count("garbage_bytes", decoder.skipped)
        decoder.failed = decoder.skipped = 0

    def _publish(self, telegram: Telegram) -> None:
        self._host.count("telegrams")
        for each in telegram.values:
            self._host.read(
                *(self._node, each.quantity, each.value, each.unit, telegram.time),
                instance="-".join(filter(None, (self._instance, each.instance))),
                lossy=True,
            )


class RawIntake:
    """Publishes each piece that arrives on `sensors/<node>/raw`."""

    def __init__(self, node: str, host: Host) -> None:
        self._topic = f"sensors/{node}/raw"
        self._host = host

    def restart(self) -> None:
        """Do nothing: there is no partial data."""

    def feed(self, data: bytes) -> None:
        """Publish bytes as they arrive."""
        self._host.received()
        if self._host.send(self._topic, data) >= FAILURE:
            self._host.count("lost")
