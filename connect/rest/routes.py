"""Routes: which endpoint answers a path and method, as Kafka Connect's Jersey would choose it.

A path is matched by its segments before they are decoded, so that a connector's name may contain `%2F`. One
slash at the end is ignored. `{task}` matches only digits, other fields any text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path with the endpoint of each method."""

    path: str
    endpoints: Mapping[str, Endpoint]
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", _segments(self.path))

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Return the decoded fields of a path if it has this form, or None.

        Raises HTTPException 400 for a field that is not UTF-8.
        """
        if len(segments) != len(self.segments):
            return None
        fields: dict[str, str] = {}
        for declared, actual in zip(self.segments, segments, strict=True):
            if not declared.startswith("{"):
                if declared != actual:
                    return None
                continue
            value, name = _decoded(actual), declared[1:-1]
            if name == "task" and not (value.isascii() and value.isdecimal() and len(value) < 10):
                return None
            fields[name] = value
        return fields


class Routes:
    """The endpoint that dispatches requests among routes."""

    def __init__(self, routes: list[Route]) -> None:
        self.routes = routes

    async def __call__(self, request: Request) -> Response:
        """Answer a request. Raises HTTPException 404 for an unknown path, 405 for a method it lacks."""
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        segments = _segments(raw.decode("latin-1").partition("?")[0])
        for route in self.routes:
            fields = route.match(segments)
            if fields is not None:
                request.scope["path_params"] = fields
                return await self._answer(route, request)
        raise HTTPException(404, "HTTP 404 Not Found")

    async def _answer(self, route: Route, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        endpoint = route.endpoints.get(method)
        if endpoint is not None:
            return await endpoint(request)
        allowed = [*route.endpoints, *(["HEAD"] if "GET" in route.endpoints else []), "OPTIONS"]
        if method == "OPTIONS":
            return PlainTextResponse(", ".join(allowed), headers={"allow": ",".join(allowed)})
        raise HTTPException(405, "HTTP 405 Method Not Allowed", {"allow": ",".join(allowed)})


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as e:
        raise HTTPException(400, f"The path has {text!r}, which is not UTF-8") from e


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix("/").removesuffix("/").split("/"))
