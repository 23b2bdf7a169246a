"""What every kind of admin call stands on: the client, the time a call may take, the controller."""

from __future__ import annotations

from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ErrorCode, error_for
from kafka_client.wire import Message

_RESULTS = ("topics", "responses", "results")
"""Where the controller's answers have their results, by API."""


class AdminBase:
    """A client and how long one call on it, with its retries, may take."""

    def __init__(self, client: Client, *, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def _ask_controller(self, request: Message) -> Any:
        """Ask the controller, or any broker where the cluster names none (a broker passes such requests
        on).
        """

        async def ask() -> Any:
            metadata = await self._client.metadata(())
            known = metadata.controller_id in metadata.brokers
            response = await self._client.request(
                request,
                node=metadata.controller_id if known else None,
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
