"""The expiry of the configured certificates."""

import binascii
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from gateway.telemetry.figure import Figure, Kind
from gateway.telemetry.metrics import Reading, family

NOT_AFTER = Figure(
    "tidegate/certificate/not_after",
    Kind.GAUGE,
    "When the certificate of a file ends, in seconds since 1970.",
    "tidegate_certificate_not_after_seconds",
)

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
UTC_TIME, CONTEXT_0 = 0x17, 0xA0
BEFORE_VALIDITY = 3
"""Parts of a TBSCertificate before its validity, after a version (RFC 5280, section 4.1)."""


def certificate_metrics(files: Iterable[Path]) -> str:
    """Return the end of each file's certificate in Prometheus' text format."""
    found: list[Reading] = [
        ({"file": str(file)}, end) for file in files if (end := ends(file)) is not None
    ]
    return "".join(f"{line}\n" for line in family(NOT_AFTER, found))


def ends(file: Path) -> float | None:
    """Return when the first certificate of a PEM file expires, None if it cannot be read.

    OpenSSL would have to be loaded for it, which a gateway without TLS has not done.
    """
    try:
        text = file.read_text(encoding="ascii")
        encoded = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
        return _not_after(binascii.a2b_base64(encoded)).timestamp()
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _not_after(certificate: bytes) -> datetime:
    """Return the end of a certificate's validity."""
    ((_, whole),) = _parts(certificate)
    _, signed = next(_parts(whole))
    parts = _parts(signed)
    tag, _ = next(parts)
    for _ in range(BEFORE_VALIDITY if tag == CONTEXT_0 else BEFORE_VALIDITY - 1):
        next(parts)
    _, validity = next(parts)
    _, (tag, end) = _parts(validity)
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(end.decode("ascii"), form).replace(tzinfo=UTC)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each part of DER (X.690)."""
    while data:
        tag, size, start = data[0], data[1], 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[2:start])
        if start + size > len(data):
            raise ValueError("it ends in the middle")
        yield tag, data[start : start + size]
        data = data[start + size :]
