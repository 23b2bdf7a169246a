"""The server side of SASL OAUTHBEARER (RFC 7628), as Kafka's OAuthBearerSaslServer.

    client    n,[a=AUTHZID],%x01auth=Bearer TOKEN%x01[NAME=VALUE%x01]...%x01
    server    empty, or {"status":"invalid_token"}
    client    %x01, after an error: the login then fails with the same text

Extensions (KIP-342) are taken and have no effect, as in Kafka without a handler of one's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable
from typing import Final

from logd.security.errors import LoginFailed, LoginRefused
from logd.security.exchange import ServerExchange
from logd.security.oauthbearer.errors import InvalidToken
from logd.security.oauthbearer.jwt import TOKEN_BYTES_MAX
from logd.security.oauthbearer.validators import NowMs, TokenValidator

# Kafka's grammar (OAuthBearerClientInitialResponse): each of these must match in whole.
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_BEARER: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
MESSAGE_BYTES_MAX: Final = 2 * TOKEN_BYTES_MAX
_BAD_MESSAGE: Final = "Invalid OAUTHBEARER client first message"


class OAuthBearerExchange(ServerExchange):
    """A login by OAUTHBEARER. Wait for `preparation`, if there is one, before `respond`."""

    def __init__(self, validator: TokenValidator, now_ms: NowMs) -> None:
        self._validator = validator
        self._now_ms = now_ms
        self._refusal: InvalidToken | None = None
        """The error that the client has been sent and has yet to acknowledge."""
        self.user = ""
        self.expires_ms: int | None = None
        self.is_complete = False

    @property
    def refusal(self) -> str:
        """Why the token is refused, if the client has yet to acknowledge the error; else empty."""
        return "" if self._refusal is None else f"the token is not valid: {self._refusal.reason}"

    def preparation(self, message: bytes) -> Awaitable[None] | None:
        """Return what to wait for before the message can be answered, or None."""
        if self._refusal is not None:
            return None
        try:
            _, token = first_message(message)
        except LoginFailed:
            return None
        return self._validator.preparation(token)

    def respond(self, message: bytes) -> bytes:
        """Return an empty response, or the error of a refused token. Raises LoginFailed or LoginRefused."""
        if self._refusal is not None:
            # Kafka reads another token here; RFC 7628 has the login end.
            detail, text = self.refusal, _text_of(self._refusal)
            self._refusal = None
            raise LoginRefused(text, detail=detail)
        authorization_id, token = first_message(message)
        try:
            accepted = self._validator.validate(token, self._now_ms())
        except InvalidToken as refusal:
            self._refusal = refusal
            return _text_of(refusal).encode()
        if authorization_id not in ("", accepted.user):
            raise LoginRefused(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                f"different from the token's principal name ({accepted.user})"
            )
        self.user, self.expires_ms = accepted.user, accepted.expires_ms
        self.is_complete = True
        return b""


def first_message(message: bytes) -> tuple[str, str]:
    """Return the authorization id, empty without one, and the token. Raises LoginFailed."""
    if len(message) > MESSAGE_BYTES_MAX:
        raise LoginFailed(f"an OAUTHBEARER message of {len(message)} bytes; {MESSAGE_BYTES_MAX} are allowed")
    match = _MESSAGE.fullmatch(message.decode("latin-1"))
    if match is None:
        raise LoginFailed(_BAD_MESSAGE)
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    if "auth" not in pairs:
        raise LoginFailed(f"{_BAD_MESSAGE}: 'auth' not specified")
    bearer = _BEARER.fullmatch(pairs["auth"])
    if bearer is None:
        raise LoginFailed(f"{_BAD_MESSAGE}: invalid 'auth' format")
    if bearer["scheme"].lower() != "bearer":
        raise LoginFailed("Invalid scheme in OAUTHBEARER client first message")
    authorization_id = (match["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization_id, bearer["token"]


def _text_of(refusal: InvalidToken) -> str:
    """Return the error as Kafka writes it."""
    scope = f', "scope":{json.dumps(refusal.scope)}' if refusal.scope else ""
    return f'{{"status":"{refusal.status}"{scope}}}'
