"""Endpoints below ``/stores``: a key, its windows, and scans, over the partitions of all instances."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from streams.errors import InvalidStateStore, QueryTimedOut, UnknownStateStore
from streams.http.answer_json import json_response, query_response
from streams.http.application import Application
from streams.http.forwarding import Forwarding
from streams.http.routing import QueryOptions, Routing
from streams.http.text import BadRequest, place, read_key, read_number, read_place, read_truth
from streams.queries import (
    FailureReason,
    KeyQuery,
    KeyQueryMetadata,
    MultiVersionedKeyQuery,
    Page,
    QueryResult,
    RangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streams.queries.query import PAGE_ROWS, Query
from streams.serdes.windowed import FOREVER
from streams.state import StoreSpec

LOCAL_SECONDS = 2.5
"""The timeout of a query in this instance; shorter than that of a forwarded request."""
ROWS_DEFAULT = 100
PAGES_OF_A_SCAN_MAX = 16
"""The most pages, of one or several partitions, that one request of a scan reads."""
PARTITION_MAX = 1_000_000

_OF_SEVERAL = ("from", "to", "limit")
"""The parameters that request several versions of a key."""
_NOT_HERE = (FailureReason.NOT_PRESENT.value, FailureReason.NOT_ACTIVE.value)
"""The reasons for which a local scan continues with the next partition."""


class Queries:
    """The query endpoints of an application."""

    def __init__(self, app: Application, forwarding: Forwarding) -> None:
        self._app = app
        self._routing = Routing(app, forwarding)

    async def stores(self, request: Request) -> Response:
        """Return all stores with their kinds and the serdes of keys and values."""
        specs = self._app.topology.stores.values()
        return json_response([_facts(spec) for spec in sorted(specs, key=lambda spec: spec.name)])

    async def key(self, request: Request) -> Response:
        """Return a key's value, a page of its windows or sessions, or its version or versions."""
        spec, options = self._spec(request), QueryOptions.of(request)
        key = read_key(request.path_params["key"], spec.key_serde)
        query = self._key_query(request, spec, key)
        try:
            where = self._where(request, spec, key)
        except UnknownStateStore:
            raise
        except InvalidStateStore:
            if not options.local:
                raise
            return await self._anywhere_here(spec, query, options, key)
        here = partial(self._here, spec, query, where.partition, options, key)
        if options.local or self._is_global(spec):
            return await here()
        path = f"/stores/{quote(spec.name, safe='')}/{quote(request.path_params['key'], safe='')}"
        params = request.query_params
        return await self._routing.answer(spec.name, where, options, here=here, path=path, params=params)

    def _where(self, request: Request, spec: StoreSpec, key: Any) -> KeyQueryMetadata:
        """Return the instances with the key's partition, by the key's hash, or as the request says."""
        partition = request.query_params.get("partition")
        if partition is None:
            return self._app.query_metadata_for_key(spec.name, key)
        number = read_number("partition", partition, 0, least=0, most=PARTITION_MAX)
        return self._app.query_metadata_for_partition(spec.name, number)

    async def scan(self, request: Request) -> Response:
        """Return a page of rows, one partition after the other, and the ``next`` of the page after it."""
        spec, options, params = self._spec(request), QueryOptions.of(request), request.query_params
        partition, after = read_place(params.get("next"))
        only = params.get("partition")
        if only is not None:
            partition = read_number("partition", only, 0, least=0, most=PARTITION_MAX)
        end = partition + 1 if only is not None else self._app.partitions_of_store(spec.name)
        limit = read_number("limit", params.get("limit"), ROWS_DEFAULT, least=1, most=PAGE_ROWS)
        rows: list[Any] = []
        position: dict[str, dict[str, int]] = {}
        by: dict[str, None] = {}
        for _ in range(PAGES_OF_A_SCAN_MAX):
            if partition >= end or len(rows) >= limit or (rows and after is not None):
                break
            page = await self._page(request, spec, partition, after, limit - len(rows), options)
            rows += page["rows"]
            for topic, offsets in page["position"].items():
                position.setdefault(topic, {}).update(offsets)
            by |= dict.fromkeys(page["answered_by"])
            after = None if page["next"] is None else read_place(page["next"])[1]
            partition += after is None
        next_ = place(partition, after) if partition < end else None
        answer = {"store": spec.name, "rows": rows, "next": next_, "position": position}
        return json_response({**answer, "answered_by": list(by)})

    async def _page(
        self,
        request: Request,
        spec: StoreSpec,
        partition: int,
        after: bytes | None,
        limit: int,
        options: QueryOptions,
    ) -> dict[str, Any]:
        """Return a partition's page, as JSON. Raises InvalidStateStore if no instance has the partition."""
        query = self._range_query(request, spec, after, limit)
        here = partial(self._here, spec, query, partition, options, None)
        if options.local or self._is_global(spec):
            response = await here()
        else:
            where = self._app.query_metadata_for_partition(spec.name, partition)
            place_ = {"partition": str(partition), "next": place(partition, after), "limit": str(limit)}
            response = await self._routing.answer(
                spec.name,
                where,
                options,
                here=here,
                path=f"/stores/{quote(spec.name, safe='')}",
                params={**request.query_params, **place_},
            )
        page: dict[str, Any] = json.loads(bytes(response.body))
        if page.get("reason") in _NOT_HERE and "partition" not in request.query_params:
            return {"rows": [], "next": None, "position": {}, "answered_by": []}
        if response.status_code == HTTPStatus.BAD_REQUEST:
            raise BadRequest(page["message"])
        if response.status_code != HTTPStatus.OK:
            raise InvalidStateStore(page["message"])
        by = page["answered_by"]
        return {**page, "answered_by": [by] if isinstance(by, str) else by}

    # -- queries in this instance

    async def _here(
        self, spec: StoreSpec, query: Query, partition: int, options: QueryOptions, key: Any
    ) -> Response:
        result = (await self._ask(spec.name, query, (partition,), options))[partition]
        return query_response(spec.name, result, partition, key, self._own)

    async def _anywhere_here(
        self, spec: StoreSpec, query: Query, options: QueryOptions, key: Any
    ) -> Response:
        """Query all partitions of this instance, for a key whose partition is unknown."""
        results = await self._ask(spec.name, query, None, options)
        if not results:
            raise InvalidStateStore(f"no partition of store {spec.name} is in this instance")
        with_value = {each: result for each, result in results.items() if _has_value(result)}
        partition, result = next(iter((with_value or results).items()))
        return query_response(spec.name, result, partition, key, self._own)

    async def _ask(
        self, name: str, query: Query, partitions: tuple[int, ...] | None, options: QueryOptions
    ) -> Mapping[int, QueryResult]:
        answer = self._app.query(
            name,
            query,
            partitions=partitions,
            position_bound=options.bound,
            require_active=not options.stale,
        )
        try:
            async with asyncio.timeout(LOCAL_SECONDS):
                return (await answer).partition_results
        except TimeoutError:
            raise QueryTimedOut(LOCAL_SECONDS) from None

    @property
    def _own(self) -> str:
        return str(self._app.host)

    def _is_global(self, spec: StoreSpec) -> bool:
        return spec.name in self._app.topology.global_stores

    # -- requests

    def _spec(self, request: Request) -> StoreSpec:
        stores, name = self._app.topology.stores, request.path_params["name"]
        if name not in stores:
            raise UnknownStateStore(name, stores)
        return stores[name]

    def _key_query(self, request: Request, spec: StoreSpec, key: Any) -> Query:
        params = request.query_params
        if spec.kind == "key_value":
            return KeyQuery(key)
        if spec.kind == "versioned_key_value" and params.keys().isdisjoint(_OF_SEVERAL):
            as_of = params.get("as_of")
            return VersionedKeyQuery(
                key, None if as_of is None else read_number("as_of", as_of, 0, least=0, most=FOREVER)
            )
        limit = read_number("limit", params.get("limit"), ROWS_DEFAULT, least=1, most=PAGE_ROWS)
        if spec.kind == "versioned_key_value":
            return MultiVersionedKeyQuery(key, *_span(request), limit)
        _, after = read_place(params.get("next"))
        return WindowKeyQuery(key, *_span(request), limit, after, read_truth(params, "descending"))

    def _range_query(self, request: Request, spec: StoreSpec, after: bytes | None, limit: int) -> Query:
        place_: dict[str, Any] = {
            "limit": limit,
            "after": after,
            "descending": read_truth(request.query_params, "descending"),
        }
        if spec.kind != "key_value":
            first, last = _span(request)
            return WindowRangeQuery(time_from=first, time_to=last, **place_)
        bounds = (request.query_params.get(each) for each in ("lower", "upper"))
        lower, upper = (None if text is None else read_key(text, spec.key_serde) for text in bounds)
        return RangeQuery(lower=lower, upper=upper, **place_)


def _span(request: Request) -> tuple[int, int]:
    """Return the request's range of times, ms."""
    params = request.query_params
    return (
        read_number("from", params.get("from"), 0, least=0, most=FOREVER),
        read_number("to", params.get("to"), FOREVER, least=0, most=FOREVER),
    )


def _has_value(result: QueryResult) -> bool:
    value = result.value
    return bool(value.rows) if isinstance(value, Page) else value is not None


def _facts(spec: StoreSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "kind": spec.kind,
        "key_serde": type(spec.key_serde).__name__,
        "value_serde": type(spec.value_serde).__name__,
    }
