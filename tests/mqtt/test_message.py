import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt import message as message_module
from gateway.mqtt.message import JSON_BYTES, NOT_JSON, STRING_CODE_POINTS, Message


@pytest.mark.parametrize("payload", [b'{"a":1}', b"\x80", b"[", b"null", b"x" * (JSON_BYTES + 1)])
def test_a_payload_is_read_at_most_once(payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    for name in ("decode_payload", "parse_json"):
        real = getattr(message_module, name)

        def counting(argument: object, name: str = name, real: object = real) -> object:
            reads.append(name)
            assert callable(real)
            return real(argument)

        monkeypatch.setattr(message_module, name, counting)
    message = Message("t", payload)
    assert reads == []
    first = message.text(), message.json(), message.payload_is_json()
    assert (message.text(), message.json(), message.payload_is_json()) == first
    assert len(reads) == len(set(reads))


@given(st.binary())
def test_text_is_the_payload_or_nothing(payload: bytes) -> None:
    text = Message("t", payload).text()
    assert text is None or text.encode() == payload


def test_the_string_limit_is_no_limit_for_json() -> None:
    payload = json.dumps({"v": 1, "p": "y" * STRING_CODE_POINTS}).encode()
    message = Message("t", payload)
    assert message.text() is None
    assert message.json()["v"] == 1
    assert Message("t", b"x" * STRING_CODE_POINTS).text() == "x" * STRING_CODE_POINTS


@pytest.mark.parametrize(
    ("payload", "is_json"),
    [
        (b"null", True),
        (b"", False),
        (b"{}", True),
        (b'"' + b"x" * (JSON_BYTES - 2) + b'"', True),
        (b'"' + b"x" * (JSON_BYTES - 1) + b'"', False),
    ],
)
def test_payload_is_json(payload: bytes, is_json: bool) -> None:
    message = Message("t", payload)
    assert message.payload_is_json() is is_json
    assert (message.json() is NOT_JSON) is not is_json


def test_levels_and_user_properties() -> None:
    message = Message("/a//b/", user_properties=(("k", "1"), ("l", "2"), ("k", "3")))
    assert message.levels() == ["", "a", "", "b", ""]
    assert message.levels() is message.levels()
    assert message.user() == {"k": "3", "l": "2"}
    assert message.user() is message.user()


@pytest.mark.parametrize(("data", "text"), [(None, None), (b"c-1", "c-1"), (b"\xff", None)])
def test_correlation_text(data: bytes | None, text: str | None) -> None:
    assert Message("t", correlation_data=data).correlation_text() == text
