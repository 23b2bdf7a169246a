"""``GET /metrics``: the metrics of a registry, in Prometheus's text format."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from kafka_client.metrics.exposition import text_of
from kafka_client.metrics.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_endpoint(registry: Metrics) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a Starlette route that serves the registry in Prometheus's text format."""

    async def endpoint(request: Request) -> Response:
        samples = list(registry.read())
        # A broker of 10,000 partitions has 40,000 samples. Formatting them here would hold up its clients.
        text = await asyncio.to_thread(text_of, samples)
        return Response(text, media_type=CONTENT_TYPE)

    return endpoint
