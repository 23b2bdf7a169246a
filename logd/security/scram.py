"""The server side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka's ScramSaslServer.

    client-first   n,[a=AUTHZID],n=USER,r=NONCE[,tokenauth=true]
    server-first   r=NONCE+MORE,s=SALT,i=ITERATIONS
    client-final   c=GS2HEADER,r=NONCE+MORE,p=PROOF
    server-final   v=SIGNATURE

Channel binding is not offered. Names are not normalised by SASLprep, as in Kafka.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from logd.security.errors import LoginFailed, LoginRefused
from logd.security.exchange import ServerExchange
from logd.security.scram_credential import MIN_ITERATIONS, ScramCredential, ScramMechanism

# Kafka's grammar (ScramMessages), which is ASCII: each of these must match in whole.
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"
_CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<unproven>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_PLAIN_HEADER = b"n,,"
MESSAGE_BYTES_MAX = 16 * 1024
"""Longest message that is parsed. Real ones have some hundred bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token that logs in as its owner (KIP-48)."""

    owner: str
    credential: ScramCredential
    expires_ms: int


FindCredential = Callable[[str], ScramCredential | None]
"""From a user's name to the credential for the mechanism, or None if the user has none."""
Decoy = Callable[[str], ScramCredential]
"""From the name of an unknown user to what takes the place of a credential."""
FindToken = Callable[[str], DelegationToken | None]
"""From a delegation token's id to the token, or None if there is none."""


def new_nonce() -> str:
    """Return a nonce of 192 bits, printable and without commas."""
    return secrets.token_urlsafe(24)


def no_token(token_id: str) -> None:
    """Return None: there are no delegation tokens."""


class ScramServerExchange(ServerExchange):
    """A login by SCRAM. `find_credential` is called once, with the name that the client sends.

    With `decoy` the login of an unknown user fails as late as that of a wrong password.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        find_credential: FindCredential,
        *,
        decoy: Decoy | None = None,
        find_token: FindToken = no_token,
        nonce: Callable[[], str] = new_nonce,
    ) -> None:
        self._mechanism = mechanism
        self._find_credential = find_credential
        self._decoy = decoy
        self._find_token = find_token
        self._nonce = nonce
        self._respond: Callable[[str], str] | None = self._first
        """Serves the next message; None after the last one and after an error."""
        self._credential: ScramCredential | None = None
        self._is_unknown = False
        """True if the credential is a decoy."""
        self._header = b""
        self._exchanged = ""
        """client-first-message-bare and server-first-message, the first parts of the AuthMessage."""
        self._own_nonce = ""
        self._login_user = ""
        self.user = ""
        self.expires_ms: int | None = None
        self.is_complete = False

    def respond(self, message: bytes) -> bytes:
        """Return server-first or server-final. Raises LoginFailed, or LoginRefused with a reason to tell."""
        respond, self._respond = self._respond, None
        if respond is None:
            raise LoginRefused("Unexpected challenge in Sasl server state")
        if len(message) > MESSAGE_BYTES_MAX:
            raise LoginFailed(f"a SCRAM message of {len(message)} bytes; {MESSAGE_BYTES_MAX} are allowed")
        try:
            text = message.decode("ascii")
        except UnicodeDecodeError:
            raise LoginFailed("a SCRAM message that is not ASCII") from None
        return respond(text).encode()

    def _first(self, text: str) -> str:
        match = _CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise LoginFailed("Invalid SCRAM client first message format")
        user = _plain_name(match["user"])
        credential = self._find(user, is_token=_asks_token(match["extensions"]))
        authzid = match["authzid"]
        # Kafka compares the text as it was sent, with its escapes.
        if authzid is not None and authzid not in (user, match["user"]):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if credential.iterations < MIN_ITERATIONS:
            raise LoginFailed(
                f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS} for "
                f"{self._mechanism.label}"
            )
        self._credential = credential
        self._header = match["header"].encode()
        self._own_nonce = self._nonce()
        whole_nonce = match["nonce"] + self._own_nonce
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={whole_nonce},s={salt},i={credential.iterations}"
        self._exchanged = f"{match['bare']},{server_first}"
        self._respond = self._final
        return server_first

    def _find(self, user: str, *, is_token: bool) -> ScramCredential:
        """Return the credential of a user or a token; note whom the login is for."""
        if is_token:
            token = self._find_token(user)
            if token is None:
                raise LoginFailed(f"Token Authentication failed: Invalid tokenId : {user!r}")
            self._login_user, self.expires_ms = token.owner, token.expires_ms
            return token.credential
        self._login_user = user
        credential = self._find_credential(user)
        if credential is not None:
            return credential
        self._is_unknown = True
        if self._decoy is None:
            raise self._unknown_user()
        return self._decoy(user)

    def _unknown_user(self) -> LoginFailed:
        return LoginFailed(f"no {self._mechanism.label} credential of user {self._login_user!r}")

    def _final(self, text: str) -> str:
        match = _CLIENT_FINAL.fullmatch(text)
        if match is None:
            raise LoginFailed("Invalid SCRAM client final message format")
        # As in Kafka only the end counts: librdkafka 2.0 puts the client's nonce in front once more.
        if not hmac.compare_digest(match["nonce"][-len(self._own_nonce) :], self._own_nonce):
            raise LoginFailed("Invalid client nonce in the final client message.")
        # Kafka's own client sends the header without its authorization id.
        if base64.b64decode(match["channel"]) not in (self._header, _PLAIN_HEADER):
            raise LoginFailed("the final client message repeats another GS2 header than the first one had")
        assert self._credential is not None
        message = f"{self._exchanged},{match['unproven']}".encode()
        self._check_proof(self._credential.stored_key, message, base64.b64decode(match["proof"]))
        signature = hmac.digest(self._credential.server_key, message, self._mechanism.hash_name)
        self._credential = None
        self.user = self._login_user
        self.is_complete = True
        return f"v={base64.b64encode(signature).decode()}"

    def _check_proof(self, stored_key: bytes, message: bytes, proof: bytes) -> None:
        hash_name = self._mechanism.hash_name
        signature = hmac.digest(stored_key, message, hash_name)
        if len(proof) != len(signature):
            raise LoginFailed("Invalid client credentials")
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        is_right = hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), stored_key)
        if self._is_unknown:
            raise self._unknown_user()
        if not is_right:
            raise LoginFailed(f"Invalid client credentials of user {self._login_user!r}")


def _plain_name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _asks_token(extensions: str) -> bool:
    pairs = (part.partition("=") for part in extensions.split(",") if part)
    return any(name == "tokenauth" and value.lower() == "true" for name, _, value in pairs)
