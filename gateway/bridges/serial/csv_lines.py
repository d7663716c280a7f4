"""A line of values between separators; the columns are configured, or a header names them."""

import csv

from gateway.bridges.readings.event_time import milliseconds
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.serial.sample import NoReadingError, Sample, number_or_text

COLUMNS_MAX = 64


class CsvLines:
    """Reads lines of as many cells as there are columns.

    The columns `node` and `time` say whose the others are and when; one without a name is left
    out. Without configured columns the first line in which no cell is a number names them.
    """

    def __init__(self, columns: tuple[str, ...], separator: str) -> None:
        self._configured = columns
        self._columns = columns
        self._separator = separator

    def parse(self, line: bytes) -> Sample:
        """Return what a line says; raise NoReadingError for text, RefusedReadingError for cells."""
        cells = self._cells(line)
        values = [number_or_text(cell) for cell in cells]
        if not any(isinstance(value, int | float) for value in values):
            self._take_header(cells)
            raise NoReadingError("no cell is a number")
        if len(cells) != len(self._columns):
            wanted = len(self._columns) or "a header, or columns in the configuration"
            raise RefusedReadingError(f"a line of {len(cells)} cells: {wanted} must be there")
        fields: dict[str, object] = {
            name: value
            for name, value in zip(self._columns, values, strict=True)
            if name and value != ""
        }
        node, time = fields.pop("node", None), fields.pop("time", None)
        return Sample(
            fields,
            None if node is None else str(node),
            milliseconds(time) if isinstance(time, int | float) and abs(time) < 1e18 else None,
        )

    def _cells(self, line: bytes) -> list[str]:
        try:
            rows = list(csv.reader([line.decode()], delimiter=self._separator))
        except (UnicodeDecodeError, csv.Error):
            raise NoReadingError("not CSV") from None
        return [cell.strip() for cell in rows[0]] if rows else []

    def _take_header(self, cells: list[str]) -> None:
        if not self._configured and 1 < len(cells) <= COLUMNS_MAX:
            self._columns = tuple(cells)
