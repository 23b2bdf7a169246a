"""A request to a web server by urllib, bounded in time and size, and never redirected.

HttpFailed
├── HttpStatus      the server answers with an error, or with a redirect
├── Untrusted       its certificate is not trusted
└── Unreachable     it does not answer, or not in time: worth another try
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_client.security.context import make_context
from kafka_client.security.tls import TlsSettings

if TYPE_CHECKING:
    import urllib.request

TIMEOUT_SECONDS: Final = 10.0
"""Longest time of one request, and of each wait for the server."""
ANSWER_BYTES_MAX: Final = 1_048_576
_PIECE_BYTES: Final = 65_536


class HttpFailed(Exception):
    """A request without an answer that can be used; its text says why."""


class HttpStatus(HttpFailed):
    """An answer with another status than 200."""

    def __init__(self, code: int, body: bytes) -> None:
        super().__init__(f"it answers HTTP {code}")
        self.code = code
        self.body = body


class Untrusted(HttpFailed):
    """A server whose certificate is not trusted."""


class Unreachable(HttpFailed):
    """A server that does not answer, or not in time."""


def request(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    tls: TlsSettings | None = None,
) -> bytes:
    """Return the answer's body, cut after `ANSWER_BYTES_MAX` bytes. Blocks.

    POSTs `body` if it is given, else GETs. `tls` has the trust settings, if the system's authorities do not
    certify the server. Raises HttpFailed, and ConfigError for stores that cannot be used.
    """
    # Imported on use: HTTP is slow to import, and most clients use no endpoint.
    import http.client
    import urllib.error
    import urllib.request

    outgoing = urllib.request.Request(url, body, dict(headers or {}))
    context = ssl.create_default_context() if tls is None else make_context(tls)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _no_redirect())
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        with opener.open(outgoing, timeout=TIMEOUT_SECONDS) as answer:
            return _read(answer, deadline)
    except urllib.error.HTTPError as error:
        with error:
            try:
                text = _read(error, deadline)
            except (OSError, http.client.HTTPException):
                text = b""
            raise HttpStatus(error.code, text) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise Untrusted(f"its certificate is not trusted: {error.reason.verify_message}") from None
        raise Unreachable(str(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(str(error) or type(error).__name__) from None


def _read(answer: Any, deadline: float) -> bytes:
    """Return the body. Raises TimeoutError if it comes too slowly."""
    pieces: list[bytes] = []
    size = 0
    while size < ANSWER_BYTES_MAX and (piece := answer.read1(min(_PIECE_BYTES, ANSWER_BYTES_MAX - size))):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > deadline:
            raise TimeoutError(f"its answer takes more than {TIMEOUT_SECONDS:.0f} s")
    return b"".join(pieces)


def _no_redirect() -> urllib.request.HTTPRedirectHandler:
    """Return a handler that follows no redirect: it would send what is secret to another server."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: Any) -> None:
            return None

    return NoRedirect()
