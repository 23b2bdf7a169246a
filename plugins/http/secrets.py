"""Texts for errors and logs, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

_HIDDEN = "[hidden]"
_SECRET_HEADERS = ("authorization", "cookie", "key", "password", "secret", "signature", "token")


def shown_url(url: str) -> str:
    """Return a URL without user, password and query: API keys stand there."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = f"?{_HIDDEN}" if parts.query else ""
    return f"{parts.scheme}://{host}{parts.path}{query}"


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text, of which another's response may be a part, with secrets hidden."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, _HIDDEN)
    return text


def header_secrets(headers: Mapping[str, str]) -> list[str]:
    """Return the values of headers that carry credentials by their names; of `Bearer x`, also `x` alone."""
    values = [v for name, v in headers.items() if any(word in name.lower() for word in _SECRET_HEADERS)]
    return [*values, *(value.rpartition(" ")[2] for value in values)]
