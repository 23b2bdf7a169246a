"""`HttpClient`: requests to an HTTP server from a thread, with bounds on their time and on the answer's size.

It blocks. In an event loop it is called in a thread.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

ANSWER_MAX = 64 * 1024 * 1024
"""The most bytes of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Values by lower-case names; of several values of a name the last."""
    body: bytes


class HttpClient:
    """A client whose requests have a connection each. `tls` is for `https` addresses."""

    def __init__(self, *, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._timeout = timeout
        self._tls = tls

    def request(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return the answer.

        Raises OSError if the server cannot be reached or does not answer in time, HTTPException if its answer
        is not HTTP or too large, and ValueError if `url` is not an `http` or `https` address.
        """
        parts = urlsplit(url)
        connection = self._connection(parts.scheme.lower(), parts.hostname or "", parts.port, url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, target, body, dict(headers or {}))
            response = connection.getresponse()
            content = response.read(ANSWER_MAX + 1)
        finally:
            connection.close()
        if len(content) > ANSWER_MAX:
            raise http.client.HTTPException(f"the answer of {url} is larger than {ANSWER_MAX} bytes")
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(status=response.status, headers=named, body=content)

    def _connection(self, scheme: str, host: str, port: int | None, url: str) -> http.client.HTTPConnection:
        if scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        if scheme != "http" or not host:
            raise ValueError(f"{url!r} is no address of an HTTP server: write http://host:port")
        return http.client.HTTPConnection(host, port, timeout=self._timeout)
