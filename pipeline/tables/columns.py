"""The columns of the tables, written once; Spark gets them as DDL and Arrow as a schema."""

import pyarrow as pa
import pyarrow.compute as pc

Columns = tuple[tuple[str, str], ...]
"""Pairs of a column's name and its type, in Spark's words."""

KEY = ("gateway_id", "epoch", "stream", "seq")
"""What names a message for ever; of several with one name, the first stays."""

DIGEST_BYTES = 8
"""Of the payload's SHA-256 in silver: two rows of a key conflict if theirs differ."""

RECORD: Columns = (
    ("gateway_id", "string"),
    ("epoch", "string"),
    ("stream", "string"),
    ("seq", "bigint"),
    ("time", "bigint"),
    ("received", "bigint"),
    ("topic", "string"),
    ("payload", "binary"),
    ("qos", "tinyint"),
    ("retain", "boolean"),
    ("resent", "boolean"),
    ("content_type", "string"),
    ("properties", "array<struct<name:string,value:string>>"),
    ("clientid", "string"),
    ("username", "string"),
    ("response_topic", "string"),
    ("correlation_data", "binary"),
    ("message_expiry", "bigint"),
    ("payload_format", "tinyint"),
    ("payload_is_json", "boolean"),
)
"""The fields of a landing record (docs/understand/schemas/landing-record.schema.json)."""

BRONZE: Columns = (*RECORD, ("landing_file", "string"), ("line", "bigint"))
"""A record and where it stood: its file below the landing folder, its line from 1."""

QUARANTINE: Columns = (*BRONZE, ("reason", "string"), ("detail", "string"), ("raw", "binary"))
"""What could be read, why it is here, what was wrong, and the first bytes of the line."""

BATCH = ("batch", "bigint")
"""The number of the batch that gave a row."""

SILVER: Columns = (
    ("gateway_id", "string"),
    ("epoch", "string"),
    ("stream", "string"),
    ("seq", "bigint"),
    ("part", "int"),
    ("event_time", "timestamp"),
    ("time_source", "string"),
    ("time_uncertainty_ms", "bigint"),
    ("time", "bigint"),
    ("received", "bigint"),
    ("reading_time", "bigint"),
    ("node", "string"),
    ("quantity", "string"),
    ("instance", "string"),
    ("topic", "string"),
    ("value", "double"),
    ("value_text", "string"),
    ("value_exact", "string"),
    ("unit", "string"),
    ("quality", "string"),
    ("lateness_ms", "bigint"),
    ("resent", "boolean"),
    ("bytes", "bigint"),
    ("decode_error", "string"),
    ("digest", "binary"),
    ("landing_file", "string"),
    ("line", "bigint"),
    ("batch", "bigint"),
    ("event_date", "date"),
)
"""One row a key: typed, with the time that holds and where the row came from.

A message with several readings has a row for each, `part` from 0 on (null in older tables), and its
`bytes` in the first.
"""

ISLANDS: Columns = (
    ("gateway_id", "string"),
    ("epoch", "string"),
    ("stream", "string"),
    ("first", "bigint"),
    ("last", "bigint"),
    ("first_time", "bigint"),
    ("last_time", "bigint"),
)
"""A closed range of numbers that are all in silver, and the event times (ms) of its two ends.

The table `islands` has its batch, too, and none where ranges of several batches are one.
"""

_STREAM = "struct<gateway_id:string,epoch:string,stream:string>"
_EPOCH = "struct<gateway_id:string,epoch:string>"

BATCHES: Columns = (
    ("batch", "bigint"),
    ("files", "bigint"),
    ("bronze", "bigint"),
    ("quarantine", "bigint"),
    ("silver", "bigint"),
    ("reasons", "map<string,bigint>"),
    ("dates", "array<date>"),
    ("streams", f"array<{_STREAM}>"),
    ("epochs", f"array<{_EPOCH}>"),
)
"""What a batch read and gave: files and rows by table, rows of the quarantine by reason, the dates
of its rows, the streams of its rows and ledgers, and the epochs whose earlier rows its clock
records may correct. A batch counts once its row is here."""

FILES: Columns = (("name", "string"), ("size", "bigint"), ("mtime", "bigint"), BATCH)
"""A landing file by its path, as it was when a batch read it: bytes, and the time (ns) of its last
change."""

QUARANTINED: Columns = (
    ("gateway_id", "string"),
    ("date", "date"),
    ("reason", "string"),
    ("count", "bigint"),
    BATCH,
)
"""How many rows of the quarantine a batch gave of a gateway, a day and a reason, as far as these
are known."""

FOLDERS: Columns = (("name", "string"), ("changed", "bigint"))
"""A landing folder of which all was read, and the time (ns) of its last change, or listing."""

CLOCKS: Columns = (
    ("gateway_id", "string"),
    ("epoch", "string"),
    ("offset_ms", "bigint"),
    ("uncertainty_ms", "bigint"),
    ("begins", "bigint"),
    ("ends", "bigint"),
    ("numbers", "string"),
    ("boot", "string"),
    ("uptime_ms", "bigint"),
    ("landing_file", "string"),
    ("line", "bigint"),
    ("batch", "bigint"),
)
"""Clock records (docs/understand/schemas/clock-record.schema.json); `numbers` is JSON."""

LEDGER: Columns = (
    ("gateway_id", "string"),
    ("epoch", "string"),
    ("start", "bigint"),
    ("stream", "string"),
    ("first", "bigint"),
    ("last", "bigint"),
    ("outcome", "string"),
    ("cause", "string"),
    ("reporter", "string"),
    ("reported", "timestamp"),
    ("landing_file", "string"),
    ("line", "bigint"),
    ("batch", "bigint"),
)
"""What ledgers tell, a row a range; the start of the epoch `reporter` wrote it at the time
`reported`. Without an outcome `last` is the last number that was given; both are null
where an entry only says that a start was."""

GAPS: Columns = (
    ("gateway", "string"),
    ("epoch", "string"),
    ("stream", "string"),
    ("first", "bigint"),
    ("last", "bigint"),
    ("outcome", "string"),
    ("cause", "string"),
    ("after", "timestamp"),
    ("before", "timestamp"),
)
"""Numbers that did not arrive, how they ended, and the event times of the rows around them."""

STREAMS: Columns = (
    ("gateway", "string"),
    ("epoch", "string"),
    ("stream", "string"),
    ("emitted", "bigint"),
    ("delivered", "bigint"),
    ("filtered", "bigint"),
    ("expired", "bigint"),
    ("evicted", "bigint"),
    ("rejected", "bigint"),
    ("lost", "bigint"),
    ("missing", "bigint"),
    ("not_reported", "bigint"),
    ("unrecorded", "bigint"),
    ("last_time", "timestamp"),
)
"""The numbers of a stream by outcome, which add up to `emitted`; the newest event."""

BOARDS: Columns = (
    ("gateway", "string"),
    ("epoch", "string"),
    ("other_epoch", "string"),
    ("reason", "string"),
    ("first_time", "timestamp"),
    ("last_time", "timestamp"),
)
"""Two epochs of a gateway that ran at one time, and when: two boards under one name."""

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "tinyint": pa.int8(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<date>": pa.list_(pa.date32()),
    f"array<{_STREAM}>": pa.list_(
        pa.struct([(name, pa.string()) for name in ("gateway_id", "epoch", "stream")])
    ),
    f"array<{_EPOCH}>": pa.list_(
        pa.struct([(name, pa.string()) for name in ("gateway_id", "epoch")])
    ),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "array<struct<name:string,value:string>>": pa.list_(
        pa.struct([("name", pa.string()), ("value", pa.string())])
    ),
}


def names(columns: Columns) -> list[str]:
    """Return the columns' names in order."""
    return [name for name, _ in columns]


def ddl(columns: Columns) -> str:
    """Return the columns as Spark's DDL, such as ``seq bigint, time bigint``."""
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def first_parts(rows: pa.Table) -> pa.Table:
    """Return the first row of each of silver's messages, without the column `part`."""
    parts, rows = rows["part"], rows.drop_columns(["part"])
    return rows if parts.null_count == len(parts) else rows.filter(is_first(parts))


def is_first(parts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say which rows are the first of their message; tables of an earlier version had no others."""
    return pc.fill_null(pc.equal(parts, 0), fill_value=True)


def arrow_schema(columns: Columns) -> pa.Schema:
    """Return the columns as an Arrow schema, the one Spark expects for the same DDL."""
    return pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in columns])
