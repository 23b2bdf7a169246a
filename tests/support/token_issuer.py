"""An issuer of tokens: its keys, tokens signed with them, and a small web server on the loopback address.

The server publishes the keys at `/jwks`, and gives out tokens by client credentials at `/token`.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE: Final = "logs"
ISSUER: Final = "https://issuer.example"
_CURVES: Final = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
EC_ALGORITHMS: Final = tuple(_CURVES)


@cache
def private_key(name: str, bits: int = 2048) -> Any:
    """Return a key of this name, the same one at each call: of a curve if the name is its algorithm."""
    if name in _CURVES:
        return ec.generate_private_key(_CURVES[name]())
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def public_jwk(key: Any, **members: str) -> dict[str, Any]:
    """Return a public key as a member of a key set."""
    codec = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
    return {**codec.to_jwk(key.public_key(), as_dict=True), "use": "sig", **members}


def unpadded(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsigned(claims: Mapping[str, Any], header: Mapping[str, Any] | None = None) -> str:
    """Return a token without a signature."""
    parts = (json.dumps(header or {"alg": "none"}), json.dumps(claims))
    return ".".join([*(unpadded(part.encode()) for part in parts), ""])


class TokenIssuer:
    """An issuer whose keys have the names of `key_ids`."""

    def __init__(self, *key_ids: str) -> None:
        self.key_ids = key_ids or ("first",)
        for each in self.key_ids:  # made here, as two threads could make two keys of one name
            private_key(each)

    def key_set(self) -> bytes:
        """Return the public keys as JSON."""
        return json.dumps(
            {"keys": [public_jwk(private_key(each), kid=each) for each in self.key_ids]}
        ).encode()

    def claims(
        self, user: str = "alice", *, seconds: float = 600, now: float | None = None
    ) -> dict[str, Any]:
        """Return the claims of a valid token."""
        at = int(time.time() if now is None else now)
        return {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": at, "exp": at + seconds}

    def token(
        self,
        user: str = "alice",
        *,
        key_id: str | None = None,
        algorithm: str = "RS256",
        seconds: float = 600,
        **claims: Any,
    ) -> str:
        """Return a signed token; a claim of None is left out."""
        name = self.key_ids[0] if key_id is None else key_id
        everything = self.claims(user, seconds=seconds) | claims
        present = {key: value for key, value in everything.items() if value is not None}
        # By PyJWS, as PyJWT would check the claims.
        payload = json.dumps(present).encode()
        return jwt.PyJWS().encode(payload, private_key(name), algorithm, headers={"kid": name, "typ": "JWT"})


class _Server(ThreadingHTTPServer):
    server_bind = TCPServer.server_bind
    """HTTPServer's asks for the host's name, which may take seconds."""
    daemon_threads = True


class IssuerServer:
    """The web server of an issuer; `tls` is a server's context."""

    def __init__(self, issuer: TokenIssuer, tls: ssl.SSLContext | None = None) -> None:
        self.issuer = issuer
        self.status = 200
        self.seconds = 600.0
        self.requests: list[str] = []
        """The paths of the requests."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append(self.path)
                answer = server.issuer.key_set() if self.command == "GET" else server.token_answer()
                self.send_response(server.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if tls is None else "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The server's URL, without a path."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def token_answer(self) -> bytes:
        """Return the answer to client credentials."""
        token = self.issuer.token(seconds=self.seconds)
        answer = {"access_token": token, "expires_in": self.seconds, "token_type": "Bearer"}
        return json.dumps(answer).encode()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
