"""The doctor's look at the certificates of a broker's listeners."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_client.errors import ConfigError
from kafka_client.security.key_store import read_store
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.tls import TlsSettings, parse_tls
from logd.config.listeners import Endpoint
from logd.config.security_keys import keys_of_listener
from logd.security.listener_security import server_context
from millstream.commands.doctor.finding import FAILED, OK, WARNING, Finding
from millstream.commands.doctor.settings import CheckedSettings

if TYPE_CHECKING:
    from cryptography import x509

WARNING_DAYS = 30
"""A certificate that expires sooner is a warning: authorities such as Let's Encrypt renew at 30 days."""


def certificates(settings: CheckedSettings) -> Iterator[Finding]:
    """Check that each listener of TLS has a key and certificates that can be used, now and for a month."""
    now = datetime.datetime.now(datetime.UTC)
    for endpoint in settings.advertised:
        if settings.protocols[endpoint.listener] in ("SSL", "SASL_SSL"):
            yield _listener(settings, endpoint, now)


def _listener(settings: CheckedSettings, endpoint: Endpoint, now: datetime.datetime) -> Finding:
    name = f"certificate {endpoint.listener}"
    try:
        server_context(settings.properties, endpoint.listener)
        values, written = keys_of_listener(settings.properties, endpoint.listener)
        tls = parse_tls(SecurityKeys(values, "", written))
        chain, trusted = _texts(tls)
    except ConfigError as error:
        return Finding(name, FAILED, str(error), "mend the ssl.* settings or the files that they name")
    try:
        from cryptography import x509
    except ImportError:
        remedy = "pip install 'millstream[security]' to have its dates and names checked"
        return Finding(name, OK, "key and certificate fit together", remedy)
    return examined(
        name,
        endpoint.host,
        x509.load_pem_x509_certificates(chain.encode()),
        x509.load_pem_x509_certificates(trusted.encode()) if trusted else [],
        now,
    )


def _texts(tls: TlsSettings) -> tuple[str, str]:
    """Return the key's chain and the trusted certificates, both in PEM."""
    chain = tls.keystore_certificate_chain
    if tls.keystore is not None:
        chain = read_store(tls.keystore, "keystore").certificates
    trusted = tls.truststore_certificates
    if tls.truststore is not None:
        trusted = read_store(tls.truststore, "truststore").certificates
    return chain, trusted


def examined(
    name: str,
    host: str,
    chain: list[x509.Certificate],
    trusted: list[x509.Certificate],
    now: datetime.datetime,
) -> Finding:
    """Return what the dates and names of certificates tell; clients connect to `host`.

    The first one of `chain` is the broker's own.
    """
    for each in chain:
        subject = each.subject.rfc4514_string()
        if each.not_valid_before_utc > now:
            detail = f"{subject} is not valid before {each.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
            return Finding(name, FAILED, detail, "set this machine's clock, or take another certificate")
        if each.not_valid_after_utc <= now:
            detail = f"{subject} expired on {each.not_valid_after_utc:%Y-%m-%d}"
            return Finding(name, FAILED, detail, "renew it; a running broker takes changed files by itself")
    if not _names(chain[0], host):
        detail = f"{chain[0].subject.rfc4514_string()} does not name {host}"
        remedy = f"issue one for {host}, or advertise a host that it names: clients refuse other names"
        return Finding(name, WARNING, detail, remedy)
    first = min((*chain, *trusted), key=lambda each: each.not_valid_after_utc)
    days = (first.not_valid_after_utc - now).days
    until = f"{first.subject.rfc4514_string()} expires on {first.not_valid_after_utc:%Y-%m-%d}"
    if days < WARNING_DAYS:
        return Finding(name, WARNING, f"{until}, in {days} days", "renew it")
    return Finding(name, OK, until)


def _names(certificate: x509.Certificate, host: str) -> bool:
    """Return True if the certificate's alternative names have the host, by RFC 6125's rules for wildcards."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    try:
        return ipaddress.ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        pass
    host = host.lower()
    listed = [each.lower() for each in names.get_values_for_type(x509.DNSName)]
    return host in listed or f"*.{host.partition('.')[2]}" in listed
