"""Bodies of requests, read with a bound and checked, and JSON answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.runtime.stage import request_stage

BODY_MAX = 4 * 1024 * 1024
"""The most bytes of a request's body."""


def json_response(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer with a JSON document."""
    content = msgspec.json.encode(document)
    return Response(content, status, None if headers is None else dict(headers), "application/json")


def empty(status: int = 204) -> Response:
    """Return an answer without a document."""
    return Response(status_code=status)


async def body_of(request: Request) -> bytes:
    """Return a request's body. Raises HTTPException 413 if it is larger than BODY_MAX."""
    too_large = HTTPException(413, f"The body is larger than {BODY_MAX} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > BODY_MAX:
        raise too_large
    request_stage().enter("reading the request's body")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_MAX:
            raise too_large
    request_stage().enter("handling the request")
    request.scope["millstream.body"] = bytes(content)
    return bytes(content)


async def json_body(request: Request) -> Any:
    """Return a request's JSON. Raises HTTPException 415 if its type is not JSON, 400 if it is unreadable."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "HTTP 415 Unsupported Media Type")
    content = await body_of(request)
    if not content.strip():
        raise HTTPException(400, "The body is empty; a JSON document is needed")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise HTTPException(400, f"The body is not JSON: {e}") from e


def object_of(value: Any, what: str = "The body") -> dict[str, Any]:
    """Return a JSON object. Raises HTTPException 400 if the value is another."""
    if not isinstance(value, dict):
        raise HTTPException(400, f"{what} must be a JSON object")
    return value


def config_of(value: Any, what: str = "The body") -> dict[str, str]:
    """Return a connector's config as texts. Raises HTTPException 400 for values that are not scalars."""
    texts: dict[str, str] = {}
    refused: list[str] = []
    for key, each in object_of(value, what).items():
        text = _text(each)
        if text is None:
            refused.append(key)
        else:
            texts[key] = text
    if refused:
        raise HTTPException(
            400,
            f"The values of {', '.join(refused)} must be texts, numbers or booleans; leave out unset keys",
        )
    return texts


def patch_of(value: Any) -> dict[str, str | None]:
    """Return the changes of a config, None for keys to delete. Raises HTTPException 400."""
    patch = object_of(value)
    deleted = dict.fromkeys(key for key, each in patch.items() if each is None)
    return {**deleted, **config_of({key: each for key, each in patch.items() if each is not None})}


def _text(value: Any) -> str | None:
    """Return the text of a scalar as Java's Jackson writes it, or None for other values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


def flag(request: Request, name: str, default: bool) -> bool:
    """Return a query parameter as Java reads a boolean: `true` in any case is True, other texts False."""
    value = request.query_params.get(name)
    return default if value is None else value.lower() == "true"
