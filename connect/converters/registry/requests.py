"""Requests to a schema registry at several URLs: failover, retries, and bounds of what comes back.

404, 409, 422 with a registry's error     the record's schema is at fault: DataError
408, 429, 5xx, no connection              the next URL, and later all again: RetriableError in the end
everything else, as 401, 403 and 302      the settings are wrong: ConnectError
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from connect.converters.registry.access import AccessConfig
from connect.errors import ConnectError, DataError, RetriableError

ANSWER_MAX = 16 << 20
"""The most bytes of an answer."""
_MESSAGE_MAX = 1000
_PART = 1 << 16
_BUSY = (408, 429)
_REFUSED = (404, 409, 422)


class _Transient(Exception):
    """A failure after which another URL, or the same one later, may answer."""


class RegistryRequests:
    """Requests to a registry. A URL that does not answer goes to the end of the row."""

    def __init__(self, config: AccessConfig, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Read the TLS stores. Raises ConfigError if they cannot be used."""
        self._urls = [_without_user(url) for url in config.schema_registry_url]
        self._headers = {
            "Content-Type": "application/vnd.schemaregistry.v1+json",
            "Accept": "application/vnd.schemaregistry.v1+json, application/json",
            **config.authorization(),
        }
        self._tls = config.tls_context()
        self._timeout = config.http_read_timeout_ms / 1000
        self._retries = config.max_retries
        self._waits = config.retries_wait_ms / 1000, config.retries_max_wait_ms / 1000
        self._pause = pause
        self._opener: Any = None

    def ask(self, what: str, path: str, body: bytes | None = None) -> Mapping[str, Any]:
        """Return the registry's answer, a JSON object; `what` begins the text of errors.

        Raises RetriableError if no URL answers, or all fail; DataError if the registry refuses the request;
        ConnectError if it refuses the user, or is no registry.
        """
        failure = ""
        first, longest = self._waits
        for tried in range(self._retries + 1):
            if tried:
                self._pause(min(first * 2 ** (tried - 1), longest))
            for url in list(self._urls):
                try:
                    return self._ask_one(what, url, path, body)
                except _Transient as e:
                    failure = str(e)
                    self._urls.append(self._urls.pop(0))
        raise RetriableError(f"{what}: {failure}")

    def _ask_one(self, what: str, url: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        import urllib.error  # here, because its import is slow, and most workers have no registry
        import urllib.request
        from http.client import HTTPException

        request = urllib.request.Request(url + path, body, self._headers)
        try:
            with self._open(request) as response:
                answer = _json(self._read(url, response))
        except urllib.error.HTTPError as e:
            with e:
                raise self._refusal(what, url, e) from None
        except (OSError, HTTPException) as e:
            reason = getattr(e, "reason", e)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ConnectError(f"{what}: the certificate of {url} is not trusted: {reason}") from None
            raise _Transient(f"{url} cannot be reached: {reason}") from None
        if not isinstance(answer, dict) or not {"id", "schema"} & answer.keys():
            raise ConnectError(f"{what}: {url} gives no answer of a schema registry: is the address right?")
        return answer

    def _open(self, request: Any) -> Any:
        """Send a request. Redirects are not followed: they would take the credentials elsewhere."""
        import urllib.request

        if self._opener is None:

            class NoRedirects(urllib.request.HTTPRedirectHandler):
                """A handler that leaves redirects as they are: errors."""

                def redirect_request(self, *args: Any, **kwargs: Any) -> None:
                    """Return no request to follow."""

            handlers: list[Any] = [NoRedirects()]
            if self._tls is not None:
                handlers.append(urllib.request.HTTPSHandler(context=self._tls))
            self._opener = urllib.request.build_opener(*handlers)
        return self._opener.open(request, timeout=self._timeout)

    def _read(self, url: str, response: Any) -> bytes:
        """Return an answer's bytes. Raises _Transient if they take too long, ConnectError for too many."""
        parts: list[bytes] = []
        size = 0
        deadline = time.monotonic() + 6 * self._timeout
        while part := response.read1(_PART):
            parts.append(part)
            size += len(part)
            if size > ANSWER_MAX:
                raise ConnectError(f"{url} answers with more than {ANSWER_MAX} bytes")
            if time.monotonic() > deadline:
                raise _Transient(f"{url} has not ended its answer after {6 * self._timeout:g} s")
        return b"".join(parts)

    def _refusal(self, what: str, url: str, error: Any) -> Exception:
        """Return the error for a status that is no success."""
        try:
            answer = _json(self._read(url, error))
        except (OSError, ConnectError, _Transient):
            answer = None
        message = answer.get("message") if isinstance(answer, dict) else None
        words = f"{url} answers {error.code} {error.reason}"
        if message is not None:
            words += f" ({str(message)[:_MESSAGE_MAX]})"
        if error.code >= 500 or error.code in _BUSY:
            return _Transient(words)
        if error.code in _REFUSED and message is not None:
            return DataError(f"{what}: {words}")
        return ConnectError(f"{what}: {words}")


def _without_user(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _json(data: bytes) -> Any:
    """Return the value, None if the bytes are no JSON or are nested too deeply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
