"""RestParts: what the endpoints of a worker's REST interface share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from connect.config.rest import RestConfig
from connect.errors import BadRequest
from connect.rest.service import Document, WorkerService
from connect.runtime.stage import request_stage
from kafka_client.metrics.metrics import Metrics

ADVICE = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


@dataclass(frozen=True, kw_only=True)
class RestParts:
    """The worker behind a REST interface, and what the interface does itself."""

    service: WorkerService
    validate: Callable[[Mapping[str, str]], Awaitable[Document]]
    """Returns the report of PUT /connector-plugins/{p}/config/validate."""
    plugins: Callable[[bool], Awaitable[Sequence[Mapping[str, Any]]]]
    """Returns the plugins; only connectors if its argument is True."""
    plugin_config: Callable[[str], Awaitable[list[Document]]]
    """Returns the settings that a plugin declares. Raises NotFound."""
    config: RestConfig = field(default_factory=lambda: RestConfig.parse({}))
    registry: Metrics | None = None
    """The metrics of `/metrics`; without them there is no such path."""

    async def check(self, request: Request, config: Mapping[str, str]) -> None:
        """Raise BadRequest, with all errors, for an invalid config."""
        if not config.get("connector.class"):
            raise BadRequest("Connector config contains no connector type")
        report = await self.validate(config)
        errors = [error for each in report["configs"] for error in each["value"]["errors"]]
        request_stage().enter("handling the request")
        if errors:
            raise BadRequest(
                f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n"
                + "\n".join(errors)
                + f"\n{ADVICE}"
            )


def location(request: Request, name: str) -> dict[str, str]:
    """Return the header with a connector's address, as its client sees the worker."""
    host = request.headers.get("host", "localhost")
    return {"location": f"{request.url.scheme}://{host}/connectors/{quote(name, safe='')}"}


def named(name: str, config: dict[str, str]) -> dict[str, str]:
    """Return a config with its connector's name. Raises BadRequest if it has another name."""
    own = config.get("name")
    if own is not None and own != name:
        raise BadRequest(
            f"Connector name configuration ({own}) doesn't match connector name in the URL ({name})"
        )
    return {**config, "name": name}
