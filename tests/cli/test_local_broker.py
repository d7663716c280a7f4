import argparse
from pathlib import Path

import pytest

from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError
from tests.support.table import table


def options(url: str | None = "mqtt://127.0.0.1", **given: object) -> argparse.Namespace:
    values: dict[str, object] = dict.fromkeys(
        ("username", "password_file", "ca_file", "cert", "key")
    )
    return argparse.Namespace(url=url, **{**values, **given})


def test_what_is_not_said_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_PASSWORD", raising=False)
    assert LocalBroker.of(options()) == LocalBroker("mqtt://127.0.0.1", None, None, None)


def test_user_and_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_PASSWORD", "from the environment")
    file = tmp_path / "password"
    file.write_text("from the file\n", encoding="utf-8")
    in_url = "mqtt://anna:p%40ss@127.0.0.1"
    of_file = LocalBroker.of(options(in_url, username="bert", password_file=file))
    assert (of_file.username, of_file.password) == ("bert", "from the file")
    of_environment = LocalBroker.of(options(in_url))
    assert (of_environment.username, of_environment.password) == ("anna", "from the environment")
    monkeypatch.delenv("TIDEGATE_PASSWORD")
    of_url = LocalBroker.of(options(in_url))
    assert (of_url.username, of_url.password) == ("anna", "p@ss")


@table(
    "url",
    [
        "mqtt+unix://a/b",
        "mqtt+unix://",
        "127.0.0.1:1883",
        "http://a",
        "mqtt://",
        "mqtt://[",
        "mqtt://a:b",
        "mqtt://a:0",
    ],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(TidegateError) as raised:
        LocalBroker.of(options(url))
    assert (
        str(raised.value)
        == f"{url!r} is not mqtt://host:port, mqtts://host:port or mqtt+unix:///path"
    )


def test_a_password_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="none: No such file or directory"):
        LocalBroker.of(options(password_file=tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(TidegateError, match="binary: not UTF-8"):
        LocalBroker.of(options(password_file=tmp_path / "binary"))


@pytest.mark.parametrize("text", [None, "not a certificate"])
def test_a_ca_file_that_is_none(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TidegateError, match=r"ca\.pem: ."):
        LocalBroker.of(options("mqtts://127.0.0.1", ca_file=path)).connect()


def test_nobody_at_home() -> None:
    with pytest.raises(TidegateError, match=r"^no gateway at mqtt://127\.0\.0\.1:1: "):
        LocalBroker.of(options("mqtt://127.0.0.1:1")).connect()


def test_nobody_at_the_socket(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=r"no gateway at mqtt\+unix:///.*/s: "):
        LocalBroker.of(options(f"mqtt+unix://{tmp_path}/s")).connect()
