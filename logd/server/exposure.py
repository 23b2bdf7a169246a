"""The warning about listeners that serve other machines without knowing who asks."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_client.http.address import is_loopback

if TYPE_CHECKING:
    from logd.config.listeners import Endpoint
    from logd.security.listener_security import ListenerSecurity

log = logging.getLogger("logd.server")


def warn_of_exposure(listeners: Iterable[tuple[Endpoint, ListenerSecurity | None]]) -> None:
    """Log one warning that names the listeners which other machines reach without authentication."""
    exposed = [
        f"{endpoint.listener}://{endpoint}"
        for endpoint, security in listeners
        if not is_loopback(endpoint.host) and not _authenticates(security)
    ]
    if exposed:
        log.warning(
            "%s: no authentication, so anyone who reaches it may read, write and delete everything. Listen "
            "on a loopback address, or use SASL, or TLS with ssl.client.auth=required",
            ", ".join(exposed),
        )


def _authenticates(security: ListenerSecurity | None) -> bool:
    if security is None:
        return False
    has_certificates = security.tls is not None and security.tls.verify_mode is ssl.CERT_REQUIRED
    return has_certificates or (bool(security.mechanisms) and not security.takes_unsigned_tokens)
