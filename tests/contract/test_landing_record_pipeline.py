"""The pipeline's half of the landing record: it takes what the schema allows, nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.record import FIELDS, read_record
from pipeline.tables.columns import RECORD, names
from tests.support.disk.landing_files import record
from tests.support.schemas import read_schema, validator_of
from tests.support.table import table

SCHEMA = read_schema("landing-record")
ALLOWED = validator_of("landing-record")

EXAMPLE = (
    b'{"gateway_id":"barn","epoch":"00a1b2c3d4","stream":"main","seq":17,"time":1763740000000,'
    b'"received":1763740000120,"topic":"sensors/n1/temperature","payload":"eyJ2YWx1ZSI6MjF9",'
    b'"qos":1,"retain":false,"resent":false,"content_type":null,"properties":[["site","A"]]}'
)

# The edges that a reader and a schema may see differently. A float with no fraction is left out:
# to a schema it is an integer, and its description says that the reader takes none.
EDGES: list[object] = [
    None, True, False, 0, 1, 2, 3, -1, 10**11, 946684799999, 946684800000, 4102444799999,
    4102444800000, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 0.5, 17.5,
    "", "a", "barn", "-barn", "a.b", "ä", "a" * 16, "a" * 17, "a" * 64, "a" * 65,
    "00a1b2c3d4", "00A1B2C3D4", "00a1b2c3dg", "00a1b2c3d", "17", "YQ==", "YWI=", "YWJj", "YQ", "=",
    "0000=", "YQ==YQ==", "Y-_=",
    [], [[]], [["a"]], [["a", "b"]], [["a", 1]], [["a", "b", "c"]], [["a", "b"], ["a", "b"]],
    {}, {"a": "b"}, [None], ["ab"],
]  # fmt: skip
CHANGES = st.dictionaries(st.sampled_from(names(RECORD)), st.sampled_from(EDGES), max_size=3)
MISSING = st.sets(st.sampled_from(names(RECORD)), max_size=2)


def is_taken(entry: dict[str, Any]) -> bool:
    return read_record(json.dumps(entry).encode())[1] is None


def test_the_schema_is_one() -> None:
    assert SCHEMA["$id"] == "urn:tidegate:landing-record:1"


def test_the_schema_and_bronze_have_the_same_fields() -> None:
    assert list(SCHEMA["properties"]) == names(RECORD)
    required = [name for name, field in FIELDS.items() if field.absent is not None]
    assert SCHEMA["required"] == required


def test_what_a_gateway_writes_is_taken() -> None:
    written = ALLOWED.evolve(schema=SCHEMA["$defs"]["written"])
    for entry in (json.loads(EXAMPLE), record()):
        written.validate(entry)
        assert is_taken(entry)
        del entry["received"]
        assert not written.is_valid(entry)
        assert is_taken(entry)


@table("name", names(RECORD))
def test_each_field_is_taken_as_the_schema_has_it(name: str) -> None:
    for value in EDGES:
        entry = record() | {name: value}
        # An absent and a null field are one to the reader; a key part may be neither.
        assert is_taken(entry) == ALLOWED.is_valid(entry), (name, value)
    absent = {field: value for field, value in record().items() if field != name}
    assert is_taken(absent) == ALLOWED.is_valid(absent)


@given(CHANGES, MISSING)
def test_reader_and_schema_agree_on_any_record(
    changes: dict[str, object], missing: set[str]
) -> None:
    entry = {name: value for name, value in (record() | changes).items() if name not in missing}
    assert is_taken(entry) == ALLOWED.is_valid(entry)


@pytest.mark.parametrize("entry", [None, True, 17, "text", [], [record()]])
def test_nothing_but_an_object_is_a_record(entry: object) -> None:
    assert not ALLOWED.is_valid(entry)
    assert read_record(json.dumps(entry).encode())[1] is not None
