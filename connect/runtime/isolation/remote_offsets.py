"""RemoteOffsets: the connector's source offsets in a task's process; the worker stores them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from connect.errors import ConnectError
from connect.runtime.isolation.messages import (
    FromTask,
    Granted,
    OffsetsPut,
    OffsetsSpelled,
    PutOffsets,
    ReadOffsets,
    Refused,
    StoredOffsets,
)
from connect.stores.offset_keys import normal_form

Answer = StoredOffsets | OffsetsPut | OffsetsSpelled | Granted | Refused
PART_BYTES = 1 << 20
"""Bytes of offsets in one message, unless a single one has more."""


class RemoteOffsets:
    """An OffsetStore with one connector's offsets. `take` takes the worker's answers, on the loop."""

    def __init__(self, send: Callable[[FromTask], None]) -> None:
        self._send = send
        self._offsets: dict[bytes, bytes] = {}
        """By the key's normal form."""
        self._numbers = itertools.count()
        self._answers: dict[int, asyncio.Future[dict[bytes, bytes]]] = {}
        self._incoming: dict[int, dict[bytes, bytes]] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        return self._offsets.get(key) or self._offsets.get(normal_form(key))

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        return list(self._offsets)

    async def refresh(self) -> None:
        """Read what the worker and others have stored until now."""
        self._offsets = await self._ask(ReadOffsets)

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store these offsets. After an error some of them may be stored. None deletes its key."""
        for part in parts(offsets):
            await self._ask(partial(PutOffsets, offsets=part))
            for key, value in part.items():
                if value is None:
                    self._offsets.pop(normal_form(key), None)
                else:
                    self._offsets[normal_form(key)] = value

    def take(self, answer: Answer) -> None:
        """Take an answer of the worker. Answers to requests that were cancelled are dropped."""
        # A task without transactions asks for nothing else.
        assert isinstance(answer, (StoredOffsets, OffsetsPut))
        waiting = self._answers.get(answer.request)
        if waiting is None or waiting.done():
            return
        incoming = self._incoming[answer.request]
        if isinstance(answer, StoredOffsets):
            incoming.update(answer.offsets)
            if not answer.is_last:
                return
        elif answer.error is not None:
            waiting.set_exception(ConnectError(answer.error))
            return
        waiting.set_result(incoming)

    async def _ask(self, request: Callable[[int], FromTask]) -> dict[bytes, bytes]:
        number = next(self._numbers)
        answer: asyncio.Future[dict[bytes, bytes]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._incoming[number] = {}
        try:
            self._send(request(number))
            return await answer
        finally:
            del self._answers[number], self._incoming[number]


def parts(offsets: Mapping[bytes, bytes | None]) -> Iterable[dict[bytes, bytes | None]]:
    """Yield the offsets in parts of about PART_BYTES."""
    part: dict[bytes, bytes | None] = {}
    size = 0
    for key, value in offsets.items():
        size += len(key) + len(value or b"")
        part[key] = value
        if size >= PART_BYTES:
            yield part
            part, size = {}, 0
    if part:
        yield part
