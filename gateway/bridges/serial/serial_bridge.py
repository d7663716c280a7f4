"""A serial port to readings: read until it is lost; the supervisor opens it again."""

import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from gateway.bridges.kind import BridgeKind, FoundTable, ScanOptions
from gateway.bridges.readings.name_template import NameTemplate
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.reading_map import identity_of
from gateway.bridges.readings.written import text_of
from gateway.bridges.serial.csv_lines import CsvLines
from gateway.bridges.serial.d0 import D0Decoder
from gateway.bridges.serial.dsmr import DsmrDecoder
from gateway.bridges.serial.frame_intake import FrameIntake
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.nmea_lines import parse_nmea
from gateway.bridges.serial.node_commands import NodeCommands
from gateway.bridges.serial.port import Port, open_port
from gateway.bridges.serial.regex_lines import compile_pattern
from gateway.bridges.serial.remote_port import SCHEME, TopicPort
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample, Telegram, TelegramDecoder
from gateway.bridges.serial.serial_frames import LineDecoder
from gateway.bridges.serial.serial_settings import SerialSettings, port_name
from gateway.bridges.serial.sml import SmlDecoder
from gateway.bridges.serial.vedirect import VeDirectDecoder
from gateway.bridges.supervision.host import Host
from gateway.bridges.topics.presets import NO_PRESET, PRESETS
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode

RETRY = (0.25, 1.25, 1.0)
"""Seconds, growth and most seconds between two tries: a plugged-in node is read within 2 s."""

COMMAND_MAX = 512
"""Bytes of a command that is written as a line."""


class Intake(Protocol):
    """Processes the bytes of a port, by its format."""

    def restart(self) -> None:
        """Discard partial data of an unplugged port."""

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive, in any pieces."""


DECODERS: dict[str, Callable[[], TelegramDecoder]] = {
    "vedirect": VeDirectDecoder,
    "dsmr": DsmrDecoder,
    "d0": D0Decoder,
    "sml": SmlDecoder,
}
"""Finds telegrams of a format."""


class SerialBridge:
    """One `[[serial]]` port; publishes as the client `serial:<the bridge's name>`."""

    def __init__(self, settings: SerialSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._port: Port | None = None
        preset = PRESETS.get(settings.preset or "", NO_PRESET)
        host.map = preset.reading_map(settings.map)
        self._node = settings.node or preset.node or host.name
        self._instance = settings.instance or preset.instance
        self._intake = self._make_intake()
        if settings.format != "frames":
            host.listen(f"sensors/{self._command_node}/command", self._write_line)

    @property
    def _command_node(self) -> str:
        """The node whose commands are written: the bridge's where each line has its own node."""
        return self._host.name if NameTemplate(self._node).fields else self._node

    async def run(self) -> None:
        """Read the port until it is lost, then raise PortError."""
        port = self._port = await self._open()
        try:
            self._intake.restart()
            self._host.working()
            while True:
                self._intake.feed(await port.read())
        finally:
            self._port = None
            port.close()

    async def _open(self) -> Port:
        if self._settings.port.startswith(SCHEME):
            return TopicPort(self._settings.port, self._host)
        return await open_port(self._settings.port, self._settings.line)

    def _make_intake(self) -> Intake:
        if self._settings.format == "frames":
            commands = NodeCommands(self._host, self._settings.port, self._write)
            return FrameIntake(
                self._host, self._answer, on_node=commands.received, on_answer=commands.answered
            )
        if self._settings.format == "raw":
            return RawIntake(self._node, self._host)
        instance = self._instance
        decoder = DECODERS.get(self._settings.format)
        if decoder is not None:
            return TelegramIntake(self._node, self._host, decoder, instance)
        program = None if self._settings.preset is None else self._settings.listed
        return LineIntake(self._node, self._host, self._parser(), instance, listed=program)

    def _parser(self) -> Parse:
        settings = self._settings
        if settings.format == "csv":
            return CsvLines(
                settings.columns,
                settings.separator,
                decimal=settings.decimal,
                knows=self._host.map.names,
            ).parse
        if settings.format == "nmea":
            return parse_nmea
        if settings.pattern is not None:
            return compile_pattern(settings.pattern, settings.decimal)
        return parse_json

    def _answer(self, acknowledgement: bytes) -> None:
        """Send to the node; the node's next sending asks again for an answer that was lost."""
        if self._port is None or not self._port.write(acknowledgement):
            self._host.count("acknowledgements_dropped")

    def _write(self, data: bytes) -> bool:
        return self._port is not None and self._port.write(data)

    def _write_line(self, command: Message) -> ReasonCode:
        """Write a command unchanged or, for line formats, as a line.

        The reason code says whether it was sent.
        """
        end = b"" if self._settings.format == "raw" else b"\n"
        payload = bytes(command.payload)
        if len(payload) > COMMAND_MAX or (end and end in payload):
            return ReasonCode.PAYLOAD_FORMAT_INVALID
        if not self._write(payload + end):
            self._host.count("commands_dropped")
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        self._host.count("commands")
        return ReasonCode.SUCCESS


def _examine(settings: SerialSettings) -> str:
    if "://" in settings.port or settings.port.startswith("usb:"):
        return ""
    if not Path(settings.port).exists():
        return f"{settings.port} is not there: is the node plugged in?"
    if not os.access(settings.port, os.R_OK | os.W_OK):
        return f"{settings.port} cannot be opened by this user: is it in the group dialout?"
    return ""


async def _scan(options: ScanOptions) -> list[FoundTable]:
    from gateway.bridges.serial.scan import scan_ports

    return await scan_ports(options)


KIND = BridgeKind(
    name="serial",
    summary="nodes and meters on a serial line: frames, JSON, CSV, NMEA, VE.Direct, DSMR, D0, SML",
    settings=SerialSettings,
    make=SerialBridge,
    needs=("serial",),
    extra="serial",
    retry=RETRY,
    counters={
        "frames": "Frames read.",
        "telegrams": "Telegrams read with correct checks.",
        "lines": "Lines with readings read.",
        "text_lines": "Lines without readings, such as a board's start messages.",
        "duplicates": "Frames that a node repeated.",
        "acknowledgements_dropped": "Answers to nodes that could not be sent.",
        "commands": "Commands written.",
        "commands_dropped": "Commands that could not be sent.",
        "commands_refused": "Commands refused because too many waited for a node.",
        "answers_lost": "Answers of nodes to commands that the broker refused.",
        "crc_errors": "Frames and telegrams that failed their check.",
        "garbage_bytes": "Bytes that belonged to no frame, line or telegram.",
    },
    gauges={
        "dropped": "Samples that the nodes dropped, by their own count.",
        "suppressed": "Readings that the nodes' filters held back, by their last heartbeats.",
        "sensor_failures": "Samples of the nodes for which no sensor answered, since their starts.",
        "failed_starts": "Consecutive failed starts of the nodes before the current ones.",
        "safe_mode": "Nodes in safe mode, without their sensors, after repeated failures.",
    },
    default_name=lambda settings: port_name(settings.port),
    place=lambda settings: settings.port,
    scan=_scan,
    examine=_examine,
)


TEXT_LINES_A_MINUTE = 60
"""Lines of a device that are logged in a minute; further ones are only counted."""

SHOWN_MAX = 200
"""Characters of such a line."""

HARDWARE_ADDRESS = re.compile(r"(?:[0-9a-f]{2}-?){6,8}")
"""Six to eight bytes; an `id` in another form may be that of the message."""

SOURCES_MAX = 32
"""Hardware addresses in the lines of a port by which series are separated; further ones are not."""

HARMLESS = dict.fromkeys(map(ord, "\t\x1b"))
"""Control characters that text may have: tabs, and the start of colour codes."""

logger = logging.getLogger(__name__)


class LineIntake:
    """Handles the lines of a port.

    `node` and `instance` apply to lines without these, or name the fields they are made of.
    `listed` are the nodes of a program that receives everybody's devices, None for other lines.
    """

    def __init__(
        self,
        node: str,
        host: Host,
        parse: Parse,
        instance: str = "",
        *,
        listed: tuple[str, ...] | None = None,
    ) -> None:
        self._node = NameTemplate(node)
        self._instance = NameTemplate(instance)
        self._describing = self._node.fields | self._instance.fields
        self._host = host
        self._parse = parse
        self._listed = listed
        self._decoder = LineDecoder(host.count)
        self._minute = 0.0
        self._text_lines = 0
        self._sources: set[str] = set()

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
        if self._listed is not None:  # a program that prints the time of its own zone
            sample = replace(sample, time=None)
        self._publish(sample)

    def _publish(self, sample: Sample) -> None:
        own = self._node.fill(sample.fields)
        node = own if self._node.fields or sample.node is None else sample.node
        if not node:
            self._host.publisher.reject("a line that names no node")
            return
        if self._listed is not None:
            self._host.receive_by_radio(node, self._listed)
        instance = sample.instance or self._instance.fill(sample.fields)
        if sample.reading is not None:
            quantity, value, unit = sample.reading
            self._host.read(node, quantity, value, unit, sample.time, instance=instance, lossy=True)
            return
        fields = {
            name: value for name, value in sample.fields.items() if name not in self._describing
        }
        self._host.read_fields(
            *(node, fields, sample.time),
            units=sample.units,
            instance=instance,
            source="" if self._describing else self._source_of(sample.fields),
            lossy=True,
        )

    def _source_of(self, fields: dict[str, object]) -> str:
        """Return the hardware address in a line, so that devices on one line are separated."""
        source = identity_of(fields)
        if not HARDWARE_ADDRESS.fullmatch(source):
            return ""
        if source not in self._sources:
            if len(self._sources) >= SOURCES_MAX:
                return ""
            self._sources.add(source)
        return source

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
