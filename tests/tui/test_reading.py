from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui.topics import MOST_TEXT, Reading, read

READINGS = [
    (
        '{"value":21.5,"unit":"°C","time":1763740000000}'.encode(),
        Reading("21.5", 21.5, "°C", 1_763_740_000.0),
    ),
    (b'{"value":true}', Reading("true", 1.0)),
    (b'{"value":"on","unit":7}', Reading("on")),
    (b'{"value":null}', Reading("null")),
    (b'{"value":{"x":1}}', Reading("{…}")),
    (b'{"value":[1,2]}', Reading("[…]")),
    (b'{"value":NaN}', Reading("nan")),
    (b'{"value":1e999}', Reading("inf")),
    (b'{"value":1' + b"0" * 400 + b"}", Reading("(too large)")),
    (b'{"value":1,"time":-5}', Reading("1", 1.0)),
    (b'{"temperature":21}', Reading('{"temperature":21}')),
    (b"[1, 2]", Reading("[1, 2]")),
    (b"21.25", Reading("21.25", 21.25)),
    (b"21.123456789", Reading("21.12346", 21.123456789)),
    (b"-3", Reading("-3", -3.0)),
    (b"ON", Reading("ON")),
    (b'"on"', Reading("on")),
    (b"[bold]x\x1b[2J", Reading("[bold]x·[2J")),
    (b"", Reading("(empty)")),
    (b"\xff\xfe\x00", Reading("(3 B) ff fe 00")),
    (b"x" * 10_000, Reading("(10.0 kB)")),
    (b"y" * 100, Reading("y" * (MOST_TEXT - 1) + "…")),
]


@table(("payload", "reading"), READINGS, ids=lambda value: str(value)[:24])
def test_read(payload: bytes, reading: Reading) -> None:
    assert read(payload) == reading


@given(st.binary(max_size=200))
def test_never_raises_and_is_always_printable(payload: bytes) -> None:
    reading = read(payload)
    assert reading.text.isprintable()
    assert len(reading.text) <= MOST_TEXT


@given(st.floats())
def test_a_number_can_be_drawn_or_is_none(value: float) -> None:
    reading = read(b'{"value":' + repr(value).encode() + b"}")
    assert reading.number is None or abs(reading.number) <= 1e300
