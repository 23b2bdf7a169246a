"""The choice of the instance that answers a query: the one that runs the task, then copies if allowed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from streams.errors import InvalidStateStore
from streams.http.application import Application
from streams.http.forwarding import HOP, Forwarding, Unreachable
from streams.http.text import read_bound, read_truth
from streams.queries import HostInfo, KeyQueryMetadata, PositionBound


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """A request's conditions on its answer."""

    local: bool
    """True: only this instance may answer."""
    stale: bool
    """True: a copy may answer too."""
    bound: PositionBound
    """The position that the store must have reached."""

    @classmethod
    def of(cls, request: Request) -> QueryOptions:
        """Read the options of a request; a forwarded one is local. Raises BadRequest for invalid ones."""
        params = request.query_params
        local = read_truth(params, "local") or HOP in request.headers
        return cls(local, read_truth(params, "stale"), read_bound(params.get("position")))


class Routing:
    """The queries of an application, sent to one instance after the other."""

    def __init__(self, app: Application, forwarding: Forwarding) -> None:
        self._app = app
        self._forwarding = forwarding

    async def answer(
        self,
        store: str,
        where: KeyQueryMetadata,
        options: QueryOptions,
        *,
        here: Callable[[], Awaitable[Response]],
        path: str,
        params: Mapping[str, str],
    ) -> Response:
        """Return the first answer of an instance, other than a server error.

        ``here`` answers for this instance, ``GET path?params`` for others. Raises InvalidStateStore if there
        is no answer.
        """
        problems: list[str] = []
        for host in _hosts_to_ask(where, options):
            try:
                response = await (here() if host == self._app.host else self._there(host, path, params))
            except (Unreachable, InvalidStateStore) as error:
                problems.append(str(error))
                continue
            if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return response
            problems.append(f"{host}: {_message(response)}")
        reasons = "; ".join(problems) or "no instance is known to run its task"
        remedy = "ask again" if options.stale else "ask again, or have copies answer with stale=true"
        raise InvalidStateStore(
            f"partition {where.partition} of store {store} has no answer: {reasons}; {remedy}"
        )

    async def _there(self, host: HostInfo, path: str, params: Mapping[str, str]) -> Response:
        answer = await self._forwarding.get(host, path, {**params, "local": "true"})
        return Response(answer.body, answer.status, media_type="application/json")


def _hosts_to_ask(where: KeyQueryMetadata, options: QueryOptions) -> list[HostInfo]:
    active = [] if where.active_host is None else [where.active_host]
    return [*active, *(where.standby_hosts if options.stale else ())]


def _message(response: Response) -> str:
    try:
        return str(json.loads(bytes(response.body))["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
