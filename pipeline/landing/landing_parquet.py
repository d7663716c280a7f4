"""A collector's landing file as rows: checked column by column, and row by row where that fails."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.place import Place
from pipeline.records import reasons
from pipeline.records.record import EXACT_MAX, UINT32_MAX, read_fields
from pipeline.tables.columns import QUARANTINE, RECORD, arrow_schema, names

ROWS = 10_000
"""Rows that are read at a time."""

SCHEMA = arrow_schema(QUARANTINE)
_RECORD = arrow_schema(RECORD)
_TEXTS = {
    "gateway_id": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
    "epoch": "^[0-9a-fA-F]{10}$",
    "stream": "^[A-Za-z0-9_-]{1,16}$",
    "topic": "^.|\n",
}
_RANGES = {
    "received": (0, EXACT_MAX),
    "qos": (0, 2),
    "message_expiry": (0, UINT32_MAX),
    "payload_format": (0, 1),
}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_pairs(kind: pa.DataType) -> bool:
    """Say whether a type is a list of pairs of texts."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    pair = kind.value_type
    return pa.types.is_null(pair) or (
        pa.types.is_struct(pair) and all(_is_text(pair.field(n).type) for n in range(len(pair)))
    )


_KINDS = (pa.types.is_integer, pa.types.is_boolean, _is_text, _is_bytes, _is_pairs)
"""A column's type and the record's are both of one of these."""


def read_landing_parquet(landing: Place, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the file's rows with the quarantine's columns; the reason of a record is null.

    A file that is damaged, cut for instance, gives a row that says so, after the rows before the
    damage. Raises OSError if the system cannot read it, JobError if a store cannot.
    """
    line = 1
    try:
        with (
            landing.open(name) as source,
            pq.ParquetFile(source, page_checksum_verification=True) as file,
        ):
            _check_types(file.schema_arrow)
            # Arrow's own threads would call into Python for its bytes.
            for batch in file.iter_batches(ROWS, use_threads=False):
                rows = list(_rows(_typed(batch), name, line))
                line += batch.num_rows
                yield from rows
    except (pa.ArrowException, UnicodeDecodeError) as error:
        yield _fault(name, error)
    except OSError as error:
        if error.errno is not None:
            raise
        yield _fault(name, error)  # Arrow's name for many kinds of damage


def count_rows(landing: Place, name: str) -> int:
    """Return how many rows a file has by its footer, 0 if it is damaged.

    Raises OSError if the system cannot read it, JobError if a store cannot.
    """
    try:
        with landing.open(name) as source:
            return int(pq.read_metadata(source).num_rows)
    except pa.ArrowException:
        return 0
    except OSError as error:
        if error.errno is not None:
            raise
        return 0


def _check_types(schema: pa.Schema) -> None:
    """Raise ArrowTypeError for a column of another kind: a cast would change what it says.

    So it would multiply a timestamp, cut a fraction, and read a number out of a text.
    """
    for field in _RECORD:
        place = schema.get_field_index(field.name)
        found = field.type if place < 0 else _plain(schema.field(place).type)
        if not pa.types.is_null(found) and not any(
            is_kind(found) and is_kind(field.type) for is_kind in _KINDS
        ):
            raise pa.ArrowTypeError(f"column {field.name} is {found}, but must be {field.type}")


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _typed(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)  # damage may leave text that is not UTF-8
    columns = [
        batch[field.name].cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in _RECORD
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_RECORD)


def _rows(batch: pa.RecordBatch, name: str, line: int) -> Iterator[pa.RecordBatch]:
    lines = pa.array(range(line, line + batch.num_rows), pa.int64())
    good = _good(batch)
    if not pc.all(good).as_py():
        bad = pc.invert(good)
        wrong = zip(batch.filter(bad).to_pylist(), lines.filter(bad).to_pylist(), strict=True)
        rows = [_wrong_row(row, name, number) for row, number in wrong]
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)
        batch, lines = batch.filter(good), lines.filter(good)
    count = batch.num_rows
    files = pa.repeat(pa.scalar(name), count)
    empty = [pa.nulls(count, SCHEMA.field(column).type) for column in ("reason", "detail", "raw")]
    yield pa.RecordBatch.from_arrays([*batch.columns, files, lines, *empty], schema=SCHEMA)


def _good(batch: pa.RecordBatch) -> pa.Array:
    """Return which rows fit docs/understand/schemas/landing-record.schema.json."""
    good = pc.and_(pc.is_valid(batch["payload"]), pc.is_valid(batch["time"]))
    good = pc.and_(good, pc.fill_null(pc.greater_equal(batch["seq"], 1), fill_value=False))
    for name, pattern in _TEXTS.items():
        fits = pc.match_substring_regex(batch[name], pattern)
        good = pc.and_(good, pc.fill_null(fits, fill_value=False))
    for name, (low, high) in _RANGES.items():
        column = batch[name]
        inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        good = pc.and_(good, pc.fill_null(inside, fill_value=True))
    return good


def _wrong_row(row: dict[str, Any], name: str, line: int) -> dict[str, object]:
    """Return the row for the quarantine of a row that breaks a rule."""
    as_json = {field: value for field, value in row.items() if value is not None}
    for field in ("payload", "correlation_data"):
        if field in as_json:
            as_json[field] = b64encode(as_json[field]).decode("ascii")
    if "properties" in as_json:
        as_json["properties"] = [[pair["name"], pair["value"]] for pair in row["properties"]]
    values, fault = read_fields(as_json)
    reason = fault or (reasons.FIELD_INVALID, "a value has another form")
    kept = dict(zip(names(RECORD), values, strict=True))
    return kept | {"landing_file": name, "line": line, "reason": reason[0], "detail": reason[1]}


def _fault(name: str, error: Exception) -> pa.RecordBatch:
    detail = str(error).partition("\n")[0]
    row = {"landing_file": name, "reason": reasons.FILE_UNREADABLE, "detail": detail}
    return pa.RecordBatch.from_pylist([row], SCHEMA)
