import contextlib
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.http_server import Request, RequestError, parse
from tests.support.table import table

HOST = b"Host: barn:9234\r\n"


@table(
    ("line", "expected"),
    [
        (b"GET /metrics HTTP/1.1", Request("GET", "/metrics", "barn:9234")),
        (b"HEAD /healthz?verbose HTTP/1.1", Request("HEAD", "/healthz", "barn:9234")),
        (b"GET http://other:1/metrics?a=/b HTTP/1.1", Request("GET", "/metrics", "other:1")),
        (b"GET http://barn HTTP/1.1", Request("GET", "/", "barn")),
        (b"OPTIONS * HTTP/1.1", Request("OPTIONS", "*", "barn:9234")),
        (b"CONNECT barn:80 HTTP/1.1", Request("CONNECT", "barn:80", "barn:9234")),
        (b"get /metrics HTTP/1.9", Request("get", "/metrics", "barn:9234")),
    ],
)
def test_what_is_asked_for(line: bytes, expected: Request) -> None:
    assert parse(line + b"\r\n" + HOST + b"Accept:\t*/*; q=\xe9\r\nEmpty:\r\n\r\n") == expected


def test_version_1_0_needs_no_host() -> None:
    assert parse(b"GET / HTTP/1.0\r\n\r\n") == Request("GET", "/", None)


@table(
    "head",
    [
        b"\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\n" + HOST,
        b"GET /\r\n" + HOST,
        b"GET  / HTTP/1.1\r\n" + HOST,
        b"GET / HTTP/1.1 \r\n" + HOST,
        b"GET /a b HTTP/1.1\r\n" + HOST,
        b"GET /\xe9 HTTP/1.1\r\n" + HOST,
        b"GET / http/1.1\r\n" + HOST,
        b"G(T / HTTP/1.1\r\n" + HOST,
        b"GET / HTTP/1.1\n" + HOST,
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + HOST,
        b"GET / HTTP/1.0\r\n" + HOST + b"hOST: other\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"space : x\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"folded: x\r\n more\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"zero: \0\r\n",
    ],
)
def test_what_is_no_request(head: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        parse(head.removesuffix(b"\r\n\r\n") + b"\r\n")
    assert caught.value.status is HTTPStatus.BAD_REQUEST


def test_another_version() -> None:
    with pytest.raises(RequestError) as caught:
        parse(b"GET / HTTP/2.0\r\n" + HOST + b"\r\n")
    assert caught.value.status is HTTPStatus.HTTP_VERSION_NOT_SUPPORTED


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_request_or_an_error(head: bytes) -> None:
    with contextlib.suppress(RequestError):
        assert parse(head).path
