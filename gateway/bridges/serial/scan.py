"""Finds formats on serial ports: listens at the usual speeds until one fits."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from gateway.bridges.kind import FoundTable, ScanOptions
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.reading_map import NO_MAP
from gateway.bridges.readings.written import number_or_text
from gateway.bridges.serial.csv_lines import CsvLines
from gateway.bridges.serial.d0 import D0Decoder
from gateway.bridges.serial.dsmr import DsmrDecoder
from gateway.bridges.serial.frame_body import MalformedFrameError, ReadingsFrame, decode_frame
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.nmea_lines import parse_nmea
from gateway.bridges.serial.port import Line, Port, PortError, open_port, plugged_in
from gateway.bridges.serial.sample import (
    NoReadingError,
    Parse,
    Sample,
    Telegram,
    TelegramDecoder,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, LineDecoder
from gateway.bridges.serial.serial_settings import USUAL_LINES
from gateway.bridges.serial.sml import SmlDecoder
from gateway.bridges.serial.vedirect import VeDirectDecoder

BAUDS = (115_200, 9_600, 19_200, 4_800, 38_400, 57_600, 2_400)
"""Speeds to listen at, the most usual first."""

SECONDS = 4.0
"""Seconds to listen at a speed; a meter that sends every ten seconds needs more."""

SHOWN_MAX = 8
"""Values shown in a comment."""

LINES_LEAST = 2
"""Lines with readings that prove a format: one may be chance, or miss its first half."""

Keys = dict[str, object]
"""Keys of a `[[serial]]` table beside `port` and `baud`."""


class Seen(NamedTuple):
    """A format that fits, and what it contained."""

    keys: Keys
    comments: tuple[str, ...]


SEPARATORS = ((";", ","), ("\t", ","), (",", "."), (";", "."), ("\t", "."))
"""Separators of CSV, each with its decimal separator."""


async def scan_ports(options: ScanOptions) -> list[FoundTable]:
    """Return a table for each port with a format that fits."""
    places = options.places or tuple(each.port for each in plugged_in())
    if not places:
        options.report("no USB serial port is plugged in; name a port to listen to another")
    found = []
    for port in places:
        table = await _scan_port(port, options)
        if table is not None:
            found.append(table)
    return found


async def _scan_port(name: str, options: ScanOptions) -> FoundTable | None:
    received = 0
    for baud in BAUDS:
        options.report(f"{name}: listening at {baud:,} baud")
        detector = Detector()
        try:
            port = await open_port(name, Line(baud))
        except PortError as failure:
            options.report(f"{name}: {failure}")
            return None
        try:
            seen = await _listen(port, detector, options.seconds or SECONDS)
        except PortError as failure:
            options.report(f"{name}: {failure}")
            return None
        finally:
            port.close()
        received += detector.received
        if seen is not None:
            return _table(name, baud, seen)
    options.report(
        f"{name}: {received:,} bytes were received, and none of the formats fits them"
        if received
        else f"{name}: nothing was received"
    )
    return None


async def _listen(port: Port, detector: "Detector", seconds: float) -> Seen | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                seen = detector.feed(await port.read())
                if seen is not None:
                    return seen
    return detector.guess()


def _table(name: str, baud: int, seen: Seen) -> FoundTable:
    values = {"port": name} | seen.keys
    if baud != USUAL_LINES.get(str(seen.keys.get("format")), Line()).baud:
        values["baud"] = baud
    return FoundTable("serial", values, seen.comments)


class Detector:
    """Finds the format of the bytes; frames and telegrams, which have checks, count at once."""

    def __init__(self) -> None:
        self.received = 0
        self._frames = FrameDecoder(_count_nothing)
        self._telegrams: dict[str, TelegramDecoder] = {
            "vedirect": VeDirectDecoder(),
            "d0": D0Decoder(),
            "dsmr": DsmrDecoder(),
            "sml": SmlDecoder(),
        }
        self._lines = LineDecoder(_count_nothing)
        self._rows: Counter[tuple[str, str, int]] = Counter()
        """Number of lines by their number of cells, separator and decimal separator."""
        self._texts: list[tuple[Keys, Parse, list[Sample]]] = [
            ({"format": "nmea"}, parse_nmea, []),
            ({"format": "json"}, parse_json, []),
            *((_csv_keys(*each), _csv(*each), []) for each in SEPARATORS),
        ]

    def feed(self, data: bytes) -> Seen | None:
        """Return the format found, None while it is not yet known."""
        self.received += len(data)
        return self._frame(data) or self._telegram(data) or self._text(data)

    def guess(self) -> Seen | None:
        """Return a format for a single line, or for rows of numbers without a header, or None."""
        for keys, _, samples in self._texts:
            if samples:
                return _seen(keys, samples)
        for (separator, decimal, count), lines in self._rows.most_common(1):
            if lines >= LINES_LEAST:
                columns = [f"value_{number}" for number in range(1, count + 1)]
                comment = "name the columns; an empty name is skipped"
                return Seen(_csv_keys(separator, decimal) | {"columns": columns}, (comment,))
        return None

    def _frame(self, data: bytes) -> Seen | None:
        for body in self._frames.feed(data):
            with contextlib.suppress(MalformedFrameError):
                frame = decode_frame(body)
                if isinstance(frame, ReadingsFrame):
                    values = (f"{each.quantity} {each.value}" for each in frame.readings)
                    return Seen({}, (f"node {frame.node}: {_shown(values)}",))
        return None

    def _telegram(self, data: bytes) -> Seen | None:
        for name, decoder in self._telegrams.items():
            for telegram in decoder.feed(data):
                if telegram.values:
                    return Seen({"format": name}, (_shown(_measured(telegram)),))
        return None

    def _text(self, data: bytes) -> Seen | None:
        for line in self._lines.feed(data):
            for keys, parse, samples in self._texts:
                with contextlib.suppress(NoReadingError, RefusedReadingError):
                    sample = parse(line)
                    if sample.fields or sample.reading is not None:
                        samples.append(sample)
                if len(samples) >= LINES_LEAST:
                    return _seen(keys, samples)
            self._count_row(line)
        return None

    def _count_row(self, line: bytes) -> None:
        for separator, decimal in SEPARATORS:
            text = line.decode("utf-8", "replace")
            cells = text.split(separator) if decimal == "." or decimal in text else []
            numbers = [number_or_text(each.strip(), decimal) for each in cells]
            if len(cells) > 1 and not any(isinstance(each, str) for each in numbers):
                self._rows[separator, decimal, len(cells)] += 1


def _count_nothing(_name: str, _number: int) -> None:
    """Ignore bytes that do not belong to this format: they may belong to another one."""


def _csv(separator: str, decimal: str) -> Parse:
    return CsvLines((), separator, decimal=decimal, knows=NO_MAP.names).parse


def _csv_keys(separator: str, decimal: str) -> Keys:
    keys: Keys = {"format": "csv", "separator": separator}
    return keys | ({"decimal": decimal} if decimal != "." else {})


def _seen(keys: Keys, samples: list[Sample]) -> Seen:
    """Return the keys for lines, with their values and notes for a person."""
    sample = samples[-1]
    found = NO_MAP.readings(sample.fields, sample.units)
    values = [" ".join(filter(None, (each.quantity, str(each.value), each.unit))) for each in found]
    if sample.reading is not None:
        values.append(" ".join(str(each) for each in sample.reading if each is not None))
    comments = [_shown(values)]
    unclear = [each.unclear for each in found if each.unclear]
    if unclear:
        comments.append(f"define these in `map`: {', '.join(unclear[:SHOWN_MAX])}")
    node: Keys = {}
    if sample.node is None and {"model", "id"} <= sample.fields.keys():
        node = {"node": "{model}-{id}"}
    return Seen(keys | node, tuple(comments))


def _measured(telegram: Telegram) -> Iterator[str]:
    for each in telegram.values:
        name = f"{each.quantity}/{each.instance}" if each.instance else each.quantity
        yield " ".join(filter(None, (name, str(each.value), each.unit)))


def _shown(values: "Iterator[str] | list[str]") -> str:
    texts = list(values)
    more = ", …" if len(texts) > SHOWN_MAX else ""
    return ", ".join(texts[:SHOWN_MAX]) + more
