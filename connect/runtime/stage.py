"""Stages: what the worker is doing for a request, told if the request takes too long (KAFKA-15563)."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Stage:
    """A description as Kafka Connect's, to follow "the worker is currently", and when the stage began."""

    description: str
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def summary(self) -> str:
        """Return Kafka Connect's sentence about a stage that has not completed."""
        began = self.started.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return f"The worker is currently {self.description}, which began at {began}."


class RequestStage:
    """The present stage of one request. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._last = Stage("handling the request")
        self._followed: Callable[[], Stage | None] | None = None

    def enter(self, description: str) -> None:
        """Begin another stage."""
        self._last, self._followed = Stage(description), None

    def follow(self, present: Callable[[], Stage | None]) -> None:
        """Take the stage from `present` as long as it returns one, until `enter` is called."""
        self._followed = present

    @property
    def present(self) -> Stage:
        """The present stage."""
        followed = None if self._followed is None else self._followed()
        return followed or self._last


_REQUEST: ContextVar[RequestStage | None] = ContextVar("request stage", default=None)


def begin_request() -> RequestStage:
    """Return the stage of a new request, which the present asyncio task handles."""
    request = RequestStage()
    _REQUEST.set(request)
    return request


def request_stage() -> RequestStage:
    """Return the stage of the request that the present asyncio task handles."""
    return _REQUEST.get() or RequestStage()
