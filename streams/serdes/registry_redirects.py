"""Redirects of a schema registry, which are followed without the password unless they stay on its server."""

from __future__ import annotations

import functools
import urllib.request
from typing import Any
from urllib.parse import urlsplit

_CREDENTIALS = ("Authorization", "Proxy-authorization", "Cookie")
_PORTS = {"http": 80, "https": 443}


class RedirectsWithoutPassword(urllib.request.HTTPRedirectHandler):
    """A handler that takes the credentials out of a request to another scheme, host or port."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request, or None if the redirect is not followed."""
        redirected = super().redirect_request(req, fp, code, msg, headers, newurl)
        if redirected is not None and _server(newurl) != _server(req.full_url):
            for name in _CREDENTIALS:
                redirected.remove_header(name)
        return redirected


@functools.cache
def opener() -> urllib.request.OpenerDirector:
    """Return the opener of a registry's URLs; it keeps no state."""
    return urllib.request.build_opener(RedirectsWithoutPassword())


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
