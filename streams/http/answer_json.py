"""Answers of a store as JSON, with the answering instance and the store's position."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from streams.http.text import place, position_of, row_of, to_json, version_of
from streams.queries import FailureReason, Page, QueryResult

_REFUSALS = {FailureReason.UNKNOWN_QUERY_TYPE: 400, FailureReason.STORE_EXCEPTION: 500}
"""The HTTP statuses of failures. Others are 503: they are temporary, or another instance can answer."""


def query_response(store: str, result: QueryResult, partition: int, key: Any, by: str) -> Response:
    """Return the HTTP response for a partition's answer. ``by``: the address of this instance."""
    facts: dict[str, Any] = {
        "partition": partition,
        "active": result.active,
        "position": position_of(result.position),
        "answered_by": by,
    }
    if result.failure is not None:
        status = _REFUSALS.get(result.failure, HTTPStatus.SERVICE_UNAVAILABLE)
        failed = {"error_code": status, "message": result.message, "reason": result.failure.value}
        return json_response({**failed, **facts}, status)
    if isinstance(result.value, Page):
        after = result.value.next
        next_ = None if after is None else place(partition, after)
        rows = [row_of(row) for row in result.value.rows]
        return json_response({"store": store, "rows": rows, "next": next_, **facts})
    if result.value is None:
        message = f"store {store} has no key {key!r}"
        return json_response({"error_code": 404, "message": message, **facts}, HTTPStatus.NOT_FOUND)
    if isinstance(result.value, list):
        versions = [version_of(version) for version in result.value]
        return json_response({"store": store, "key": key, "versions": versions, **facts})
    return json_response({"store": store, "key": key, **result.value._asdict(), **facts})


def json_response(facts: Any, status: int = HTTPStatus.OK) -> Response:
    """Return a response with facts as JSON; they may contain values of stores."""
    return Response(to_json(facts), status, media_type="application/json")
