"""TLS settings by Kafka's `ssl.*` keys. `key_store` reads the files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import Secret

StoreType = Literal["PEM", "PKCS12", "JKS"]
STORE_TYPES = ("PEM", "PKCS12", "JKS")
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""TLS versions by name. Older ones are not offered: RFC 8996 deprecates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A file of certificates, with a key in a key store."""

    location: Path
    type: StoreType
    """The type of the file. JKS, Kafka's default, includes PKCS12 files, as in Java."""
    password: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The trusted certificates, and the client's own. Without a truststore the system's authorities are
    trusted.
    """

    truststore: Store | None = None
    truststore_certificates: str = ""
    """Trusted certificates in PEM, instead of a truststore."""
    keystore: Store | None = None
    keystore_key: Secret | None = None
    """The key in PEM (PKCS #8), with `keystore_certificate_chain` instead of a keystore."""
    keystore_certificate_chain: str = ""
    key_password: Secret | None = None
    """The password of the key in a PEM file or text."""
    check_hostname: bool = True
    """True if the certificate must name the host: `ssl.endpoint.identification.algorithm` is `https`."""
    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    maximum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3


def parse_tls(keys: SecurityKeys) -> TlsSettings:
    """Return the settings of the `ssl.*` keys; files are not opened yet.

    Raises ConfigError for the first key that cannot be used.
    """
    identification = keys.text("ssl.endpoint.identification.algorithm", "https")
    if identification.lower() not in ("https", ""):
        raise keys.wrong("ssl.endpoint.identification.algorithm", "https, or empty for no check of the name")
    for one, other in (
        ("ssl.truststore.certificates", "ssl.truststore.location"),
        ("ssl.keystore.key", "ssl.keystore.location"),
        ("ssl.keystore.certificate.chain", "ssl.keystore.location"),
    ):
        if keys.has(one) and keys.has(other):
            raise keys.wrong(other, f"leave it out, or leave out {one}")
    if keys.has("ssl.keystore.key") != keys.has("ssl.keystore.certificate.chain"):
        missing = "certificate.chain" if keys.has("ssl.keystore.key") else "key"
        raise keys.wrong(f"ssl.keystore.{missing}", "is needed: key and certificate chain go together")
    minimum, maximum = _versions(keys)
    return TlsSettings(
        truststore=_store(keys, "truststore"),
        truststore_certificates=_pem(keys, "ssl.truststore.certificates"),
        keystore=_store(keys, "keystore"),
        keystore_key=keys.secret("ssl.keystore.key"),
        keystore_certificate_chain=_pem(keys, "ssl.keystore.certificate.chain"),
        key_password=keys.secret("ssl.key.password"),
        check_hostname=bool(identification),
        minimum_version=minimum,
        maximum_version=maximum,
    )


def _store(keys: SecurityKeys, which: str) -> Store | None:
    location, type_, password = (f"ssl.{which}.{name}" for name in ("location", "type", "password"))
    chosen = keys.choice(type_, STORE_TYPES, "JKS")
    if not keys.has(location):
        if keys.has(password) and chosen != "PEM":
            raise keys.wrong(location, f"is needed, as {password} is set")
        return None
    if chosen == "PEM" and keys.has(password):
        remedy = "leave it out: a PEM file has no password"
        if which == "keystore":
            remedy += "; ssl.key.password is the key's"
        raise keys.wrong(password, remedy)
    path = Path(keys.text(location))
    return Store(location=path, type=cast(StoreType, chosen), password=keys.secret(password))


def _pem(keys: SecurityKeys, key: str) -> str:
    text = keys.text(key)
    if text and "-----BEGIN CERTIFICATE-----" not in text:
        raise keys.wrong(key, "certificates in PEM")
    return text


def _versions(keys: SecurityKeys) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    allowed = " and ".join(VERSIONS) + ", each or both; older versions are not secure"
    key = "ssl.enabled.protocols"
    names = [name.strip() for name in keys.text(key, ",".join(VERSIONS)).split(",") if name.strip()]
    if not names or any(name not in VERSIONS for name in names):
        raise keys.wrong(key, allowed)
    highest = keys.text("ssl.protocol") or "TLS"
    if highest not in ("TLS", *VERSIONS):
        raise keys.wrong("ssl.protocol", "TLS, TLSv1.2 or TLSv1.3; older versions are not secure")
    versions = sorted(VERSIONS[name] for name in names if VERSIONS[name] <= VERSIONS.get(highest, 1 << 16))
    if not versions:
        raise keys.wrong("ssl.protocol", f"one that {key} has too")
    return versions[0], versions[-1]
