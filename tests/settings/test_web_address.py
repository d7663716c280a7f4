"""What Host and Origin fields say."""

from gateway.settings.web_address import authority, origin
from tests.support.table import table

AUTHORITIES = {
    "localhost": ("localhost", 0),
    "LocalHost:9001": ("localhost", 9001),
    "barn.local.": ("barn.local", 0),
    "barn:": ("barn", 0),
    " 127.0.0.1:80\t": ("127.0.0.1", 80),
    "[::1]": ("::1", 0),
    "[::FFFF:127.0.0.1]:8": ("::ffff:127.0.0.1", 8),
    "[fe80::1%25eth0]:8": None,
    "": None,
    ".": None,
    ":80": None,
    "a b": None,
    "a:65536": None,
    "a:-1": None,
    "user@a": None,
    "a/b": None,
    "a,b": None,
    "::1": None,
    "[::1": None,
    "[]": None,
    "ä": None,
    "a" * 256: None,
}


@table("text", AUTHORITIES)
def test_an_authority(text: str) -> None:
    assert authority(text) == AUTHORITIES[text]


ORIGINS = {
    "https://Panel.example": ("https", ("panel.example", 443)),
    "http://a:80": ("http", ("a", 80)),
    "HTTP://[::1]:9001": ("http", ("::1", 9001)),
    "chrome-extension://abcdef": ("chrome-extension", ("abcdef", 0)),
    "https://a/": None,
    "https://": None,
    "a": None,
    "null": None,
    "": None,
    "https://a\nb": None,
}


@table("text", ORIGINS)
def test_an_origin(text: str) -> None:
    assert origin(text) == ORIGINS[text]
