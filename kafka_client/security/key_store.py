"""Files of certificates and keys, PEM and PKCS12, as PEM for Python's `ssl`.

JKS is Java's own format: it is refused, with the command that converts it. A store of type JKS (Kafka's
default) may be a PKCS12 file, as with Java's own JKS type, or PEM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_client.errors import ConfigError
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import Store

_JKS_MAGIC = bytes.fromhex("feedfeed")
_JCEKS_MAGIC = bytes.fromhex("cececece")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The content of a store, in PEM."""

    certificates: str
    """The key's certificate chain first, leaf before issuers, then other certificates."""
    key: Secret | None = None


def read_store(store: Store, which: str) -> Stored:
    """Return the store's content; `which` is `truststore` or `keystore`. Raises ConfigError if it cannot
    be read.
    """
    location = f"ssl.{which}.location"
    try:
        data = store.location.read_bytes()
    except OSError as error:
        raise ConfigError(location, store.location, f"cannot be read: {error.strerror}") from None
    if data.startswith((_JKS_MAGIC, _JCEKS_MAGIC)):
        converted = store.location.with_suffix(".p12")
        raise ConfigError(
            location,
            store.location,
            "is a JKS file, which only Java reads. Convert it: keytool -importkeystore "
            f"-srckeystore {store.location} -destkeystore {converted} -deststoretype PKCS12; then set "
            f"ssl.{which}.location to {converted} and ssl.{which}.type to PKCS12",
        )
    if b"-----BEGIN " in data:
        if store.type == "PKCS12":
            raise ConfigError(f"ssl.{which}.type", store.type, f"{store.location} is a PEM file: PEM")
        return _read_pem(data, store, which)
    if store.type == "PEM":
        raise ConfigError(location, store.location, "is not in PEM; if it is PKCS12, say so in its type")
    return _read_pkcs12(data, store, which)


def _read_pem(data: bytes, store: Store, which: str) -> Stored:
    text = data.decode("utf-8", "replace")
    if which == "keystore":
        # OpenSSL reads key and chain from one file.
        return Stored(certificates=text, key=Secret(text))
    if "-----BEGIN CERTIFICATE-----" not in text and "-----BEGIN TRUSTED CERTIFICATE-----" not in text:
        raise ConfigError(f"ssl.{which}.location", store.location, "has no certificate in it")
    return Stored(certificates=text)


def _read_pkcs12(data: bytes, store: Store, which: str) -> Stored:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(
            f"ssl.{which}.location",
            store.location,
            "PKCS12 needs the package cryptography: pip install 'millstream[security]'; or use PEM",
        ) from None
    password = None if store.password is None else store.password.reveal().encode()
    try:
        content: Any = pkcs12.load_pkcs12(data, password)
    except ValueError:
        if password is None:
            raise ConfigError(f"ssl.{which}.password", "", "is needed for a PKCS12 file") from None
        raise ConfigError(
            f"ssl.{which}.password",
            HIDDEN,
            f"does not open {store.location}, or that is not a PKCS12 file",
        ) from None
    listed = [content.cert] if content.cert is not None else []
    pem = "".join(
        each.certificate.public_bytes(serialization.Encoding.PEM).decode()
        for each in (*listed, *content.additional_certs)
    )
    if not pem:
        raise ConfigError(f"ssl.{which}.location", store.location, "has no certificate in it")
    if which == "truststore":
        return Stored(certificates=pem)
    if content.key is None:
        raise ConfigError(f"ssl.{which}.location", store.location, "has no private key in it")
    key = content.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Stored(certificates=pem, key=Secret(key.decode()))
