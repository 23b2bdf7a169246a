"""OAuth tokens by client credentials (RFC 6749, 4.4), from a URL (KIP-768)."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_client.errors import AuthenticationFailed, ConnectionClosed
from kafka_client.security.context import make_context
from kafka_client.security.secret import Secret
from kafka_client.security.tls import TlsSettings
from kafka_client.security.token import Token

if TYPE_CHECKING:
    import urllib.error
    import urllib.request

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 1_048_576


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
        # Imported on use: HTTP is slow to import, and most clients use no endpoint.
        import http.client
        import urllib.error
        import urllib.parse
        import urllib.request

        who = ":".join(
            urllib.parse.quote(part, safe="") for part in (self.client_id, self.client_secret.reveal())
        )
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        request = urllib.request.Request(
            self.url,
            urllib.parse.urlencode(form).encode(),
            {
                "Authorization": "Basic " + base64.b64encode(who.encode()).decode(),
                "Accept": "application/json",
            },
        )
        context = ssl.create_default_context() if self.tls is None else make_context(self.tls)
        # A redirect would send the secret to another server.
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _no_redirect())
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.loads(answer.read(MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                if error.code >= 500 or error.code == 429:
                    raise self._away(f"it answers HTTP {error.code}") from None
                raise self._refused(f"HTTP {error.code}{_reason(error)}") from None
        except ValueError:
            raise self._refused("its answer is not JSON") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise self._refused(
                    f"its certificate is not trusted: {error.reason.verify_message}"
                ) from None
            raise self._away(str(error.reason)) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._away(str(error) or type(error).__name__) from None

    def _refused(self, why: str) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"no token from {self.url}: {why}", mechanism="OAUTHBEARER", user=self.client_id
        )

    def _away(self, why: str) -> ConnectionClosed:
        return ConnectionClosed(f"no token from {self.url} for client {self.client_id!r}: {why}")


def _no_redirect() -> urllib.request.HTTPRedirectHandler:
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: Any) -> None:
            return None

    return NoRedirect()


def _reason(error: urllib.error.HTTPError) -> str:
    """Return the error's code and description as in RFC 6749, 5.2; empty without one."""
    from http.client import HTTPException

    try:
        body = json.loads(error.read(MAX_ANSWER_BYTES))
        return f", {body['error']}" + (
            f": {body['error_description']}" if "error_description" in body else ""
        )
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return ""
