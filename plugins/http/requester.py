"""Requester: sends requests at a bounded rate, and says which failures pass."""

from __future__ import annotations

import email.utils
import logging
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

import httpx

from connect.api import ConnectError, RetriableError
from plugins.http.authentication import ClientCredentials, authentication
from plugins.http.config import HttpConfig
from plugins.http.secrets import header_secrets, shown_url, without
from plugins.http.statuses import statuses
from plugins.http.tls import tls_context
from plugins.pacing import Pace

_EXCERPT = 300
"""Characters of a refusal that its error quotes."""
_WAIT_SECONDS_MAX = 0.5
_RETRY_AFTER_SECONDS_MAX = 3600.0
_PATIENCE_SECONDS = 5.0
"""How long `wait` waits for a moment that the server has named; then the worker waits."""
_REDIRECTS_MAX = 5
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
        self._auth = authentication(config)
        headers = config.prefixed("headers.")
        self._client = httpx.Client(
            auth=self._auth,
            headers={"User-Agent": _OWN_USER_AGENT, **headers},
            timeout=config.timeout_ms / 1000,
            verify=tls_context(config),
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
        self._secrets = [*(each.secret for each in passwords if each is not None), *header_secrets(headers)]
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
        """Wait until a request may be sent.

        Raises RetriableError if the task is stopped meanwhile, or if the server wants a long wait.
        """
        while not self.may_send():
            if self._stopping.is_set():
                raise RetriableError("the task is stopped")
            seconds = self._not_before - time.monotonic()
            if seconds > _PATIENCE_SECONDS:
                raise RetriableError(f"the server takes no request for {seconds:.0f} s (Retry-After)")

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
        headers = {} if content_type is None else {"Content-Type": content_type}
        try:
            request = self._client.build_request(method, url, params=params, content=body, headers=headers)
            return self._response(request)
        except (httpx.TransportError, httpx.InvalidURL) as e:
            self.failures += 1
            text = self._without_secrets(f"{type(e).__name__} {e}")
            retriable = isinstance(e, httpx.TransportError) and not isinstance(e, httpx.UnsupportedProtocol)
            kind = RetriableError if retriable else ConnectError
            raise kind(f"{method} {shown_url(url)}: {text}") from None
        except RuntimeError:  # httpx's for a closed client
            if not self._stopping.is_set():
                raise
            raise RetriableError("the task is stopped") from None

    def stop(self) -> None:
        """End waits, and close the connections."""
        self._stopping.set()
        self._client.close()

    def _response(self, request: httpx.Request) -> Response:
        """Return the response to a request, after redirects to the same server."""
        for _ in range(_REDIRECTS_MAX):
            response, body = self._exchange(request)
            following = response.next_request
            if following is None or not _is_safe(request, following):
                break
            request = following
        status = response.status_code
        if 200 <= status < 300:
            return Response(body, response.headers)
        self.failures += 1
        what = f"{request.method} {shown_url(str(request.url))} answered {status}"
        if following is not None:
            raise Refused(
                f"{what}, a redirect to {following.method} {shown_url(str(following.url))}, which is not "
                "followed: set url to the place that it should be",
                status,
            )
        message = f"{what}: {self._without_secrets(body[:_EXCERPT].decode(errors='replace'))}"
        if status in self._retried:
            self._heed(response.headers.get("Retry-After"))
            raise RetriableError(message)
        raise Refused(message, status)

    def _exchange(self, request: httpx.Request) -> tuple[httpx.Response, bytes]:
        self.requests += 1
        deadline = time.monotonic() + self._config.timeout_ms / 1000
        response = self._client.send(request, stream=True)
        try:
            return response, self._body(request, response, deadline)
        finally:
            response.close()

    def _body(self, request: httpx.Request, response: httpx.Response, deadline: float) -> bytes:
        most, parts, size = self._config.response_bytes_max, [], 0
        what = f"{request.method} {shown_url(str(request.url))}"
        for part in response.iter_bytes():
            size += len(part)
            if size > most:
                raise ConnectError(
                    f"{what}: the response is larger than response.bytes.max={most}: ask for smaller pages"
                )
            if time.monotonic() > deadline:  # httpx bounds each read, not all of them
                self.failures += 1
                raise RetriableError(f"{what} took longer than timeout.ms={self._config.timeout_ms}")
            parts.append(part)
        return b"".join(parts)

    def _without_secrets(self, text: str) -> str:
        token = self._auth.token if isinstance(self._auth, ClientCredentials) else ""
        return without(text, (*self._secrets, token))

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


def _is_safe(request: httpx.Request, following: httpx.Request) -> bool:
    """Return True if a redirect stays with the server, which may see our credentials, and with the method."""
    old, new = request.url, following.url
    is_same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port)
    return is_same and request.method == following.method
