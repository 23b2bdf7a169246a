"""The base of all admin calls: the client, the time limit of a call, requests to the controller."""

from __future__ import annotations

from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ErrorCode, error_for
from kafka_client.wire import Message

_RESULTS = ("topics", "responses", "results")
"""Fields of the controller's responses that hold the results; the field depends on the API."""


class AdminBase:
    """A client, and the time limit of one call with its retries."""

    def __init__(self, client: Client, *, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def _ask_controller(self, request: Message) -> Any:
        """Ask the controller, or any broker, which forwards the request, if no controller is known."""

        async def ask() -> Any:
            metadata = await self._client.metadata(())
            has_controller = metadata.controller_id in metadata.brokers
            response = await self._client.request(
                request,
                node=metadata.controller_id if has_controller else None,
                timeout_ms=self._timeout_ms + self._client.request_timeout_ms,
            )
            _check_controller(response)
            return response

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)


def _check_controller(response: Any) -> None:
    """Raise StaleMetadata if the broker that was asked is not the controller (any more)."""
    if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        raise error_for(ErrorCode.NOT_CONTROLLER, "the controller moved")
    results = [result for name in _RESULTS for result in getattr(response, name, ())]
    if any(getattr(result, "error_code", 0) == ErrorCode.NOT_CONTROLLER for result in results):
        raise error_for(ErrorCode.NOT_CONTROLLER, "the controller moved")
