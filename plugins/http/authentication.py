"""Authentication of requests: basic, bearer, an API key, OAuth2's client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import time
from collections.abc import Generator

import httpx

from connect.api import ConnectError, RetriableError
from plugins.http.config import HttpConfig
from plugins.http.secrets import shown_url

_EARLY_SECONDS = 30
"""How long before its end a token is renewed."""
_LIFE_SECONDS = 3600
"""How long a token is used whose response does not say so."""


def authentication(config: HttpConfig) -> httpx.Auth | None:
    """Return what authenticates requests, or None."""
    match config.auth_type:
        case "basic":
            assert config.auth_password is not None
            return httpx.BasicAuth(config.auth_user or "", config.auth_password.secret)
        case "bearer":
            assert config.auth_token is not None
            return _Header("Authorization", f"Bearer {config.auth_token.secret}")
        case "api-key":
            assert config.auth_key is not None
            return _Header(config.auth_key_header, config.auth_key.secret)
        case "oauth2":
            return ClientCredentials(config)
    return None


class _Header(httpx.Auth):
    """A header of each request."""

    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers[self._name] = self._value
        yield request


class ClientCredentials(httpx.Auth):
    """A token of an authorization server, renewed before its end and after a 401."""

    def __init__(self, config: HttpConfig) -> None:
        assert config.oauth2_token_url and config.oauth2_client_id and config.oauth2_client_secret
        self._url = config.oauth2_token_url
        self._basic = httpx.BasicAuth(config.oauth2_client_id, config.oauth2_client_secret.secret)
        self._data = {"grant_type": "client_credentials"}
        if config.oauth2_scope:
            self._data["scope"] = config.oauth2_scope
        self.token = ""
        """The present token; empty before the first request."""
        self._renew_at = 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if time.monotonic() >= self._renew_at:
            self._take((yield self._token_request()))
        request.headers["Authorization"] = f"Bearer {self.token}"
        response = yield request
        if response.status_code == 401:
            self._take((yield self._token_request()))
            request.headers["Authorization"] = f"Bearer {self.token}"
            yield request

    def _token_request(self) -> httpx.Request:
        request = httpx.Request("POST", self._url, data=self._data, headers={"Accept": "application/json"})
        return next(self._basic.auth_flow(request))

    def _take(self, response: httpx.Response) -> None:
        """Take the token of a response. Raises ConnectError, or RetriableError if the server is at fault."""
        where = shown_url(self._url)
        response.read()
        if response.status_code == 429 or response.status_code >= 500:
            raise RetriableError(f"{where} answered {response.status_code} to the request for a token")
        try:
            document = response.json()
            self.token = document["access_token"]
            life = float(document.get("expires_in", _LIFE_SECONDS))
        except (ValueError, KeyError, TypeError):
            raise ConnectError(
                f"{where} answered {response.status_code} without a token: check oauth2.client.id, "
                "oauth2.client.secret and oauth2.scope"
            ) from None
        self._renew_at = time.monotonic() + max(0.0, life - _EARLY_SECONDS)
