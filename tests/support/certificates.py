"""Certificates for tests of TLS: an authority, and what it and others have signed."""

import datetime as dt
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)
LOCALHOST = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Files of a certificate and its key."""

    certificate: str
    key: str


class Authority:
    """Signs certificates and keeps them, with their keys, in `folder`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        basic = x509.BasicConstraints(ca=True, path_length=0)
        certificate = self._sign(self._name, self._key, basic, 1)
        self.ca_file = str(folder / f"{name}.pem")
        Path(self.ca_file).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, *common_names: str, days: int = 1, passphrase: bytes | None = None) -> Pair:
        """Return a certificate for these common names, valid until `days` from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names]
        certificate = self._sign(x509.Name(attributes), key, LOCALHOST, days)
        path = self._folder / f"{certificate.serial_number}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        encryption = (
            serialization.NoEncryption()
            if passphrase is None
            else serialization.BestAvailableEncryption(passphrase)
        )
        key_path = path.with_suffix(".key")
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        return Pair(str(path), str(key_path))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extension: x509.ExtensionType,
        days: int,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )
