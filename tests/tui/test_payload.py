from tests.support.table import table
from tui.payload import MOST_PARSED, as_number, as_object, as_text, seconds_of, text_of


@table(
    ("payload", "count"),
    [
        (b"0", 0),
        (b"4912", 4_912),
        (b"", None),
        (b"-1", -1),
        (b"1.5", 1.5),
        (b" 1", None),
        ("٣".encode(), None),
        (b"9" * 20, None),
    ],
)
def test_count(payload: bytes, count: float | None) -> None:
    assert as_number(payload) == count


@table(
    ("payload", "document"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[1]", None),
        (b"1", None),
        (b"", None),
        (b"\xff\xfe{", None),
        (b"[" * 5_000, None),
        (b'{"a":' * 1_600, None),
        (b'{"a": "' + b"x" * MOST_PARSED + b'"}', None),
        (b'{"a": ' + b"9" * 5_000 + b"}", None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_object(payload: bytes, document: dict[str, object] | None) -> None:
    assert as_object(payload) == document


def test_text_replaces_what_is_not_utf_8() -> None:
    assert as_text(b"a\xffb\x00", 10) == "a\ufffdb·"


def test_text_of_a_long_payload_is_cut() -> None:
    assert as_text("ä".encode() * 100, 5) == "ääää…"


def test_fields() -> None:
    document: dict[str, object] = {"text": "a\x1bb", "number": 5, "raised": 1_763_740_000_500}
    assert text_of(document, "text", 10) == "a·b"
    assert text_of(document, "number", 10) == ""
    assert text_of(document, "absent", 10) == ""
    assert seconds_of(document, "raised") == 1_763_740_000.5


@table("time", [True, "5", None, 0, -1, 1e300, float("nan"), float("inf")])
def test_a_time_that_cannot_be_is_none(time: object) -> None:
    assert seconds_of({"time": time}, "time") is None
