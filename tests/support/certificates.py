"""Certificates made for a test: an authority, and what it issues, in PEM and PKCS12.

authority = Authority("test CA")
broker = authority.issue("broker", hosts=["127.0.0.1"])
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate, its key, and who issued it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        """The certificate alone."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def chain(self) -> str:
        """The certificate and its issuer's, in PEM."""
        return self.certificate_pem + self.authority.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        """Return the key in PEM (PKCS #8), encrypted if there is a password."""
        how: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            how = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how
        ).decode()

    def write_pem(self, path: Path, password: str = "") -> Path:
        """Key and chain in one file."""
        path.write_text(self.key_pem(password) + self.chain)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Key and chain, as keytool makes a key store."""
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"key",
                self.key,
                self.certificate,
                [self.authority],
                serialization.BestAvailableEncryption(password.encode()),
            )
        )
        return path

    def server_context(self, folder: Path, trusted: str = "") -> ssl.SSLContext:
        """For a server; with `trusted` (PEM) it asks clients for a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.write_pem(folder / "server.pem"))
        if trusted:
            context.load_verify_locations(cadata=trusted)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class Authority:
    """Issues certificates."""

    def __init__(self, name: str, *, days: int = 30) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = _signed(name, self._key, None, self._key, [], 0, days)

    @property
    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, name: str, hosts: Sequence[str] = (), *, days_ago: int = 0, days: int = 30) -> Issued:
        """Issue a certificate for `hosts`, names or addresses, which is valid for that many days.

        With `days_ago`, it became valid before that and expired yesterday.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        signed = _signed(name, key, self.certificate, self._key, hosts, days_ago, days)
        return Issued(signed, key, self.certificate)

    def write_pem(self, path: Path) -> Path:
        """Write a trust store in PEM."""
        path.write_text(self.pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """Write a trust store in PKCS12."""
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                None,
                None,
                None,
                [self.certificate],
                serialization.BestAvailableEncryption(password.encode()),
            )
        )
        return path


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuers_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    days_ago: int,
    days: int,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = now - (days_ago + 1) * DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now - DAY if days_ago else now + days * DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuers_key, hashes.SHA256())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
