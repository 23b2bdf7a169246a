"""The broker's side of SCRAM (RFC 5802), written from the RFC, to log in to."""

from __future__ import annotations

import base64
import hashlib
import hmac


class ScramServer:
    """A SCRAM server with one user. `respond` raises ValueError if the client's proof is wrong."""

    def __init__(
        self, name: str, password: str, *, iterations: int = 4096, nonce: str = "srv", salt: bytes = b"salt"
    ) -> None:
        self._hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[name]
        salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), salt, iterations)
        self._client_key = self._hmac(salted, b"Client Key")
        self._server_key = self._hmac(salted, b"Server Key")
        self._nonce, self._salt, self._iterations = nonce, salt, iterations
        self._exchanged = b""

    def respond(self, message: bytes) -> bytes:
        """Answer client-first with server-first, and client-final with server-final."""
        if not message.startswith(b"c="):
            bare = message.removeprefix(b"n,,")
            nonce = bare.split(b",")[1].removeprefix(b"r=").decode()
            salt = base64.b64encode(self._salt).decode()
            first = f"r={nonce}{self._nonce},s={salt},i={self._iterations}".encode()
            self._exchanged = bare + b"," + first
            return first
        without_proof, _, proof = message.rpartition(b",p=")
        exchanged = self._exchanged + b"," + without_proof
        stored = hashlib.new(self._hash, self._client_key).digest()
        signature = self._hmac(stored, exchanged)
        expected = bytes(a ^ b for a, b in zip(self._client_key, signature, strict=True))
        if base64.b64decode(proof) != expected:
            raise ValueError("wrong proof")
        return b"v=" + base64.b64encode(self._hmac(self._server_key, exchanged))

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()
