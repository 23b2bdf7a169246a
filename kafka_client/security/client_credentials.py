"""OAuth tokens by client credentials (RFC 6749, 4.4), from a URL (KIP-768)."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_client.errors import AuthenticationFailed, ConnectionClosed
from kafka_client.security.secret import Secret
from kafka_client.security.tls import TlsSettings
from kafka_client.security.token import Token
from kafka_client.security.web_request import HttpFailed, HttpStatus, Untrusted, request


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """A token source: the credentials of a client, and the endpoint that issues its tokens."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions that are sent with each token."""
    tls: TlsSettings | None = None
    """Trust settings of the endpoint, if the system's authorities do not certify it."""
    encodes_names: bool = True
    """True if id and secret are encoded as in URLs (RFC 6749, 2.3.1): sasl.oauthbearer.header.urlencode."""
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)

    def __call__(self) -> Token:
        """Return a new token. Blocks. Raises AuthenticationFailed if it is refused, ConnectionClosed if no
        server answers.
        """
        answer = self._ask()
        try:
            value = answer["access_token"]
            lifetime = answer.get("expires_in")
            token = Token.of(str(value))
            expires_at = token.expires_at if lifetime is None else self.clock() + float(lifetime)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._refused("its answer has no access_token") from None
        return Token(value=token.value, expires_at=expires_at, extensions=dict(self.extensions))

    def _ask(self) -> Any:
        import urllib.parse  # on use, as most clients ask no endpoint

        names = [self.client_id, self.client_secret.reveal()]
        if self.encodes_names:
            names = [urllib.parse.quote(part, safe="") for part in names]
        who = ":".join(names)
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        headers = {
            "Authorization": "Basic " + base64.b64encode(who.encode()).decode(),
            "Accept": "application/json",
        }
        body = urllib.parse.urlencode(form).encode()
        try:
            return json.loads(request(self.url, body=body, headers=headers, tls=self.tls))
        except HttpStatus as error:
            if error.code >= 500 or error.code == 429:
                raise self._away(str(error)) from None
            raise self._refused(f"HTTP {error.code}{_reason(error.body)}") from None
        except Untrusted as error:
            raise self._refused(str(error)) from None
        except HttpFailed as error:
            raise self._away(str(error)) from None
        except (ValueError, RecursionError):
            raise self._refused("its answer is not JSON") from None

    def _refused(self, why: str) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"no token from {self.url}: {why}", mechanism="OAUTHBEARER", user=self.client_id
        )

    def _away(self, why: str) -> ConnectionClosed:
        return ConnectionClosed(f"no token from {self.url} for client {self.client_id!r}: {why}")


def _reason(body: bytes) -> str:
    """Return the error's code and description as in RFC 6749, 5.2; empty without one."""
    try:
        answer = json.loads(body)
        described = f": {answer['error_description']}" if "error_description" in answer else ""
        return f", {answer['error']}{described}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
