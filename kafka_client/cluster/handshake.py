"""Texts for TLS errors that name the remedy, and hints for errors whose cause can only be guessed."""

from __future__ import annotations

import ssl

from kafka_client.errors import ConnectionClosed, MillstreamError, TlsFailed

IS_TLS = "it answers with a TLS alert: the listener speaks TLS; set security.protocol to SSL or SASL_SSL"
ADVICE_TLS = (
    ", before it answered anything (if the listener speaks TLS, set security.protocol to SSL or SASL_SSL)"
)
ADVICE_SASL = (
    ", before it answered anything but ApiVersions (if the listener asks for SASL, set security.protocol to "
    "SASL_SSL or SASL_PLAINTEXT)"
)
_NO_TLS = "the listener speaks no TLS; set security.protocol to PLAINTEXT or SASL_PLAINTEXT"

_EXPIRED = 10
_NOT_YET_VALID = 9
_UNKNOWN_ISSUER = (2, 18, 19, 20, 21)
_WRONG_NAME = (62, 64)
"""Codes of X509_verify_cert."""

_ALERTS = {
    "CERTIFICATE_REQUIRED": "it asks for a certificate of ours: set ssl.keystore.location",
    "HANDSHAKE_FAILURE": "it agrees to no cipher or version of ours, or asks for a certificate of ours "
    "(ssl.keystore.location)",
    "BAD_CERTIFICATE": "it asks for a certificate of ours, or takes it for a bad one (ssl.keystore.location)",
    "CERTIFICATE_EXPIRED": "it says that our certificate has expired (ssl.keystore.location)",
    "CERTIFICATE_UNKNOWN": "it does not trust our certificate (ssl.keystore.location)",
    "UNKNOWN_CA": "it does not know who issued our certificate (ssl.keystore.location)",
    "PROTOCOL_VERSION": "it speaks no TLS version of ours (ssl.enabled.protocols)",
}


def is_tls(data: bytes | bytearray, pos: int) -> bool:
    """Return True if a TLS alert starts at `pos`: record type 21, major version 3."""
    return data[pos] == 0x15 and data[pos + 1] == 3


def tls_error(error: OSError, broker: str) -> MillstreamError | None:
    """Return the error for an `ssl` error, or for a connection lost during the handshake; None for others."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(_distrusted(error), broker=broker)
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError | BrokenPipeError):
        return ConnectionClosed(f"{broker} closed the connection in the TLS handshake (perhaps {_NO_TLS})")
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or str(error)
    if reason in ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"):
        return TlsFailed(_NO_TLS, broker=broker)
    for alert, text in _ALERTS.items():
        if f"ALERT_{alert}" in reason:
            return TlsFailed(text, broker=broker)
    return TlsFailed(reason.replace("_", " ").lower(), broker=broker)


def _distrusted(error: ssl.SSLCertVerificationError) -> str:
    code, text = error.verify_code, error.verify_message
    if code == _EXPIRED:
        return "the broker's certificate has expired"
    if code == _NOT_YET_VALID:
        return "the broker's certificate is not valid yet"
    if code in _WRONG_NAME or "Hostname mismatch" in text or "IP address mismatch" in text:
        return (
            f"the broker's certificate is for another host: {text} (connect by a name it has; "
            "ssl.endpoint.identification.algorithm= turns the check off)"
        )
    if code in _UNKNOWN_ISSUER:
        return (
            f"the broker's certificate is not trusted: {text} (ssl.truststore.location must have its issuer)"
        )
    return f"the broker's certificate is not trusted: {text}"
