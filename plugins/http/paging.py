"""Paging: how the request for the next page follows from a page.

A page is named by a value that JSON can hold: a URL, a number or a cursor. None is the first page, and after
the last one.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from connect.api import ConnectError
from plugins.http.config import HttpSourceConfig
from plugins.http.documents import at_path
from plugins.http.secrets import shown_url

_PARAMS = {"page": "page", "offset": "offset", "cursor": "cursor"}


class Paging:
    """The configured way from page to page."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._config = config
        self._kind = config.paging
        self._param = config.paging_param or _PARAMS.get(config.paging, "")

    def url(self, page: Any) -> str | None:
        """Return the page's whole URL, with its query, if the way is by URLs; else None."""
        return str(page) if self._kind in ("link-header", "next-link") and page is not None else None

    def params(self, page: Any) -> dict[str, str]:
        """Return the parameters that name a page."""
        config = self._config
        params: dict[str, str] = {}
        if config.paging_size_param and config.paging_size:
            params[config.paging_size_param] = str(config.paging_size)
        if self._kind == "page":
            params[self._param] = str(config.paging_start if page is None else page)
        elif self._kind in ("offset", "cursor") and page is not None:
            params[self._param] = str(page)
        return params

    def following(self, page: Any, url: str, document: Any, headers: httpx.Headers, count: int) -> Any:
        """Return the page after `page`, of which `document` has `count` records; None after the last one.

        Raises ConnectError if its URL leads to another server, which must not see our credentials, or if a
        page names itself.
        """
        following = self._following(page, url, document, headers, count)
        if following is not None and following == page:
            raise ConnectError(
                f"{shown_url(url)}: the page names itself as the next one, so the round would not end: check "
                "paging and paging.path"
            )
        return following

    def _following(self, page: Any, url: str, document: Any, headers: httpx.Headers, count: int) -> Any:
        match self._kind:
            case "link-header":
                links = httpx.Response(200, headers=headers).links
                return self._same_server(url, links.get("next", {}).get("url"))
            case "next-link":
                return self._same_server(url, at_path(document, self._config.paging_path or ""))
            case "cursor":
                return at_path(document, self._config.paging_path or "") or None
            case "page":
                number = self._config.paging_start if page is None else page
                return number + 1 if self._is_full(count) else None
            case "offset":
                return (page or 0) + count if self._is_full(count) else None
        return None

    def _is_full(self, count: int) -> bool:
        return count >= (self._config.paging_size or 1)

    def _same_server(self, url: str, link: Any) -> str | None:
        if not link:
            return None
        target = urljoin(url, str(link))
        if urlsplit(target)[:2] != urlsplit(url)[:2]:
            raise ConnectError(
                f"{shown_url(url)}: the next page is on another server, {shown_url(target)}: not followed"
            )
        return target
