import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.telemetry.certificates import certificate_metrics, ends

DAY = dt.timedelta(days=1)
NOW = dt.datetime(2026, 11, 28, 12, 30, 15, tzinfo=dt.UTC)


def write(file: Path, end: dt.datetime, more: str = "") -> Path:
    """Write a certificate with a name so long that lengths take two bytes."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "barn")] * 20)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1 << 120)
        .not_valid_before(NOW - DAY)
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    file.write_text(more + made.public_bytes(serialization.Encoding.PEM).decode())
    return file


@pytest.mark.parametrize("end", [NOW, NOW + 30 * DAY, dt.datetime(2051, 1, 2, tzinfo=dt.UTC)])
def test_the_end_of_a_certificate(tmp_path: Path, end: dt.datetime) -> None:
    """From 2050 on it is written with four digits of the year (RFC 5280, section 4.1.2.5)."""
    assert ends(write(tmp_path / "barn.pem", end)) == end.timestamp()


def test_the_first_of_a_file_counts(tmp_path: Path) -> None:
    other = write(tmp_path / "other.pem", NOW + DAY).read_text()
    file = write(tmp_path / "barn.pem", NOW)
    file.write_text(f"# ours\n{file.read_text()}{other}")
    assert ends(file) == NOW.timestamp()


def test_what_is_no_certificate_has_no_end(tmp_path: Path) -> None:
    file = write(tmp_path / "barn.pem", NOW)
    whole = file.read_text()
    assert ends(tmp_path / "nowhere") is None
    for text in ("", whole[:200], whole.replace("M", "!"), whole.replace("BEGIN", "BEGUN")):
        file.write_text(text)
        assert ends(file) is None, text
    lines = whole.splitlines()
    for kept in range(1, len(lines) - 1):  # and however much of it is missing
        file.write_text("\n".join([*lines[:kept], lines[-1]]))
        assert ends(file) in (None, NOW.timestamp())


def test_each_file_has_a_sample(tmp_path: Path) -> None:
    file = write(tmp_path / "barn.pem", NOW)
    text = certificate_metrics([file, tmp_path / "nowhere"])
    sample = f'tidegate_certificate_not_after_seconds{{file="{file}"}} {NOW.timestamp()}\n'
    assert text.endswith(f"gauge\n{sample}")
    assert text.count("\n") == 3
    assert certificate_metrics([]) == ""
