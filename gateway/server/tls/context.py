"""TLS of a listener: versions, ciphers and certificates (RFC 9325)."""

import ssl
from pathlib import Path
from typing import Any

from gateway.config.errors import ConfigurationError
from gateway.config.named_file import open_named
from gateway.settings.listener import ListenerSettings

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""TLS 1.2 only with forward secrecy and authenticated encryption; TLS 1.3 has nothing else."""

OPTIONS = (
    ssl.OP_NO_COMPRESSION
    | ssl.OP_NO_RENEGOTIATION
    | ssl.OP_CIPHER_SERVER_PREFERENCE
    | ssl.OP_SINGLE_ECDH_USE
)

FILES = ("tls_certificate", "tls_key", "client_ca")


def server_context(settings: ListenerSettings, file: str, index: int) -> ssl.SSLContext | None:
    """Return the TLS context of the listener at this index of the configuration file, if any.

    Raises ConfigurationError if a file cannot be read or is invalid, or the key does not fit the
    certificate.
    """
    if settings.tls_certificate is None:
        return None
    try:
        for key in FILES:
            _check_readable(settings, key)
        return _context(settings, settings.tls_certificate)
    except _FileError as error:
        key = f"listener[{index}].{error.key}"
        raise ConfigurationError(
            file, key, getattr(settings, error.key), error.allowed
        ) from error.__cause__


def common_name(certificate: dict[str, Any] | None) -> str | None:
    """Return the common name of a certificate as the ssl module represents it.

    None if it has not exactly one, or one with control characters: such a name is ambiguous.
    """
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    if len(names) != 1 or not names[0].isprintable():
        return None
    return str(names[0]) or None


class _FileError(Exception):
    def __init__(self, key: str, allowed: str) -> None:
        super().__init__(key)
        self.key = key
        self.allowed = allowed


def _check_readable(settings: ListenerSettings, key: str) -> None:
    path = getattr(settings, key)
    if path is None:
        return
    try:
        with open_named(Path(path)):
            pass
    except OSError as error:
        raise _FileError(key, f"a file that can be read ({error.strerror})") from error


def _context(settings: ListenerSettings, certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= OPTIONS
    context.set_ciphers(CIPHERS)
    _check_certificates(certificate, "tls_certificate")
    try:
        context.load_cert_chain(certificate, settings.tls_key, _no_passphrase)
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            allowed = "the private key that belongs to tls_certificate"
            raise _FileError("tls_key", allowed) from error
        allowed = f"a private key in PEM, without a passphrase ({error})"
        raise _FileError("tls_key", allowed) from error
    if settings.client_ca is not None:
        _check_certificates(settings.client_ca, "client_ca")
        context.load_verify_locations(settings.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_certificates(path: str, key: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(path)
    except ssl.SSLError as error:
        raise _FileError(key, "certificates in PEM") from error


def _no_passphrase() -> str:
    """Fail instead of asking at a terminal that nobody uses."""
    raise ValueError("it has one")
