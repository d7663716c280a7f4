import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.fast_reading import read_body
from pipeline.records.reading import Reading, decode, decode_slowly, series_of
from tests.pipeline.records.test_fast_record import VALUES
from tests.support.table import table

TOPIC = "sensors/n1/temperature"


def of_sensor(
    value: float | None = None,
    text: str | None = None,
    error: str | None = None,
    unit: str | None = None,
    quality: str | None = None,
    time: int | None = None,
    exact: str | None = None,
) -> Reading:
    return Reading(time, "n1", "temperature", value, text, unit, quality, error, exact)


LONG = 123_456_789_012_345_678_901
FIELDS = ["value", "unit", "quality", "time", "more"]

NO_VALUE = "value is neither number, text nor boolean"
BEYOND = "value is beyond a double's range"
NO_TIME = "time is not an integer of milliseconds"

READINGS = [
    (b'{"value":21.5}', of_sensor(21.5)),
    (b'{"value":-3}', of_sensor(-3.0)),
    (b'{"value":"open"}', of_sensor(text="open")),
    (b'{"value":true}', of_sensor(text="true")),
    (b'{"value":false}', of_sensor(text="false")),
    (b'{"value":1,"unit":"\xc2\xb0C"}', of_sensor(1.0, unit="°C")),
    (b'{"value":1,"unit":null,"time":null}', of_sensor(1.0)),
    (b'{"value":1,"quality":"good","more":[1]}', of_sensor(1.0, quality="good")),
    (b'{"value":1,"time":1763739990000}', of_sensor(1.0, time=1_763_739_990_000)),
    (b'{"value":null}', of_sensor(error="value is null")),
    (b'{"value":[1]}', of_sensor(error=NO_VALUE)),
    (b'{"value":{"a":1}}', of_sensor(error=NO_VALUE)),
    (b'{"value":1e999}', of_sensor(error="value is beyond a double's range")),
    (b'{"value":' + b"9" * 400 + b"}", of_sensor(error="value is beyond a double's range")),
    (b'{"value":1,"unit":5}', of_sensor(1.0, error="unit is not text")),
    (b'{"value":1,"time":1763739990}', of_sensor(1.0, time=1_763_739_990)),
    (b'{"value":1,"time":9223372036854775808}', of_sensor(1.0, error=NO_TIME)),
    (b'{"value":1,"time":"now"}', of_sensor(1.0, error=NO_TIME)),
    (b'{"value":1,"time":true}', of_sensor(1.0, error=NO_TIME)),
    (b'{"value":NaN}', of_sensor(error="NaN is not JSON; value is no number")),
    (b'{"value": -Infinity}', of_sensor(error=f"-Infinity is not JSON; {BEYOND}")),
    (b'{"value":1,"rssi":NaN}', of_sensor(1.0, error="NaN is not JSON")),
    (b'{"value":9007199254740993}', of_sensor(2.0**53, exact="9007199254740993")),
    (b'{"value":-9007199254740993,"x":1}', of_sensor(-(2.0**53), exact="-9007199254740993")),
    (b'{"value":9007199254740994}', of_sensor(2.0**53 + 2)),
    (b'{"value":%d}' % LONG, of_sensor(1.2345678901234568e20, exact=str(LONG))),
    (b'{"value":[],"unit":1}', of_sensor(error=f"{NO_VALUE}; unit is not text")),
]
OTHERS = [
    (TOPIC, b"21.5", Reading(value_text="21.5")),
    (TOPIC, b"", Reading(value_text="")),
    (TOPIC, b'{"state":"open"}', Reading(value_text='{"state":"open"}')),
    (TOPIC, b'[{"value":1}]', Reading(value_text='[{"value":1}]')),
    (TOPIC, b"\xff\x00", Reading(decode_error="not UTF-8 at byte 1")),
    ("sensors/n1", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors/n1/temperature/set", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors/n1/command/answer", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors/n1/command/a", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors/n1/temperature/", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors/n1/temperature/a/b", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("sensors//temperature", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("Sensors/n1/temperature", b'{"value":1}', Reading(value_text='{"value":1}')),
    ("/sensors/n1/temperature", b'{"value":1}', Reading(value_text='{"value":1}')),
]


@table(("payload", "reading"), READINGS, ids=range(len(READINGS)))
def test_a_reading_is_decoded(payload: bytes, reading: Reading) -> None:
    assert decode(TOPIC, payload) == reading
    several = reading._replace(instance="28ff641e")
    assert decode(f"{TOPIC}/28ff641e", payload) == several


@table(("topic", "payload", "reading"), OTHERS, ids=range(len(OTHERS)))
def test_anything_else_keeps_its_text(topic: str, payload: bytes, reading: Reading) -> None:
    assert decode(topic, payload) == reading


def test_levels_may_hold_any_character_but_the_separator() -> None:
    assert series_of("sensors/n 1/Lüfter #2") == ("n 1", "Lüfter #2", None)
    assert series_of("sensors/n 1/Lüfter #2/+ 3") == ("n 1", "Lüfter #2", "+ 3")
    assert series_of("sensors/n1/") is None


@pytest.mark.uncovered
@given(st.sampled_from([TOPIC, "a/b"]), st.binary() | st.text().map(str.encode))
def test_every_payload_gives_a_row(topic: str, payload: bytes) -> None:
    row = decode(topic, payload)
    assert (row.node is None) == (row.quantity is None)
    assert row.value is None or row.value_text is None
    if row.value is None and row.value_text is None:
        assert row.decode_error


@given(
    st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(VALUES)), max_size=5),
    st.binary(max_size=3),
)
def test_the_quick_decoder_gives_what_the_rules_give(
    fields: list[tuple[str, bytes]], damage: bytes
) -> None:
    pairs = b",".join(b'"%b":%b' % (name.encode(), value) for name, value in fields)
    for payload in (b"{%b}" % pairs, b'{"value":1,%b}' % pairs, b"{%b}%b" % (pairs, damage)):
        assert repr(decode(TOPIC, payload)) == repr(decode_slowly(TOPIC, payload))


@given(st.integers() | st.floats(), st.integers(-(2**65), 2**65))
def test_so_it_does_of_any_number(value: float, time: int) -> None:
    payload = b'{"value":%b,"time":%d}' % (repr(value).encode(), time)
    assert repr(decode(TOPIC, payload)) == repr(decode_slowly(TOPIC, payload))


def test_the_quick_decoder_takes_what_nodes_write() -> None:
    body = read_body(b'{"value":21.5,"unit":"C","quality":"good","time":1763739990000}')
    assert body is not None
    assert (body.value, body.unit, body.quality, body.time) == (21.5, "C", "good", 1763739990000)
