"""The REST interface of a worker that the command line runs.

Its packages are the extra `http`. Without `listeners` in the worker's settings, the interface is at Kafka's
port, 8083, if it can be: a second worker on the same machine runs without it, and says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from connect.config.rest import RestConfig
from connect.errors import MillstreamError
from connect.runtime import WorkerConfig
from kafka_client.http import check_installed
from kafka_client.metrics.metrics import Metrics

if TYPE_CHECKING:
    from connect.rest.server import RestServer
    from connect.rest.service import WorkerService

_log = logging.getLogger(__name__)


class RestInterface:
    """A server that has its ports: call `serve` once the worker has started, then `close`."""

    def __init__(self, server: RestServer, config: RestConfig) -> None:
        self._server = server
        self._config = config

    @property
    def url(self) -> str:
        """The address that other workers and clients use."""
        return self._server.url

    @property
    def worker_id(self) -> str:
        """The worker's name in statuses, as in Kafka: host and port of its REST interface."""
        return self.url.partition("://")[2]

    async def serve(self, service: WorkerService, worker: WorkerConfig, metrics: Metrics) -> None:
        """Serve the requests to a worker from now on."""
        from connect.rest.assembly import rest_parts

        await self._server.start(rest_parts(service, worker, self._config, metrics))

    async def close(self) -> None:
        """Answer the requests received, and stop; idempotent."""
        await self._server.close()


def bound_server(config: RestConfig) -> RestInterface | None:
    """Return the REST interface with its ports taken, or None if the settings ask for none.

    Raises MillstreamError if a port of `listeners` is taken, or the extra `http` is not installed.
    """
    if not config.listeners:
        return None
    is_asked_for = "listeners" in config.raw
    try:
        check_installed("listeners")
        from connect.rest.server import RestServer

        server = RestServer(config)
        server.bind()
    except MillstreamError as e:
        if is_asked_for:
            raise
        _log.warning("there is no REST interface: %s; set listeners", e)
        return None
    return RestInterface(server, config)
