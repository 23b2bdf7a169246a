"""OAuth tokens from a file, which another program keeps fresh (Kafka's FileJwtRetriever)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_client.errors import AuthenticationFailed
from kafka_client.security.secret import Secret
from kafka_client.security.token import Token

TOKEN_BYTES_MAX: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A token source: a file with one token, which is read whenever a fresh token is needed."""

    path: Path
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions that are sent with each token."""

    def __call__(self) -> Token:
        """Return the token in the file. Blocks. Raises AuthenticationFailed if there is none."""
        try:
            with self.path.open("rb") as file:
                text = file.read(TOKEN_BYTES_MAX).decode("ascii").strip()
        except OSError as error:
            raise self._failed(error.strerror or type(error).__name__) from None
        except UnicodeDecodeError:
            raise self._failed("it has other characters than a token") from None
        if not text:
            raise self._failed("it is empty")
        token = Token.of(text)
        return Token(value=Secret(text), expires_at=token.expires_at, extensions=dict(self.extensions))

    def _failed(self, why: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"no token in {self.path}: {why}", mechanism="OAUTHBEARER")
