"""The results of serving a request: an answer, or a refusal."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, TypeAlias

from kafka_client.errors import MillstreamError
from kafka_client.records.slice import FileSlice

Answer: TypeAlias = bytes | list[bytes | FileSlice]
"""A whole response frame, its length in front: one piece of bytes, or pieces of bytes and files."""


class Throttled(NamedTuple):
    """An answer after which the client's connection serves nothing for some seconds (KIP-219).

    No answer with acks=0; a future if the batches of the request are not acknowledged yet.
    """

    answer: Answer | asyncio.Future[bytes] | None
    seconds: float


class Refused(MillstreamError):
    """A request that gets no answer but a closed connection; the text says what was wrong with it."""


class NotYet(Refused):
    """Refused for the time being, and no fault of the client."""
