"""TLS of the client: which servers it trusts, and the certificate that it shows."""

from __future__ import annotations

import ssl

import httpx

from connect.api import ConfigError
from plugins.http.config import HttpConfig


def tls_context(config: HttpConfig) -> ssl.SSLContext:
    """Return the context of connections. Raises ConfigError, naming the setting, if a file cannot be used."""
    context = _trusting(config)
    if config.tls_certificate_file is not None:
        password = "" if config.tls_key_password is None else config.tls_key_password.secret
        try:
            # A function, as OpenSSL would ask at the terminal for the password of an encrypted key.
            context.load_cert_chain(config.tls_certificate_file, config.tls_key_file, lambda: password)
        except OSError as e:
            raise ConfigError(
                "tls.certificate.file", config.tls_certificate_file, f"cannot be used: {e}"
            ) from e
    return context


def _trusting(config: HttpConfig) -> ssl.SSLContext:
    if not config.tls_verify or config.tls_ca_file is None:
        return httpx.create_ssl_context(verify=config.tls_verify)
    try:
        return ssl.create_default_context(cafile=config.tls_ca_file)
    except OSError as e:
        raise ConfigError("tls.ca.file", config.tls_ca_file, f"cannot be used: {e}") from e
