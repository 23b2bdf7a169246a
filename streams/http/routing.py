"""Which instance answers a query: the one that runs the task, then, where those will do, copies."""

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
class Asked:
    """How a request wants to be answered: ``local``, from here or not at all; ``stale``, by a copy as well;
    ``bound``, not before it is as far.
    """

    local: bool
    stale: bool
    bound: PositionBound

    @classmethod
    def by(cls, request: Request) -> Asked:
        """Read from the request. What was sent on already is answered here."""
        params = request.query_params
        local = read_truth(params, "local") or HOP in request.headers
        return cls(local, read_truth(params, "stale"), read_bound(params.get("position")))


class Routing:
    """Asks one instance after the other."""

    def __init__(self, app: Application, forwarding: Forwarding) -> None:
        self._app = app
        self._forwarding = forwarding

    async def answer(
        self,
        store: str,
        where: KeyQueryMetadata,
        asked: Asked,
        *,
        here: Callable[[], Awaitable[Response]],
        path: str,
        params: Mapping[str, str],
    ) -> Response:
        """The first answer that is one: what an instance refuses for the time being is not.

        ``here`` answers for this instance, ``GET path?params`` for others. Raises InvalidStateStore.
        """
        problems: list[str] = []
        for host in _hosts_to_ask(where, asked):
            try:
                response = await (here() if host == self._app.host else self._there(host, path, params))
            except (Unreachable, InvalidStateStore) as error:
                problems.append(str(error))
                continue
            if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return response
            problems.append(f"{host}: {_message(response)}")
        told = "; ".join(problems) or "no instance is known to run its task"
        remedy = "ask again" if asked.stale else "ask again, or have copies answer with stale=true"
        raise InvalidStateStore(
            f"partition {where.partition} of store {store} has no answer: {told}; {remedy}"
        )

    async def _there(self, host: HostInfo, path: str, params: Mapping[str, str]) -> Response:
        answer = await self._forwarding.get(host, path, {**params, "local": "true"})
        return Response(answer.body, answer.status, media_type="application/json")


def _hosts_to_ask(where: KeyQueryMetadata, asked: Asked) -> list[HostInfo]:
    active = [] if where.active_host is None else [where.active_host]
    return [*active, *(where.standby_hosts if asked.stale else ())]


def _message(response: Response) -> str:
    try:
        return str(json.loads(bytes(response.body))["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
