"""Requester: sends requests at a bounded rate, and says which failures pass."""

from __future__ import annotations

import email.utils
import logging
import ssl
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

import httpx

from connect.api import ConfigError, ConnectError, RetriableError
from plugins.http.authentication import authentication
from plugins.http.config import HttpConfig
from plugins.http.secrets import shown_url, without
from plugins.http.statuses import statuses
from plugins.pacing import Pace

_EXCERPT = 300
"""Characters of a refusal that its error quotes."""
_WAIT_SECONDS_MAX = 0.5
_RETRY_AFTER_SECONDS_MAX = 3600.0
_OWN_USER_AGENT = "millstream"


class Response(NamedTuple):
    """A response of success."""

    body: bytes
    headers: httpx.Headers


class Refused(ConnectError):
    """An error for a request that the server refuses, and would refuse again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Requester:
    """A client of one API. Its `stop` may be called from another thread."""

    def __init__(self, config: HttpConfig) -> None:
        # Its lines have whole URLs, with the keys in their queries.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        self._config = config
        self._client = httpx.Client(
            auth=authentication(config),
            headers={"User-Agent": _OWN_USER_AGENT, **config.prefixed("headers.")},
            timeout=config.timeout_ms / 1000,
            verify=_verification(config),
            follow_redirects=False,  # a header with a key would go wherever the redirect leads
        )
        self._retried = statuses(config.retry_on_status)
        self._pace = Pace(config.requests_per_second)
        self._not_before = 0.0
        self._stopping = threading.Event()
        passwords = (
            config.auth_password,
            config.auth_token,
            config.auth_key,
            config.oauth2_client_secret,
        )
        self._secrets = [each.secret for each in passwords if each is not None]
        self.requests = self.failures = 0

    def may_send(self) -> bool:
        """Return True if a request may be sent now. Return False after a short wait if it may not.

        A True counts as a request under `requests.per.second`.
        """
        waiting = self._not_before - time.monotonic()
        if waiting <= 0 and self._pace.take(1):
            return True
        self._stopping.wait(min(max(waiting, self._pace.seconds_to_next()), _WAIT_SECONDS_MAX))
        return False

    def wait(self) -> None:
        """Wait until a request may be sent. Raises RetriableError if the task is stopped meanwhile."""
        while not self.may_send():
            if self._stopping.is_set():
                raise RetriableError("the task is stopped")

    def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
    ) -> Response:
        """Send a request and return its response.

        Raises RetriableError if the same request may succeed later, Refused if it will not.
        """
        self.requests += 1
        headers = {} if content_type is None else {"Content-Type": content_type}
        try:
            request = self._client.build_request(method, url, params=params, content=body, headers=headers)
            return self._response(request)
        except (httpx.TransportError, httpx.InvalidURL) as e:
            self.failures += 1
            text = without(f"{type(e).__name__} {e}", self._secrets)
            retriable = isinstance(e, httpx.TransportError) and not isinstance(e, httpx.UnsupportedProtocol)
            kind = RetriableError if retriable else ConnectError
            raise kind(f"{method} {shown_url(url)}: {text}") from None

    def stop(self) -> None:
        """End waits, and close the connections."""
        self._stopping.set()
        self._client.close()

    def _response(self, request: httpx.Request) -> Response:
        response = self._client.send(request, stream=True)
        try:
            body = self._body(request, response)
        finally:
            response.close()
        status = response.status_code
        if 200 <= status < 300:
            return Response(body, response.headers)
        self.failures += 1
        excerpt = without(body[:_EXCERPT].decode(errors="replace"), self._secrets)
        message = f"{request.method} {shown_url(str(request.url))} answered {status}: {excerpt}"
        if status in self._retried:
            self._heed(response.headers.get("Retry-After"))
            raise RetriableError(message)
        raise Refused(message, status)

    def _body(self, request: httpx.Request, response: httpx.Response) -> bytes:
        most, parts, size = self._config.response_bytes_max, [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > most:
                raise ConnectError(
                    f"{request.method} {shown_url(str(request.url))}: the response is larger than "
                    f"response.bytes.max={most}: ask for smaller pages"
                )
            parts.append(part)
        return b"".join(parts)

    def _heed(self, retry_after: str | None) -> None:
        """Send nothing before the moment that the header `Retry-After` names: seconds, or a date."""
        if retry_after is None:
            return
        try:
            seconds = float(retry_after)
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
            except ValueError:
                return
        if seconds > 0:
            self._not_before = time.monotonic() + min(seconds, _RETRY_AFTER_SECONDS_MAX)


def _verification(config: HttpConfig) -> ssl.SSLContext | bool:
    """Return how certificates are verified. Raises ConfigError if the file of certificates is not one."""
    if not config.tls_verify or config.tls_ca_file is None:
        return config.tls_verify
    try:
        return ssl.create_default_context(cafile=config.tls_ca_file)
    except OSError as e:
        raise ConfigError("tls.ca.file", config.tls_ca_file, f"cannot be used: {e}") from e
