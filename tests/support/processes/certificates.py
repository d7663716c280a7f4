"""Certificates for tests of TLS: an authority, and what it and others have signed."""

import datetime as dt
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Extensions = list[tuple[x509.ExtensionType, bool]]
"""Each with whether it is critical."""

DAY = dt.timedelta(days=1)
LOCALHOST = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
)

SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
AUTHORITY: Extensions = [(x509.BasicConstraints(ca=True, path_length=0), True), (SIGNS, True)]


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
        certificate = self._sign(self._name, self._key, AUTHORITY, 1)
        self.ca_file = str(folder / f"{name}.pem")
        Path(self.ca_file).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, *common_names: str, days: int = 1, passphrase: bytes | None = None) -> Pair:
        """Return a certificate for these common names, valid until `days` from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names]
        certificate = self._sign(x509.Name(attributes), key, [(LOCALHOST, False)], days)
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
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extensions: Extensions, days: int
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + days * DAY)
        )
        subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension, critical in [*extensions, (subject_key, False), (issuer_key, False)]:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self._key, hashes.SHA256())
