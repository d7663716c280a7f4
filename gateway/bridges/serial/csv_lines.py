"""A line of separated values; the columns are configured, or named by a header."""

import csv
import re
from collections.abc import Callable

from gateway.bridges.readings.event_time import TIME_NAMES, named_time
from gateway.bridges.readings.reading import NAME_MAX, RefusedReadingError
from gateway.bridges.readings.written import number_or_text, text_of
from gateway.bridges.serial.sample import NoReadingError, Sample, measured

COLUMNS_MAX = 64

WORDS_MAX = 3
"""Words of a column's name without its unit in brackets; a longer text is a sentence."""

COMMENT = "#%/ "
"""Characters that may precede a header."""

DESCRIBING = ("node", "instance", "time")
"""Columns that describe the others."""

NAME = re.compile(r"\w[^:=!?;\"'{}<>|]*(?<!\.)")
BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")


class CsvLines:
    """Reads lines with one cell for each column.

    The columns `node`, `instance` and `time` describe the others; a column without a name is
    ignored. Without configured columns a line of names is the header. It applies at once if `knows`
    knows one of its names, and as many as of the header before. Otherwise it applies when the next
    line with numbers fits it and not the header before. Text with a comma is no header.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        separator: str,
        *,
        decimal: str = ".",
        knows: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._configured = columns
        self._columns = columns
        self._separator = separator
        self._decimal = decimal
        self._knows = knows
        self._known = 0
        self._candidate: tuple[str, ...] = ()

    def parse(self, line: bytes) -> Sample:
        """Return a line's values.

        Raise NoReadingError for text, RefusedReadingError for bad cells.
        """
        cells = self._cells(line)
        if not self._has_values(cells):
            self._find_header(cells)
            raise NoReadingError("no cell is a number")
        if not self._fits(cells, self._columns) and self._fits(cells, self._candidate):
            self._set_header(self._candidate)
        if not self._fits(cells, self._columns):
            wanted = len(self._columns) or "a header, or columns in the configuration"
            raise RefusedReadingError(f"a line of {len(cells)} cells: {wanted} must be there")
        return self._sample(
            {name: cell for name, cell in zip(self._columns, cells, strict=False) if name and cell}
        )

    def _has_values(self, cells: list[str]) -> bool:
        """Return whether a cell is a number, or each is a number with its unit.

        A single `5 s` does not make a text with a comma a line of values.
        """
        if any(not isinstance(number_or_text(cell, self._decimal), str) for cell in cells):
            return True
        values, _ = measured(dict(enumerate(filter(None, cells))), self._decimal)
        return bool(values) and not any(isinstance(value, str) for value in values.values())

    def _sample(self, named: dict[str, str]) -> Sample:
        time = named_time(named)
        described = {name.lower(): cell for name, cell in named.items()}
        others = {name: cell for name, cell in named.items() if name.lower() not in DESCRIBING}
        fields, units = measured(others, self._decimal)
        return Sample(
            *(fields, described.get("node"), time),
            units=units,
            instance=described.get("instance", ""),
        )

    def _cells(self, line: bytes) -> list[str]:
        try:
            text = text_of(line)
            rows = list(csv.reader([text], delimiter=self._separator))
        except (ValueError, csv.Error):
            raise NoReadingError("not CSV") from None
        return [cell.strip() for cell in rows[0]] if rows else []

    @staticmethod
    def _fits(cells: list[str], columns: tuple[str, ...]) -> bool:
        """Return whether there is a cell for each column; a separator may end the line."""
        extra = len(cells) - len(columns)
        return bool(columns) and (extra == 0 or (extra == 1 and not cells[-1]))

    def _find_header(self, cells: list[str]) -> None:
        while cells and not cells[-1]:
            cells = cells[:-1]
        cells = [each.lstrip(COMMENT) if place == 0 else each for place, each in enumerate(cells)]
        if self._configured or not 1 < len(cells) <= COLUMNS_MAX or not _can_be_header(cells):
            return
        self._candidate = tuple(cells)
        known = self._count_known(self._candidate)
        if known and known >= self._known:
            self._set_header(self._candidate)
        elif not known and not all(map(_is_word, cells)):
            self._candidate = ()

    def _set_header(self, columns: tuple[str, ...]) -> None:
        self._columns, self._known = columns, self._count_known(columns)

    def _count_known(self, columns: tuple[str, ...]) -> int:
        describing = (*DESCRIBING, *TIME_NAMES)
        return sum(name.lower() in describing or self._knows(name) for name in columns if name)


def _can_be_header(cells: list[str]) -> bool:
    """Return whether these can be names: not a sentence with a comma, or a row of settings."""
    names = [cell for cell in cells if cell]
    return len({name.lower() for name in names}) == len(names) and all(map(_is_name, names))


def _is_name(cell: str) -> bool:
    words = BRACKETS.sub("", cell).split()
    short = 1 <= len(words) <= WORDS_MAX and len(cell.encode()) <= NAME_MAX
    return short and NAME.fullmatch(cell) is not None


def _is_word(cell: str) -> bool:
    return len(BRACKETS.sub("", cell).split()) == 1
