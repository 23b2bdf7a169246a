"""The `ssl.SSLContext` of a client's connections, or of a server's, made from TLS settings."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator

from kafka_client.errors import ConfigError
from kafka_client.security.key_store import read_store
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import TlsSettings


def make_context(settings: TlsSettings) -> ssl.SSLContext:
    """Read the stores and return the context; raises ConfigError for unusable settings. Blocks for the
    files.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_hostname
    context.minimum_version = settings.minimum_version
    context.maximum_version = settings.maximum_version
    # Java trusts every certificate in a truststore, even if it is no self-signed authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _trust(context, settings)
    show_certificate(context, settings)
    return context


def make_server_context(settings: TlsSettings, client_auth: ssl.VerifyMode) -> ssl.SSLContext:
    """Read the stores and return a server's context; `client_auth` says if clients show a certificate.

    Raises ConfigError for unusable settings, and if there is no key store. Blocks for the files.
    """
    if settings.keystore is None and settings.keystore_key is None:
        raise ConfigError(
            "ssl.keystore.location", "", "is needed for https: the server's key and certificate"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = settings.minimum_version
    context.maximum_version = settings.maximum_version
    show_certificate(context, settings)
    if client_auth is not ssl.CERT_NONE:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(context, settings)
        context.verify_mode = client_auth
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.truststore is not None:
        key, shown = "ssl.truststore.location", str(settings.truststore.location)
        pem = read_store(settings.truststore, "truststore").certificates
    elif settings.truststore_certificates:
        key, shown, pem = "ssl.truststore.certificates", HIDDEN, settings.truststore_certificates
    else:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise ConfigError(key, shown, "has a certificate that cannot be read") from None


def show_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Have new connections show the certificate in the settings. Blocks. Raises ConfigError."""
    password = settings.key_password
    if settings.keystore is not None:
        key, shown = "ssl.keystore.location", str(settings.keystore.location)
        stored = read_store(settings.keystore, "keystore")
        assert stored.key is not None
        pem = stored.key.reveal()
        if stored.certificates != pem:
            # From PKCS12: the key in it is already decrypted.
            pem, password = pem + stored.certificates, None
    elif settings.keystore_key is not None:
        key, shown = "ssl.keystore.key", HIDDEN
        pem = settings.keystore_key.reveal().strip() + "\n" + settings.keystore_certificate_chain
    else:
        return
    try:
        _load(context, pem, password)
    except (ssl.SSLError, ValueError):
        raise _unusable(key, shown, pem, password) from None


def _unusable(key: str, shown: str, pem: str, password: Secret | None) -> ConfigError:
    if "ENCRYPTED" in pem:
        if password is None:
            return ConfigError("ssl.key.password", "", "is needed: the private key is encrypted")
        return ConfigError("ssl.key.password", HIDDEN, "does not decrypt the private key")
    return ConfigError(key, shown, "must hold a private key and the chain of its certificate, in PEM")


def _load(context: ssl.SSLContext, pem: str, password: Secret | None) -> None:
    # Without a password, Python would prompt for one at the terminal.
    text = "" if password is None else password.reveal()
    with _file_of(pem) as path:
        context.load_cert_chain(path, password=lambda: text)


@contextlib.contextmanager
def _file_of(pem: str) -> Iterator[str]:
    """Yield the path of a file with the key, since `ssl` only reads files.

    The file is in memory if the system can do that, else it is readable only by this user.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            with open(number, "w", closefd=False) as file:
                file.write(pem)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    number, path = tempfile.mkstemp()
    try:
        with open(number, "w") as file:
            file.write(pem)
        yield path
    finally:
        os.unlink(path)
