import ssl
from pathlib import Path

import pytest

from tests.support.table import table
from tui.address import Address, AddressError, parse_address


@pytest.fixture(autouse=True)
def no_password_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_PASSWORD", raising=False)


@table(
    ("url", "address"),
    [
        ("mqtt://127.0.0.1", Address("127.0.0.1", 1883)),
        ("mqtt://barn.local:1884/", Address("barn.local", 1884)),
        ("mqtt://[::1]:1884", Address("::1", 1884)),
        ("mqtt://u:p%40ss@h", Address("h", 1883, "u", "p@ss")),
        ("mqtt://u@h", Address("h", 1883, "u")),
        ("MQTT://h", Address("h", 1883)),
        ("mqtt+unix:///var/lib/a%20b/s", Address("/var/lib/a b/s", 0)),
    ],
)
def test_urls(url: str, address: Address) -> None:
    assert parse_address(url) == address


@table(
    "url",
    [
        "",
        "h",
        "h:1883",
        "http://h",
        "mqtt://",
        "mqtt://:1883",
        "mqtt://h:0",
        "mqtt://h:65536",
        "mqtt://h:port",
        "mqtt://h/topic",
        "mqtt://h?x=1",
        "mqtt://h#x",
        "mqtt://[::1",
        "mqtt://:secret@h",
        "mqtt://u:secret@h/x",
        "mqtt://u:sec/ret@h",
    ],
)
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(AddressError) as problem:
        parse_address(url)
    assert "\n" not in str(problem.value)
    assert "secret" not in str(problem.value)
    assert "ret@" not in str(problem.value)


def test_it_is_shown_without_login() -> None:
    assert str(parse_address("mqtt://u:p@[::1]:1884")) == "mqtt://[::1]:1884"
    assert str(parse_address("mqtts://u:p@h")) == "mqtts://h:8883"
    assert str(parse_address("mqtt+unix:///run/s")) == "mqtt+unix:///run/s"
    assert "hidden" not in repr(parse_address("mqtt://u:hidden@h"))


def test_tls_verifies_the_host() -> None:
    tls = parse_address("mqtts://h").tls
    assert tls is not None
    assert tls.check_hostname
    assert tls.verify_mode is ssl.CERT_REQUIRED


def test_where_the_password_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"from file\r\nsecond line\n")
    assert parse_address("mqtt://u:url@h").password == "url"
    monkeypatch.setenv("TIDEGATE_PASSWORD", "variable")
    assert parse_address("mqtt://u:url@h").password == "variable"
    assert parse_address("mqtt://h").password is None
    address = parse_address("mqtt://u:url@h", "other", file)
    assert (address.username, address.password) == ("other", "from file")


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\n", b"x" * 65_536])
def test_a_password_file_without_a_password(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(AddressError, match="password"):
        parse_address("mqtt://u@h", None, file)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="No such file"):
        parse_address("mqtt://u@h", None, tmp_path / "absent")
    with pytest.raises(AddressError, match="No such file"):
        parse_address("mqtts://h", None, None, tmp_path / "absent")
    (tmp_path / "odd").write_text("no certificate")
    with pytest.raises(AddressError, match="CA file"):
        parse_address("mqtts://h", None, None, tmp_path / "odd")


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p")
    with pytest.raises(AddressError, match="without a user name"):
        parse_address("mqtt://h", None, tmp_path / "password")
    with pytest.raises(AddressError, match="mqtts://"):
        parse_address("mqtt://h", None, None, tmp_path / "ca")
