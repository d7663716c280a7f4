"""The keys of a `[[serial]]` table."""

from dataclasses import dataclass
from pathlib import PurePath

from gateway.bridges.readings.name_template import NameTemplate, name_template
from gateway.bridges.readings.reading_map import ReadingMap
from gateway.bridges.serial.port import PARITIES, Line
from gateway.bridges.serial.regex_lines import check_pattern
from gateway.bridges.serial.remote_port import SCHEME, check_url
from gateway.bridges.settings import LISTED, BridgeSettings, key
from gateway.bridges.topics.presets import PRESETS
from gateway.settings.checks import one_of, text, texts, whole_number

TELEGRAMS = ("vedirect", "dsmr", "d0", "sml")
"""Formats whose telegrams have checks."""

USUAL_LINES = {
    "vedirect": Line(19_200),
    "d0": Line(9_600, 7, "even"),
    "sml": Line(9_600),
}

NAME_MAX = 64
"""Characters of a bridge's name that is derived from its port's."""


def port(value: object) -> str:
    """Accept a path, `usb:vendor:product[:serial number]`, a URL or `topic://<topic>`."""
    name = text(value)
    if name.startswith(SCHEME):
        check_topic(name.removeprefix(SCHEME))
    elif "://" in name:
        check_url(name)
    return name


def check_topic(topic: str) -> None:
    """Raise ValueError for text that cannot begin a topic."""
    if not topic.strip("/") or topic.startswith("$") or set(topic) & {"+", "#"}:
        raise ValueError("topic://<topic>, such as topic://nodes/barn1, without + and #")


def columns(value: object) -> tuple[str, ...]:
    """Accept names of columns; an empty one leaves its column out."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError('a list of names such as ["time", "temp", ""]')
    return tuple(value)


def separator(value: object) -> str:
    """Accept one character."""
    if not isinstance(value, str) or len(value) != 1 or value in '\r\n"':
        raise ValueError('one character such as "," or ";"')
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class SerialSettings(BridgeSettings):
    """A serial port with one or more nodes behind it."""

    port: str = key(
        port,
        "path such as `/dev/serial/by-id/…`, `usb:0403:6001`, `usb:0403:6001:<serial "
        "number>`, `socket://host:port`, `rfc2217://host:port`, or for Wi-Fi "
        "`topic://<topic>`",
    )
    format: str = key(
        one_of("frames", "json", "csv", "nmea", "regex", *TELEGRAMS, "raw"),
        "format of the lines, from the table above",
        "frames",
    )
    baud: int | None = key(
        whole_number(50, 4_000_000),
        "bits a second; by default 115,200, for `vedirect` 19,200, for `d0` and `sml` 9,600",
        None,
    )
    data_bits: int | None = key(
        whole_number(7, 8), "bits of a character; by default 8, for `d0` 7", None
    )
    parity: str | None = key(one_of(*PARITIES), "by default `none`, for `d0` `even`", None)
    stop_bits: int = key(whole_number(1, 2), "stop bits", 1)
    node: str | None = key(
        name_template,
        "node of lines without one, or built from their fields: `{model}-{id}`; by default "
        "the bridge's name",
        None,
    )
    instance: str | None = key(
        name_template,
        "instance of lines without one, such as `{channel}`",
        None,
    )
    preset: str | None = key(
        one_of(*(name for name, each in PRESETS.items() if each.node)),
        "what the names in `json` lines of this program mean, as for "
        "[topics](#other-programs-topics)",
        None,
    )
    listed: tuple[str, ...] = key(texts, LISTED, ())
    columns: tuple[str, ...] = key(
        columns, "names of the columns of `csv`; without them a header names them", ()
    )
    separator: str = key(separator, "separator of the cells of `csv`", ",")
    decimal: str = key(
        one_of(".", ","),
        "decimal separator of `csv` and `regex`",
        ".",
    )
    pattern: str | None = key(text, "RE2 expression of `regex`, with named groups", None)

    def __post_init__(self) -> None:
        """Raise ValueError for keys that contradict each other."""
        if (self.format == "regex") != (self.pattern is not None):
            raise ValueError('pattern must be given with format = "regex", and only there')
        if self.preset is not None and self.format != "json":
            raise ValueError('preset can be given only with format = "json"')
        if self.columns and self.format != "csv":
            raise ValueError('columns can be given only with format = "csv"')
        _check_series(self.columns, self.map)
        if self.decimal == "," and self.format not in ("csv", "regex"):
            raise ValueError('decimal can be given only with format = "csv" or "regex"')
        if self.format == "csv" and self.separator == self.decimal:
            raise ValueError('separator must not be decimal: give one such as ";"')
        names = (self.node or "", self.instance or "")
        if self.format in ("frames", "raw", *TELEGRAMS) and any(
            NameTemplate(each).fields for each in names
        ):
            raise ValueError(f"node and instance cannot be made of fields in {self.format}")
        if self.format in ("frames", "raw") and self.instance:
            raise ValueError(f"instance has no meaning in {self.format}")
        if self.pattern is not None:
            check_pattern(self.pattern)

    @property
    def line(self) -> Line:
        """The setup of the port."""
        usual = USUAL_LINES.get(self.format, Line())
        return Line(
            self.baud or usual.baud,
            self.data_bits or usual.data_bits,
            self.parity or usual.parity,
            self.stop_bits,
        )


def _check_series(columns: tuple[str, ...], meanings: ReadingMap) -> None:
    """Raise ValueError for two columns of one series."""
    known: dict[tuple[str, str], str] = {}
    for name in filter(None, columns):
        for found in meanings.readings({name: 1.0}):
            other = known.setdefault((found.quantity, found.instance), name)
            if other != name or columns.count(name) > 1:
                shared = f"columns {other!r} and {name!r} are both {found.quantity}"
                raise ValueError(f"{shared}: give one an instance in map")


def port_name(port: str) -> str:
    """Return the port's base name for topics: `+` and `#` are not allowed there."""
    name = port.partition("://")[2] if "://" in port else PurePath(port).name
    for forbidden in "/+#":
        name = name.replace(forbidden, "_")
    return name[:NAME_MAX] or "serial"
