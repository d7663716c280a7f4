"""The TLS context of a listener: which files it takes, and what it offers."""

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigurationError
from gateway.server.tls.context import common_name, server_context
from gateway.settings.listener import ListenerSettings
from tests.support.processes.certificates import Authority, Pair
from tests.support.table import table


@pytest.fixture
def settings(authority: Authority, server_pair: Pair) -> ListenerSettings:
    return ListenerSettings(
        tls_certificate=server_pair.certificate,
        tls_key=server_pair.key,
        client_ca=authority.ca_file,
    )


def test_a_listener_without_a_certificate_has_no_tls() -> None:
    assert server_context(ListenerSettings(), "file", 0) is None


def test_what_is_offered_is_what_a_scanner_calls_good(settings: ListenerSettings) -> None:
    context = server_context(settings, "file", 0)
    assert context is not None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.MAXIMUM_SUPPORTED
    wanted = ("OP_NO_COMPRESSION", "OP_NO_RENEGOTIATION", "OP_CIPHER_SERVER_PREFERENCE")
    for option in wanted:
        assert getattr(ssl, option) in context.options
    for cipher in context.get_ciphers():
        assert cipher["name"].startswith(("ECDHE-", "TLS_"))
        assert cipher["aead"]


def test_client_certificates_are_asked_for_only_with_a_client_ca(
    settings: ListenerSettings,
) -> None:
    context = server_context(settings, "file", 0)
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    context = server_context(replace(settings, client_ca=None), "file", 0)
    assert context is not None
    assert context.verify_mode == ssl.CERT_NONE


def test_the_key_may_stand_in_the_certificate_s_file(
    settings: ListenerSettings, server_pair: Pair, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(
        Path(server_pair.certificate).read_bytes() + Path(server_pair.key).read_bytes()
    )
    assert server_context(replace(settings, tls_certificate=str(both), tls_key=None), "file", 0)


@pytest.mark.parametrize(
    ("key", "what", "allowed"),
    [
        ("tls_certificate", "missing", "a file that can be read (No such file or directory)"),
        ("tls_key", "missing", "a file that can be read (No such file or directory)"),
        ("client_ca", "missing", "a file that can be read (No such file or directory)"),
        ("tls_certificate", "folder", "a file that can be read (Is a directory)"),
        ("tls_certificate", "text", "certificates in PEM"),
        ("tls_certificate", "empty", "certificates in PEM"),
        ("client_ca", "text", "certificates in PEM"),
        ("tls_key", "text", "a private key in PEM, without a passphrase"),
        ("tls_key", "certificate", "a private key in PEM, without a passphrase"),
        ("tls_key", "other key", "the private key that belongs to tls_certificate"),
        ("tls_key", "locked key", "a private key in PEM, without a passphrase (it has one)"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    settings: ListenerSettings,
    authority: Authority,
    server_pair: Pair,
    tmp_path: Path,
    key: str,
    what: str,
    allowed: str,
) -> None:
    text, empty = tmp_path / "text", tmp_path / "empty"
    text.write_text("hello")
    empty.write_text("")
    paths = {
        "missing": str(tmp_path / "missing"),
        "folder": str(tmp_path),
        "text": str(text),
        "empty": str(empty),
        "certificate": server_pair.certificate,
        "other key": authority.issue("other").key,
        "locked key": authority.issue("locked", passphrase=b"secret").key,
    }
    settings = replace(settings, **{key: paths[what]})  # type: ignore[arg-type]  # by name
    with pytest.raises(ConfigurationError) as raised:
        server_context(settings, "gateway.toml", 3)
    assert raised.value.file == "gateway.toml"
    assert raised.value.key == f"listener[3].{key}"
    assert raised.value.value == paths[what]
    assert allowed in raised.value.allowed


def subject(*attributes: tuple[str, str]) -> dict[str, Any]:
    return {"subject": tuple((attribute,) for attribute in attributes)}


@table(
    ("certificate", "name"),
    [
        (None, None),
        ({}, None),
        (subject(("countryName", "DE")), None),
        (subject(("countryName", "DE"), ("commonName", "anna")), "anna"),
        ({"subject": ((("commonName", "anna"), ("countryName", "DE")),)}, "anna"),
        (subject(("commonName", "anna"), ("commonName", "root")), None),
        (subject(("commonName", "")), None),
        (subject(("commonName", "anna\0root")), None),
        (subject(("commonName", "Käthe")), "Käthe"),
    ],
)
def test_common_name(certificate: dict[str, Any] | None, name: str | None) -> None:
    assert common_name(certificate) == name
